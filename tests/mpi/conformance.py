"""Runs of the check program of a library, in one of the ways to build it.

Where `CONFORMANCE_LOG` names a file, every run that passes adds a line to it, and
`docs/tools/conformance.py` makes a page of them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from docs.tools.conformance import revision
from stagegen.measure.launch.mpi import find_mpi
from tests.mpi import support

LOG = "CONFORMANCE_LOG"
LINE = re.compile(r"(\w+) +(\d+) passed, 0 failed")
SUM = re.compile(r"(\d+) ranks: (\d+) passed, 0 failed")


@dataclass(frozen=True)
class Way:
    """A way to build the check: make's variables, where the program is, what it runs with."""

    name: str
    variables: tuple[str, ...] = ()
    folder: str = "build"

    def environment(self, library: Path) -> dict[str, str]:
        """Return what `make check` sets for this way."""
        if "SANITIZE" not in " ".join(self.variables):
            return {}
        leaks = f"suppressions={library / 'check' / 'leaks.txt'}:print_suppressions=0"
        return {"ASAN_OPTIONS": "verify_asan_link_order=0", "LSAN_OPTIONS": leaks}


PLAIN = Way("plain")
SANITIZE = ("SANITIZE=address,undefined", "CFLAGS=-O1")
SANITIZED = Way("address, undefined", SANITIZE, "build/address-undefined")
SYNCHRONOUS = Way("synchronous", ("SYNCHRONOUS=1",), "build/synchronous")
#: Finds what either finds, in half the time.
BOTH = Way(
    "address, undefined; synchronous",
    (*SANITIZE, "SYNCHRONOUS=1"),
    "build/address-undefined-synchronous",
)


@dataclass(frozen=True)
class Run:
    """A run of the check, and how many cases of each collective passed: all of them.

    Attributes:
        way: how it was built.
        cluster: ranks of the cluster that the library is for.
        slots: how many ranks each of its hosts has.
        ranks: how many ran; fewer than the cluster has are no whole cluster.
        level: `quick` or `full`.
        mpi: the MPI library.
        passed: cases, by collective.
    """

    way: str
    cluster: int
    slots: int
    ranks: int
    level: str
    mpi: str
    passed: dict[str, int]


def built(library: Path, way: Way) -> Path:
    """Build the check in this way; return the program."""
    target = f"{way.folder}/check"
    tools = support.toolchain()
    command = [tools.make, "-C", library, "-s", f"-j{os.cpu_count()}", *tools.variables]
    result = subprocess.run(
        [*command, *way.variables, target], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return library / target


def check(
    ranks: int,
    level: str = "quick",
    way: Way = PLAIN,
    cluster: int | None = None,
    slots: int = 1,
    timeout: float = 280,
    delays: int = 0,
    shared: bool = False,
    routines: str = "",
) -> Run:
    """Run the check of the library for a cluster, by default on all of its ranks.

    With delays, in microseconds, ranks come apart, and only what watches arrivals is checked,
    unless routines are named, with commas between, or `all`.
    If shared, the ranks share memory.
    """
    cluster = ranks if cluster is None else cluster
    library = support.library(cluster, slots)
    result = support.run(
        ranks,
        built(library, way),
        level,
        *(["--delays", str(delays)] if delays else []),
        *(["--routines", routines] if routines else []),
        variables=way.environment(library) | (support.MEMORY if shared else {}),
        timeout=timeout,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    *lines, last = result.stdout.splitlines()
    found = [LINE.fullmatch(line) for line in lines]
    passed = {line[1]: int(line[2]) for line in found if line is not None}
    total = SUM.fullmatch(last)
    assert total is not None, result.stdout
    assert len(passed) == len(lines) == len(support.CATALOGUE.collectives)
    assert (int(total[1]), int(total[2])) == (ranks, sum(passed.values()))
    run = Run(way.name, cluster, slots, ranks, level, _mpi(), passed)
    if not delays and not shared and not routines:
        _note(run)
    return run


def _mpi() -> str:
    mpi = find_mpi("mpich")
    return f"MPICH {mpi.version}"


def _note(run: Run) -> None:
    if file := os.environ.get(LOG):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        with Path(file).open("a", encoding="utf-8") as log:
            log.write(json.dumps({**asdict(run), "revision": revision()}) + "\n")
