"""A routine of a folder, and its calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stagegen.audit.c_text import number, read_source
from stagegen.catalogue.algorithm import NATIVE
from stagegen.errors import InputError, ScheduleError

Parameters = Mapping[str, int]

_MAY_BE_NONE = frozenset({"tail"})
"""Parameters that may be 0."""


@dataclass(frozen=True)
class Use:
    """Where a routine is called from, and with which parameters."""

    where: str
    parameters: Parameters


@dataclass(frozen=True)
class BuildRoutine:
    """A row of ``coll_routines[]``.

    Attributes:
        function: its name.
        collective: the collective that it is for.
        group: the ranks whose tables it has: 0 for all (or no tables), k for the k-th group.
        needs_cluster: whether it is only called with all ranks of that group.
        needs_order: whether it is only called with ranks on hosts of the cluster.
        uses: its defaults, and the rules that name it.
        brings_tables: whether its template, a user's, brings tables of its own.
        has_tables: whether it must have a file of tables.
    """

    function: str
    collective: str
    group: int
    needs_cluster: bool
    needs_order: bool
    uses: tuple[Use, ...]
    brings_tables: bool = False
    has_tables: bool = False

    @property
    def is_native(self) -> bool:
        """Whether it is the MPI library's own, which has no schedule of ours."""
        return self.function == f"{self.collective}_{NATIVE}"

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters that it is given anywhere."""
        return frozenset(name for use in self.uses for name in use.parameters)

    def check_parameters(self) -> None:
        """Check that it is given the same parameters everywhere, each with a possible value.

        Raises:
            ScheduleError: one is missing, or out of range; names where.
        """
        for name in sorted(self.parameters):
            self.values(name)

    def values(
        self, parameter: str, most: int = 2**31 - 1, among: frozenset[int] | None = None
    ) -> list[int]:
        """Return the values that a parameter is given, each once, in ascending order.

        Args:
            parameter: its name.
            most: the largest value that it may have.
            among: the values that it may have.

        Raises:
            ScheduleError: it is not given, or one is out of range; names where.
        """
        least = int(parameter not in _MAY_BE_NONE)
        for use in self.uses:
            value = use.parameters.get(parameter)
            if value is None:
                raise ScheduleError(f"{use.where}: {parameter} is not given")
            if not least <= value <= most or (among is not None and value not in among):
                allowed = f"{least} to {most}" if among is None else sorted(among)
                raise ScheduleError(f"{use.where}: {parameter} is {value}, not of {allowed}")
        return sorted({use.parameters[parameter] for use in self.uses})


def read_parameters(path: Path, text: str) -> Parameters:
    """Return the values of an initialiser such as `{.arity = 3}`, or of `{0}`."""
    if text == "{0}":
        return {}
    values: dict[str, int] = {}
    for item in text[1:-1].split(","):
        found = re.fullmatch(r"\s*\.(\w+) = (\S+)", item)
        value = number(found[2]) if found else None
        if found is None or value is None or found[1] in values:
            raise ScheduleError(f"{path}: the parameters {text} cannot be read")
        values[found[1]] = value
    return values


def read_of_folder(path: Path) -> str:
    """Return the text of a C file that every generated folder has.

    Raises:
        InputError: it is missing.
    """
    if not path.is_file():
        raise InputError(f"not a generated folder: src/ has no {path.name}", path.parent.parent)
    return read_source(path)
