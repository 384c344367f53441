"""A library with TRACE=1 with routines of several kinds, and a program that calls it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from stagegen.generate import run_make
from stagegen.inspection.trace import RankTrace, Trace, read_trace
from stagegen.library import write_library
from tests.mpi import support

RANKS, SLOTS = 8, 4
ROUTINES = (
    "allreduce/fixed_tree",
    "allreduce/hierarchical",
    "allreduce/of_reduce_and_bcast",
    "allreduce/recursive_doubling",
    "allreduce/reduce_bcast",
    "allreduce/ring",
    "allreduce/token_tree",
    "alltoall/aapc_barrier",
    "alltoall/aapc_receiver",
    "alltoall/aapc_sender",
    "alltoall/hierarchical",
    "alltoall/ring",
    "barrier/combining_tree",
    "barrier/fixed_tree",
    "bcast/binomial",
    "bcast/flat",
    "reduce/binomial",
)


@lru_cache
def library() -> Path:
    """The folder of the library; it is built with TRACE=1 only."""
    topology = support.cluster(RANKS, SLOTS)
    catalogue = support.few([a for a in support.CATALOGUE.algorithms if a.full_name in ROUTINES])
    with support.to_be_made("traced") as (folder, empty):
        if empty:
            write_library(folder, topology, catalogue, support.decision(topology, catalogue), {})
            make = replace(support.toolchain(), make="make")
            (folder / "GNUmakefile").write_text("TRACE = 1\ninclude Makefile\n", encoding="utf-8")
            run_make(folder, make)
    return folder


@lru_cache
def program(source: str = "traced.c", sanitizer: str | None = None) -> Path:
    """A C program of this folder, linked with the library.

    With a sanitizer, which looks at what the program and the traced messages do.
    """
    folder = library()
    made = support.scratch() / f"traced-{Path(source).stem}-{sanitizer}"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-DCOLL_TRACED"]
    includes = [f"-I{folder / name}" for name in ("include", "src", "check", "events")]
    command = [support.toolchain().mpicc, *flags, *includes, str(support.HERE / source)]
    if sanitizer is not None:
        command += [f"-fsanitize={sanitizer}", "-g", str(folder / "events" / "messages.c")]
    command += ["-o", str(made), str(folder / "libcoll-trace.a"), "-pthread"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return made


def run(*words: str | int, ranks: int = RANKS, variables: Mapping[str, str] | None = None) -> str:
    """Run the program; return what it printed."""
    done = support.run(ranks, program(), *map(str, words), variables=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def traced(file: Path, algorithm: str, *words: str | int, **variables: str) -> Trace:
    """Run the program with one algorithm of a collective; return its trace."""
    collective, _, name = algorithm.partition("/")
    settings = {"LIBCOLL_FORCE": f"{collective}={name}", "LIBCOLL_EVENTS": str(file)}
    run(collective, *words, variables={**settings, **variables})
    return read_trace(file)


def events_of(rank: RankTrace, call: int) -> np.ndarray:
    """The events of a call of a rank, which stand together in the trace."""
    first = int(rank.calls["first"][call])
    return rank.entries[first : first + int(rank.calls["count"][call])]
