"""Example programs that print the seconds of their loop, and what they are built with."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stagegen.generate import Toolchain

#: Debian's FFTW is for Open MPI.
OF_FFTW = "mpicc.openmpi"


@dataclass(frozen=True)
class Program:
    """An example program.

    Attributes:
        name: of its file.
        arguments: for some seconds.
        mpicc: the compiler that it needs; None for the one at hand.
    """

    name: str
    arguments: tuple[str, ...]
    mpicc: str | None = None

    def __str__(self) -> str:
        return " ".join((self.name, *self.arguments))

    def tools(self) -> Toolchain:
        """Return the toolchain of the program and of its library."""
        return Toolchain.find(self.mpicc)


def loop_seconds(text: str) -> float:
    """Return the seconds of the loop from what a program prints.

    Raises:
        ValueError: they are not there, as the result was wrong.
    """
    found = re.search(r"^right: .* ([0-9.]+) s$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"no time in {text!r}")
    return float(found[1])
