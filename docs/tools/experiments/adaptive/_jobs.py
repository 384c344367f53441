"""What the experiments about adapting share: a library, programs, jobs in the lab."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeVar

from docs.tools.experiments import lab
from docs.tools.experiments.programs import Program
from docs.tools.experiments.stagegen import stagegen
from stagegen.adaptive.learned import Situation, read_learned
from stagegen.data import TOPOLOGIES
from stagegen.generate import Toolchain, run_make
from stagegen.recording.messages import read_message_times

Result = TypeVar("Result")

#: Eight hosts on two switches, ranks dealt to them in turn, 20 Mbit/s.
TOPOLOGY = TOPOLOGIES / "quickstart.yaml"

PAGE = Path("docs/adaptive.md")

KIB = 1 << 10

#: At these sizes, a call of alltoall takes some 10 ms, and 2,000 calls take half a minute.
COLLECTIVES = ("allgather", "allreduce", "alltoall")
SIZES = "8,512,2KiB,4KiB,8KiB,16KiB"

#: What serves, by the variables of the environment that say so. Without the library: "MPI".
NATIVE = "MPI"
STATIC = "table"

#: What adapts, and what only watches the table's choice.
STAR, GUARD = "star", "guard"

#: Single routines that run beside the policy: the fastest ones of a short run of each.
FINALISTS = 3


def library(folder: Path, tools: Toolchain) -> Path:
    """Return the library that all experiments share; it is tuned if it is not there."""
    made = folder.parents[1] / f"library-{tools.flavour}"
    if not (made / "libcoll.so").exists():
        resume = ("--resume",) if (made / "measurements.jsonl").exists() else ()
        stagegen(
            *("tune", "--topology", TOPOLOGY, "--adaptive", "--communicators", "whole"),
            *("--collectives", ",".join(COLLECTIVES), "--sizes", SIZES),
            *("--budget", 1, "--launches", 3, "--mpicc", tools.mpicc, "--output", made, *resume),
        )
        run_make(made, tools, "libcoll.so")
    return made


def run(
    folder: Path,
    served: str,
    program: Program,
    learn: Path | None = None,
    preloaded: Path | None = None,
) -> str:
    """Run an example program in the lab; return what it prints.

    Args:
        folder: of the point.
        served: ``MPI`` for the MPI library alone, ``table`` for the decision table, the value of
            LIBCOLL_ADAPTIVE, or that of LIBCOLL_FORCE, such as ``alltoall=ring``.
        program: what runs.
        learn: where it writes what it learned.
        preloaded: the folder of another library than that which all experiments share.

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
    tools = program.tools()
    built = lab.compiled(folder.parents[1] / f"compiled-{tools.flavour}", program.name, tools)
    if served != NATIVE and preloaded is None:
        preloaded = library(folder, tools)
    return lab.run(
        TOPOLOGY, built, *program.arguments,
        library=preloaded, variables=variables, mpi=tools.flavour,
    )  # fmt: skip


def calls(
    folder: Path, served: str, *words: object, learn: Path | None = None
) -> dict[str, list[float]]:
    """Run the micro-benchmark; return the seconds of its calls, by what was timed."""
    program = Program("calls", tuple(map(str, words)))
    told: dict[str, Any] = json.loads(run(folder, served, program, learn=learn))
    if not told.pop("right"):
        raise ValueError(f"wrong results of {words}")
    return told


def repetitions() -> int:
    """Return how often what is compared runs in turn: BENCH_REPETITIONS, by default 4.

    Raises:
        ValueError: it is no number from 1 upwards.
    """
    count = int(os.environ.get("BENCH_REPETITIONS", "4"))
    if count < 1:
        raise ValueError(f"BENCH_REPETITIONS={count}: expected a number from 1 upwards")
    return count


def in_turn(arms: Mapping[str, Callable[[int], Result]]) -> dict[str, list[Result]]:
    """Run all arms, round after round; return the results of each, by round.

    What changes slowly changes all arms of a round alike, so rounds are pairs. Each round begins
    with another arm.

    Args:
        arms: what runs, by name; its argument is the number of the round, from 0.
    """
    names = list(arms)
    found: dict[str, list[Result]] = {name: [] for name in names}
    for i in range(repetitions()):
        first = i % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(arms[name](i))
    return found


def ratio(times: Sequence[float], others: Sequence[float]) -> float:
    """Return the median ratio of what ran in the same rounds."""
    return median(one / other for one, other in zip(times, others, strict=True))


def fastest(times: Mapping[str, Sequence[float]], names: Sequence[str]) -> str:
    """Return which of some arms has the least mean over all rounds."""
    return min(names, key=lambda name: fmean(times[name]))


def situation(file: Path, size: int) -> Situation:
    """Return what LIBCOLL_LEARN wrote about the calls of a size."""
    (one,) = (one for one in read_learned(file).situations if one.size == size)
    return one


def alone(one: Situation, number: int, *, of_source: bool = False) -> str:
    """Return how a candidate serves alone: as :func:`run` names it.

    The table's own choice, with its parameters and its parts, is the table. All others have their
    usual parameters: LIBCOLL_FORCE knows no others.

    Args:
        one: the situation.
        number: of the candidate.
        of_source: whether the policy asked for the source's sets, so that none is the table's.
    """
    if number == 0 and not of_source:
        return STATIC
    return f"{one.collective}={one.candidates[number].algorithm}"


def singles(file: Path, size: int) -> list[str]:
    """Return all that competed for the calls of a size, as :func:`run` names them.

    The first is the table's own choice. The native routine is one of them.
    """
    one = situation(file, size)
    return [alone(one, number) for number in range(len(one.candidates))]


def finalists(names: Sequence[str], seconds: Callable[[str], float]) -> list[str]:
    """Return the fastest of some routines in a short run of each.

    Args:
        names: of the routines, as :func:`run` names them.
        seconds: the mean time of a call in a short run of one.
    """
    return sorted(names, key=seconds)[:FINALISTS]


def message_ms(folder: Path, size: int) -> float:
    """Return the time of a message of a size between two hosts, in milliseconds, as measured.

    Args:
        folder: of the point.
        size: in bytes.
    """
    file = folder.parents[1] / "messages.json"
    if not file.exists():
        line = (sys.executable, "-m", "stagegen", "lab", "run", "--topology", TOPOLOGY.absolute())
        stagegen("arrivals", "--calibrate", file, "--", *line, "--")
    return 1e3 * read_message_times(file).of(size)
