"""Example programs in the lab, with a library before them or without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from docs.tools.experiments.stagegen import environment
from stagegen.generate import Toolchain

PROGRAMS = Path("docs/examples/programs")


def compiled(folder: Path, name: str, tools: Toolchain | None = None) -> Path:
    """Return an example program, compiled in a folder; by default for the MPI library at hand."""
    folder.mkdir(parents=True, exist_ok=True)
    source = PROGRAMS.absolute()
    words = ("make", "-s", "-f", str(source / "Makefile"), f"VPATH={source}")
    mpicc = f"MPICC={(tools or Toolchain.find()).mpicc}"
    subprocess.run([*words, mpicc, name], cwd=folder, check=True)
    return (folder / name).absolute()


def run(
    topology: Path,
    program: Path,
    *words: object,
    library: Path | None = None,
    preload: Path | None = None,
    variables: Mapping[str, str] | None = None,
    before: Sequence[object] = (),
    mpi: str | None = None,
    with_errors: bool = False,
) -> str:
    """Run a program in the lab of a topology; return what it prints.

    Args:
        topology: the cluster's file.
        program: what runs, with one process per slot.
        words: its arguments.
        library: the folder of a library that is preloaded; None for the MPI library alone.
        preload: a library itself, in place of its folder.
        variables: of the environment, besides those that are there.
        before: words before the command, such as those of ``stagegen record``.
        mpi: what the program was built for, as ``--mpi`` names it; None for its default.
        with_errors: whether to return what it prints on standard error, too.

    Raises:
        subprocess.CalledProcessError: it failed; it has said why.
    """
    first = preload if library is None else library / "libcoll.so"
    loaded = () if first is None else ("--preload", first.absolute())
    built_for = () if mpi is None else ("--mpi", mpi)
    stagegen = (sys.executable, "-m", "stagegen")
    lab = (*stagegen, "lab", "run", "--topology", topology.absolute(), *built_for, *loaded, "--")
    line = [*before, *lab, program, *words]
    done = subprocess.run(
        [*map(str, line)],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if with_errors else None,
        env=environment(variables or {}),
    )  # fmt: skip
    return done.stdout.decode()
