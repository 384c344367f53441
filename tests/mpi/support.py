"""Libraries with every algorithm in them, and jobs on this machine to try them with."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from stagegen.catalogue import (
    Algorithm,
    Catalogue,
    Parameter,
    applicable,
    load_catalogue,
    with_native,
)
from stagegen.data import DRIVERS
from stagegen.generate import Renderer, Toolchain, run_make, write_files
from stagegen.generate.sources import CALLS, calls_header
from stagegen.library import write_library
from stagegen.measure.launch.base import Job, Streams
from stagegen.measure.launch.local import LocalLauncher
from stagegen.topology import Site, Topology
from stagegen.tune import DecisionTable, Rule, Table
from stagegen.tune.rules import eligible
from stagegen.tune.search import default_candidate
from tests.conftest import SHARED
from tests.strategies import make_topology

HERE = Path(__file__).parent
SYNCHRONOUS = DRIVERS / "synchronous.h"
"""Compiled into routines, it makes every message wait for its receive."""
CATALOGUE = load_catalogue()
os.environ.setdefault("WERROR", "1")  # the Makefiles': warnings are errors for us, not for users
#: Variables of a job of MPICH whose ranks share memory.
MEMORY = {"MPIR_CVAR_NOLOCAL": "0", "UCX_TLS": "sm,self", "LD_PRELOAD": ""}
STEP = 64
"""Bytes from the start of one rule to that of the next."""


def cluster(ranks: int, slots: int = 1) -> Topology:
    """A chain of switches, uneven where it can be; the last host may be smaller.

    Of an odd number of hosts it has four switches and a ring LR3, else up to three and a ring LR2.
    The first switch is a site, and all others are another one.
    """
    hosts = -(-ranks // slots)
    first = -(-hosts // 2)
    third = (hosts - first) // 3
    has_lr3 = hosts > 3 and hosts % 2 == 1
    sizes = (
        [first - 1, hosts - first - 1, 1, 1] if has_lr3 else [first, hosts - first - third, third]
    )
    shared = {f"n{i}": min(slots, ranks - i * slots) for i in range(hosts)}
    topology = make_topology(sizes, range(len(sizes) - 1), slots=shared)
    first_site, *others = (switch.name for switch in topology.switches)
    if hosts == sizes[0]:
        return topology
    return replace(topology, sites=(Site("near", (first_site,)), Site("far", tuple(others))))


def tables(topology: Topology, catalogue: Catalogue = CATALOGUE) -> tuple[Table, ...]:
    """One rule per algorithm: in the k-th range of STEP bytes the k-th algorithm serves.

    They are for as many ranks as the cluster has, on however many hosts.
    """
    count = topology.rank_count
    several = range(2, count + 1)
    candidates = applicable(catalogue, topology)
    return tuple(
        Table.exactly(name, kind, count, hosts, tuple(_rules(_of(candidates, name, kind))))
        for name in catalogue.collectives
        for kind, numbers in (
            ("cluster", (len(set(topology.ranks)),)), ("hosts", several), ("other", several)
        )
        for hosts in numbers
    )  # fmt: skip


def serving(
    topology: Topology, collective: str, kind: str = "cluster", catalogue: Catalogue = CATALOGUE
) -> list[Algorithm]:
    """The algorithms of the rules for a collective, in their order."""
    return _of(applicable(catalogue, topology), collective, kind)


def _of(candidates: Iterable[Algorithm], collective: str, kind: str) -> list[Algorithm]:
    return [one for one in candidates if one.collective == collective and eligible(kind, one)]


def _rules(algorithms: Iterable[Algorithm]) -> Iterable[Rule]:
    for number, algorithm in enumerate(algorithms):
        crossover = (STEP * number - 1, STEP * number) if number else None
        yield Rule(STEP * number, default_candidate(algorithm), crossover)


def decision(topology: Topology, catalogue: Catalogue = CATALOGUE) -> DecisionTable:
    return DecisionTable(
        topology.name, topology.hash, catalogue.hash, False, tables(topology, catalogue)
    )


@dataclass(frozen=True)
class Part(Catalogue):
    """Some algorithms of a catalogue, with the parameters of all.

    So `catalogue.h` is that of the whole one's libraries, and the compiler's cache has most
    objects.
    """

    whole: Catalogue = CATALOGUE

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.whole.parameters


def part(algorithms: Iterable[Algorithm], whole: Catalogue = CATALOGUE) -> Part:
    """Return a catalogue with only these of its algorithms."""
    return Part(tuple(algorithms), whole.descriptions, whole.templates, whole=whole)


def few(wanted: Sequence[Algorithm]) -> Part:
    """Return the catalogue with only these algorithms besides what every library has."""
    own = {algorithm.routine: algorithm for algorithm in wanted}
    kept = with_native(CATALOGUE, wanted)
    return part(own.get(one.routine, one) for one in kept)


def with_default(algorithm: Algorithm, name: str, value: int) -> Algorithm:
    """Return an algorithm whose parameter of this name has another default."""
    parameters = (
        replace(one, default=value) if one.name == name else one for one in algorithm.parameters
    )
    return replace(algorithm, parameters=tuple(parameters))


@lru_cache
def scratch() -> Path:
    """A folder for what this process builds for itself, until it ends."""
    folder = Path(tempfile.mkdtemp(prefix="stagegen-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@lru_cache
def calls() -> Path:
    """A folder with `calls.h`, for programs that are compiled without a library."""
    folder = scratch() / "calls"
    renderer = Renderer("a test", "name", "0" * 64, CATALOGUE.hash)
    write_files(folder, {CALLS: calls_header(CATALOGUE, renderer)})
    return folder


@contextlib.contextmanager
def to_be_made(name: str) -> Iterator[tuple[Path, bool]]:
    """A folder that all processes of the tests share, and whether it is left to us to fill it."""
    folder = Path(os.environ[SHARED]) / name
    made = folder.with_name(f"{name}.made")
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder, not made.exists()
        made.touch()


@lru_cache
def toolchain() -> Toolchain:
    return Toolchain.find()


@lru_cache
def library(ranks: int, slots: int = 1) -> Path:
    """The folder of a built library with all algorithms, for `cluster(ranks, slots)`."""
    topology = cluster(ranks, slots)
    with to_be_made(f"library-{ranks}-{slots}") as (folder, empty):
        if empty:
            write_library(folder, topology, CATALOGUE, decision(topology), {})
            for target in ("libcoll.so", "libcoll.a", "build/check"):
                run_make(folder, toolchain(), target)
    return folder


@lru_cache
def compiled(source: str, ranks: int, *options: str) -> Path:
    """A C program of this folder, linked with the library for so many ranks."""
    folder = library(ranks)
    program = scratch() / "-".join([Path(source).stem, str(ranks), *map(_plain, options)])
    command = [toolchain().mpicc, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g"]
    command += [f"-I{folder / 'include'}", f"-I{folder / 'check'}", *options]
    command += [str(HERE / source), "-o", str(program)]
    command += [str(folder / "libcoll.a"), "-pthread"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return program


def _plain(option: str) -> str:
    return "".join(c for c in option if c.isalnum())


def stacks(words: Sequence[str]) -> list[str]:
    """The stacks of the processes of these words' compiled program; none without gdb."""
    programs = {word for word in words if Path(word).is_relative_to(scratch())}
    found = []
    for program in Path("/proc").glob("[0-9]*/exe"):
        with contextlib.suppress(OSError):
            if str(program.readlink()) in programs:
                found.append(program.parent.name)
    return [text for process in sorted(found, key=int) if (text := _stack(process))]


def _stack(process: str) -> str:
    words = ["gdb", "-p", process, "-batch", "-ex", "thread apply all backtrace 30"]
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    frames = [line for line in result.stdout.splitlines() if line.startswith("#")]
    return "\n".join([f"process {process}:", *frames])


def run(
    ranks: int,
    *program: str | Path,
    variables: Mapping[str, str] | None = None,
    preload: tuple[Path, ...] = (),
    hosts: Sequence[str] | None = None,
    timeout: float = 240,
) -> subprocess.CompletedProcess[str]:
    """Run an MPI program on this machine; `hosts` are the names that the ranks go by.

    Raises:
        TimeoutError: it still runs; the error has what it has printed.
    """
    words = tuple(map(str, program))
    settings = {**(variables or {})}
    if hosts is None:
        settings.setdefault("LIBCOLL_PLACEMENT", "rank")
    else:
        settings["HOSTS_OF_RANKS"] = " ".join(hosts)
        pick = 'set -- "$@"; i=0; for h in $HOSTS_OF_RANKS; do [ $i = $PMI_RANK ] && break; '
        pick += "i=$((i + 1)); done; LIBCOLL_HOST=$h exec " + '"$@"'
        words = ("/bin/sh", "-c", pick, "sh", *words)
    topology = cluster(ranks)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        job = Job(words, settings, preload, streams=Streams(subprocess.DEVNULL, out, err))
        late = None
        with LocalLauncher().start(job, topology) as running:
            try:
                status = running.wait(timeout)
            except TimeoutError as error:
                late = "\n".join([str(error), *stacks(words)])
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    if late is not None:
        raise TimeoutError(f"{late}; it has printed: {' '.join(texts)}")
    return subprocess.CompletedProcess(words, status, *texts)
