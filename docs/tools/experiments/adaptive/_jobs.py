"""What the experiments about adapting share: a library, programs, jobs in the lab."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from docs.tools.experiments import lab
from docs.tools.experiments.stagegen import stagegen
from stagegen.adaptive.learned import read_learned
from stagegen.data import TOPOLOGIES
from stagegen.generate import Toolchain, run_make

#: Eight hosts on two switches, ranks dealt to them in turn, 20 Mbit/s.
TOPOLOGY = TOPOLOGIES / "quickstart.yaml"

PAGE = Path("docs/adaptive.md")

KIB = 1 << 10

#: That a call of alltoall takes some 10 ms, and 2,000 calls half a minute.
COLLECTIVES = ("allgather", "allreduce", "alltoall")
SIZES = "8,512,2KiB,4KiB,8KiB,16KiB"

#: Who serves, by the variables of the environment that say so. Without the library: "MPI".
NATIVE = "MPI"
STATIC = "table"


def library(folder: Path) -> Path:
    """Return the library that all experiments share; it is tuned if it is not there."""
    made = folder.parents[1] / "library"
    if not (made / "libcoll.so").exists():
        resume = ("--resume",) if (made / "measurements.jsonl").exists() else ()
        stagegen(
            *("tune", "--topology", TOPOLOGY, "--adaptive", "--communicators", "whole"),
            *("--collectives", ",".join(COLLECTIVES), "--sizes", SIZES),
            *("--budget", 1, "--launches", 3, "--output", made, *resume),
        )
        run_make(made, Toolchain.find(), "libcoll.so")
    return made


def run(folder: Path, served: str, name: str, *words: object, learn: Path | None = None) -> str:
    """Run an example program in the lab; return what it prints.

    Args:
        folder: of the point.
        served: ``MPI`` for the MPI library alone, ``table`` for the decision table, the value of
            LIBCOLL_ADAPTIVE, or that of LIBCOLL_FORCE, such as ``alltoall=ring``.
        name: of the program.
        words: its arguments.
        learn: where it writes what it learned.

    Raises:
        subprocess.CalledProcessError: it failed; it has said why.
    """
    variables = {}
    if "=" in served.partition(",")[0]:
        variables["LIBCOLL_FORCE"] = served
    elif served not in (NATIVE, STATIC):
        variables["LIBCOLL_ADAPTIVE"] = served
    if learn is not None:
        variables["LIBCOLL_LEARN"] = str(learn.absolute())
    program = lab.compiled(folder.parents[1] / "compiled", name)
    preloaded = None if served == NATIVE else library(folder)
    return lab.run(TOPOLOGY, program, *words, library=preloaded, variables=variables)


def calls(
    folder: Path, served: str, *words: object, learn: Path | None = None
) -> dict[str, list[float]]:
    """Run the micro-benchmark; return the seconds of its calls, by what was timed."""
    told: dict[str, Any] = json.loads(run(folder, served, "calls", *words, learn=learn))
    if not told.pop("right"):
        raise ValueError(f"wrong results of {words}")
    return told


def candidates(file: Path, size: int) -> list[str]:
    """Return what competed for the calls of a size, as LIBCOLL_FORCE names it.

    Args:
        file: what LIBCOLL_LEARN wrote.
        size: of a message, in bytes.
    """
    (one,) = (one for one in read_learned(file).situations if one.size == size)
    return [f"{one.collective}={candidate.algorithm}" for candidate in one.candidates]


def best_single(
    folder: Path, names: Sequence[str], first: int, *words: object
) -> tuple[str, float, dict[str, float]]:
    """Return the routine with the least mean time in the micro-benchmark, its time, and all times.

    Args:
        folder: of the point.
        names: of routines, as LIBCOLL_FORCE names them.
        first: the call from which on times count.
        words: of the micro-benchmark.
    """
    times = {name: fmean(calls(folder, name, *words)["elapsed"][first:]) for name in names}
    best = min(times, key=times.__getitem__)
    return best, times[best], times
