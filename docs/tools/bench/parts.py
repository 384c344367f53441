"""The parts of the benchmark: tune, compare, AAPC against the rest, the cost of intercepting.

All wanted collectives of a cluster are tuned together, once with each congestion control: a
composition runs what was tuned for its parts, so these must be tuned, too. Each collective is then
compared by itself; that is a part.

A tuning has a folder of its own, ``generated/bench-<cluster>-<congestion>/<collectives>``, which is
what ``stagegen tune`` leaves, with ``compared-*.json`` and ``families.json`` in it: all that the
commands printed. What pages need of this goes to docs/results/bench/ (``kept``). A part whose
results are kept there, and are of today's routines, is not measured again. A tuning is not made if
this holds for all of its parts. So the benchmark may be stopped at any time and started again, or
run part by part, on several machines.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.tools.bench.families import FROM, entrants, meetings, samples_of
from docs.tools.bench.kept import Kept, Source, read_kept
from docs.tools.bench.launches import Point, launch, suspects
from docs.tools.bench.plan import CATALOGUE, Cluster
from docs.tools.bench.results import result_of
from stagegen.generate import Toolchain
from stagegen.generate.write import write_file
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE
from stagegen.measure.launch.mpi import find_mpi

GENERATED = Path("generated")
LOG, DECISION = "measurements.jsonl", "decision.json"
FAMILIES, OVERHEAD = "families.json", "overhead.json"

#: Seconds of measured time for a size: the tunings of the benchmark have no limit of time.
BUDGET = 20

#: The name of a tuning of all collectives.
ALL = "all"


@dataclass(frozen=True)
class Tuning:
    """Collectives that are tuned together on one cluster with one congestion control.

    Attributes:
        cluster: which one.
        congestion: the congestion control.
        collectives: sorted names.
    """

    cluster: Cluster
    congestion: str
    collectives: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in folders and in results."""
        is_all = self.collectives == CATALOGUE.collectives
        return ALL if is_all else "+".join(self.collectives)

    @property
    def folder(self) -> Path:
        """What ``stagegen tune`` makes; the output of other commands is kept there, too."""
        return GENERATED / f"bench-{self.cluster.name}-{self.congestion}" / self.name

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its collectives, to be compared one by one."""
        return tuple(Part(self, name) for name in self.collectives)

    @property
    def kept(self) -> Kept:
        """What is kept of its cluster and congestion control."""
        return read_kept(self.cluster.name, self.congestion)

    def measure(self, anew: bool = False) -> None:
        """Do what has not been done yet, or all of it.

        Raises:
            subprocess.CalledProcessError: a command failed; it has said why.
            StagegenError: a further launch failed.
        """
        if anew or not all(part.is_kept() for part in self.parts):
            self._tune(anew)
            for part in self.parts:
                part.measure(anew)
        self._launch_again()

    def _launch_again(self) -> None:
        """Launch what is suspect again, where one of it was not yet."""
        points = self._suspects()
        rows = {(row.collective, row.size): row for row in self.kept.rows()}
        if any(rows[point].launches is None for point in points):
            with _with_congestion(self.congestion):
                found = launch(self.cluster, self.folder, points)
            self.kept.with_launches(found).write()

    def _suspects(self) -> list[Point]:
        """Return what is suspect, and was compared with the library that is in the folder."""
        if not (self.folder / DECISION).exists():
            return []
        result = result_of(self.cluster, self.congestion)
        sources = {part.collective: {part.source()} for part in self.parts}
        return [
            point
            for point in suspects(result)
            if self.kept.sources("rows", [point]) == sources.get(point[0])
        ]

    def _tune(self, anew: bool) -> None:
        sizes = ",".join(map(str, self.cluster.tuned_at(self.collectives)))
        words: list[object] = ["--collectives", ",".join(self.collectives), "--sizes", sizes]
        words += ["--output", self.folder]
        words += ["--communicators", "whole"]  # only its calls are compared
        words += ["--budget", BUDGET]
        resume = (self.folder / LOG).exists() and not anew
        self.stagegen("tune", *words, *(["--resume"] if resume else []))

    def run(self, command: str, *words: object) -> Any:
        """Return the JSON that a measuring command prints."""
        more = ("--repetitions", self.cluster.repetitions, "--format", "json")
        return json.loads(self.stagegen(command, *words, *more))

    def stagegen(self, command: str, *words: object) -> str:
        """Return what a command prints."""
        file = self.cluster.file(self.folder.parent)
        line = [sys.executable, "-m", "stagegen", command, "--topology", str(file)]
        environment = {**os.environ, CONGESTION_VARIABLE: self.congestion}
        print(f"{self.folder}: {command}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [*line, *map(str, words)], check=True, stdout=subprocess.PIPE, env=environment
        )
        return done.stdout.decode()

    def log(self, name: str, result: Any) -> None:
        """Write all that a command printed into the folder of the tuning."""
        write_file(self.folder / name, json.dumps(result, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class Part:
    """One collective of a tuning."""

    tuning: Tuning
    collective: str

    def measure(self, anew: bool = False) -> None:
        """Compare it, and AAPC with the rest if it is an alltoall, unless the results are kept.

        Raises:
            subprocess.CalledProcessError: a command failed; it has said why.
        """
        tuning = self.tuning
        if anew or not self._is_kept("rows"):
            words = ("--library", tuning.folder, *self._at(self._sizes("rows")))
            found = tuning.run("bench", *words)
            tuning.log(f"compared-{self.collective}.json", found)
            tuning.kept.with_rows(found["rows"], self.source(), found["environment"]).write()
        if self._meets and (anew or not self._is_kept("meetings")):
            rows = list(self._families())
            tuning.log(FAMILIES, {"rows": rows})
            tuning.kept.with_meetings(meetings(rows, CATALOGUE), self.source()).write()

    def is_kept(self) -> bool:
        """Whether its results are kept and of today's routines, whichever machine measured them."""
        return self._is_kept("rows") and (not self._meets or self._is_kept("meetings"))

    @property
    def _meets(self) -> bool:
        """Whether families of its algorithms are compared, too."""
        return self.collective == "alltoall"

    def _is_kept(self, name: str) -> bool:
        """Whether a list of kept results has all of its points, measured with today's routines."""
        sizes = self._sizes(name)
        points = [(size,) if name == "meetings" else (self.collective, size) for size in sizes]
        return all(map(self._is_of_today, self.tuning.kept.sources(name, points)))

    def _sizes(self, name: str) -> tuple[int, ...]:
        sizes = self.tuning.cluster.compared(self.collective)
        return tuple(size for size in sizes if name == "rows" or size >= FROM)

    def _is_of_today(self, source: Source | None) -> bool:
        """Whether a result's routines have not changed, and its parts were tuned with it."""
        if source is None or source.routines != self._routines():
            return False
        wanted = _parts_of(self.collective) & set(self.tuning.collectives)
        return wanted <= _names_of(source.together)

    def source(self) -> Source:
        """Return the source of a result that is measured now."""
        tables = json.loads((self.tuning.folder / DECISION).read_text(encoding="utf-8"))["tables"]
        own = [table for table in tables if table["collective"] == self.collective]
        return Source(_hash(own), self._routines(), self.tuning.name)

    def _routines(self) -> str:
        """Return the hash of all routines of the collective, and of those of its parts."""
        names = _parts_of(self.collective)
        hashes = CATALOGUE.hashes
        return _hash({name: hashes[name] for name in hashes if name.partition("/")[0] in names})

    def _families(self) -> Iterator[Any]:
        """Yield the rows of the contests, one contest for each size: entrants differ."""
        tuning = self.tuning
        samples = samples_of(tuning.folder / LOG, tuning.cluster.topology())
        for size in self._sizes("meetings"):
            specs = ",".join(c.spec for c in entrants(samples, CATALOGUE, size))
            words: list[object] = ["--collective", "alltoall", "--algorithms", specs]
            words += ["--sizes", size]
            words += ["--output", tuning.folder / "build" / "families"]
            yield from tuning.run("compare", *words)["rows"]

    def _at(self, sizes: Sequence[int]) -> list[str]:
        # A barrier has no size to ask for.
        text = ",".join(str(size or 1) for size in sizes)
        return ["--collectives", self.collective, "--sizes", text]


@contextmanager
def _with_congestion(name: str) -> Iterator[None]:
    """Give this process's environment the lab's congestion control, as commands get it."""
    before = os.environ.get(CONGESTION_VARIABLE)
    os.environ[CONGESTION_VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ[CONGESTION_VARIABLE]
        else:
            os.environ[CONGESTION_VARIABLE] = before


def _parts_of(collective: str) -> set[str]:
    """Return the collectives that a collective can be made of, itself included."""
    every = (part.collective for one in CATALOGUE.of(collective) for part in one.parts)
    return {collective, *every}


def _names_of(together: str) -> set[str]:
    """Return the collectives of a tuning by its name."""
    return set(CATALOGUE.collectives if together == ALL else together.split("+"))


def _hash(form: Any) -> str:
    """Return the first characters of a hash, enough to tell results apart."""
    return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()[:12]


def measure_overhead(library: Path) -> dict[str, float]:
    """Return the nanoseconds that intercepting a call costs, by collective."""
    tools = [f"MPIEXEC={find_mpi('mpich').mpiexec}", f"MPICC={Toolchain.find().mpicc}"]
    command = ["make", "--silent", "-C", str(library), *tools, "overhead"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    _, *lines = (line.split() for line in result.stdout.splitlines())
    return {name: float(overhead) for name, _, _, overhead in lines}


def keep_overhead(tuning: Tuning, anew: bool = False) -> None:
    """Measure what intercepting costs in the library of a tuning, where that is not kept."""
    is_there = (tuning.folder / DECISION).exists()
    if is_there and (anew or not tuning.kept.has_overheads):
        found = measure_overhead(tuning.folder)
        tuning.log(OVERHEAD, found)
        tuning.kept.with_overheads(found).write()
