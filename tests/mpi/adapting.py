"""A library whose calls adapt, with the source's sets of algorithms, and jobs that use it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from stagegen.adaptive.known import NOTHING_KNOWN
from stagegen.catalogue import Algorithm, load_catalogue, with_native
from stagegen.catalogue.templates import read_root
from stagegen.generate import run_make
from stagegen.library import write_library
from tests.mpi import builds, support

RANKS = 4

#: The catalogue, with a routine that turns slow and one that does nothing.
CATALOGUE = load_catalogue(added=[read_root(support.HERE / "adaptive_templates")])

#: Collectives that the source has sets for (Faraj 2006, §4.3.1.1).
OF_SOURCE = ("allgather", "allgatherv", "allreduce", "alltoall")

#: Algorithms of `adaptive_templates`.
ADDED = ("absent", "turncoat")

#: Of other collectives, as many of those that are marked: builds are to be short.
FEW = 2


def policies() -> list[str]:
    """The names of all policies, by which LIBCOLL_ADAPTIVE calls them."""
    folder = Path(support.HERE).parents[1] / "templates" / "adaptive" / "policies"
    return sorted(path.stem.replace("_", "-") for path in folder.glob("*.c"))


def _kept() -> list[Algorithm]:
    marked = [a for a in CATALOGUE.algorithms if a.adaptive is not None]
    others = {name for name in CATALOGUE.collectives if name not in OF_SOURCE}
    few = [a for name in others for a in [m for m in marked if m.collective == name][:FEW]]
    own = [a for a in marked if a.collective in OF_SOURCE or a.name in ADDED]
    return [*own, *few]


@lru_cache
def library() -> Path:
    """Return the folder of the library."""
    topology = support.cluster(RANKS)
    with support.to_be_made("adapting") as (folder, empty):
        if empty:
            part = support.part(with_native(CATALOGUE, _kept()), CATALOGUE)
            decision = support.decision(topology, part)
            write_library(folder, topology, part, decision, {}, NOTHING_KNOWN)
            for target in ("libcoll.so", "libcoll.a"):
                run_make(folder, support.toolchain(), target)
    return folder


@lru_cache
def program(source: str = "adaptive.c", *options: str | Path) -> Path:
    """Return a compiled test program of this folder, linked with the library."""
    return builds.c_program(builds.Mpi.of_environment(), library(), source, *options)


def run(
    *arguments: object,
    ranks: int = RANKS,
    timeout: float = 240,
    of: Path | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Run the test program, or another one, and expect it to end well."""
    result = support.run(
        ranks, of or program(), *map(str, arguments), variables=variables, timeout=timeout
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def learned(path: Path) -> Mapping[str, Any]:
    """Return what a job learned."""
    found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
