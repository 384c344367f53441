"""The parts of the benchmark: tune, compare, AAPC against the rest, the cost of intercepting.

A part is of one cluster, one congestion control and one collective. It has a folder of its own,
``generated/bench-<cluster>-<congestion>/<collective>``, which is what ``stagegen tune`` leaves,
with ``compared.json`` and ``families.json`` in it: all that the commands told. Of this, what pages
need goes to docs/results/bench/ (``kept``). What is kept there already, of the routines of today,
is not measured again, so the benchmark may be stopped at any time and started again, or run part
by part, on several machines.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.tools.bench.families import FROM, entrants, meetings, samples_of
from docs.tools.bench.kept import Kept, Source, read_kept
from docs.tools.bench.plan import CATALOGUE, Cluster
from stagegen.generate import Toolchain
from stagegen.generate.write import write_file
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE
from stagegen.measure.launch.mpi import find_mpi

GENERATED = Path("generated")
LOG, DECISION = "measurements.jsonl", "decision.json"
COMPARED, FAMILIES, OVERHEAD = "compared.json", "families.json", "overhead.json"


@dataclass(frozen=True)
class Part:
    """One collective on one cluster with one congestion control."""

    cluster: Cluster
    congestion: str
    collective: str

    @property
    def folder(self) -> Path:
        """What ``stagegen tune`` makes for it, and where its results are."""
        return GENERATED / f"bench-{self.cluster.name}-{self.congestion}" / self.collective

    def measure(self, anew: bool = False) -> None:
        """Do what has not been done yet, or all of it.

        Raises:
            subprocess.CalledProcessError: a command failed; it has said why.
        """
        if self.is_kept() and not anew:
            return
        self._tune(anew)
        own = Source(_short(self._decision()), self._routines())
        if anew or self._sources("rows") != {own}:
            sizes = self.cluster.compared(self.collective)
            found = self._run("bench", "--library", self.folder, *self._at(sizes))
            self._log(COMPARED, found)
            self.kept.with_rows(found["rows"], own, found["environment"]).write()
        if self.collective == "alltoall" and (anew or self._sources("meetings") != {own}):
            rows = list(self._families())
            self._log(FAMILIES, {"rows": rows})
            self.kept.with_meetings(meetings(rows, CATALOGUE), own).write()

    def is_kept(self) -> bool:
        """Whether its results are kept, and of the routines of today, on whatever machine."""
        lists = ["rows", *(["meetings"] if self.collective == "alltoall" else [])]
        found = {source for name in lists for source in self._sources(name)}
        routines = {source and source.routines for source in found}
        return len(found) == 1 and routines == {self._routines()}

    @property
    def kept(self) -> Kept:
        """What is kept of its cluster and congestion control."""
        return read_kept(self.cluster.name, self.congestion)

    def _sources(self, name: str) -> set[Source | None]:
        """Return what its points in a list of kept results are of."""
        sizes = self.cluster.compared(self.collective)
        if name == "meetings":
            return self.kept.sources(name, ((size,) for size in sizes if size >= FROM))
        return self.kept.sources(name, ((self.collective, size) for size in sizes))

    def _routines(self) -> str:
        """Return the hash of all routines of the collective."""
        own = {name: one for name, one in CATALOGUE.hashes.items() if self._is_own(name)}
        return _short(hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest())

    def _is_own(self, name: str) -> bool:
        return name.startswith(f"{self.collective}/")

    def _tune(self, anew: bool) -> None:
        sizes = ",".join(map(str, self.cluster.tuned_at(self.collective)))
        words = ["--collectives", self.collective, "--sizes", sizes, "--output", self.folder]
        words += ["--communicators", "whole"]  # only its calls are compared
        resume = (self.folder / LOG).exists() and not anew
        self._stagegen("tune", *words, *(["--resume"] if resume else []))

    def _families(self) -> Iterator[Any]:
        """Yield the rows of the contests, one contest for each size: entrants differ."""
        samples = samples_of(self.folder / LOG, self.cluster.topology())
        for size in self.cluster.compared("alltoall"):
            if size >= FROM:
                specs = ",".join(c.spec for c in entrants(samples, CATALOGUE, size))
                words = ["--collective", "alltoall", "--algorithms", specs, "--sizes", size]
                words += ["--output", self.folder / "build" / "families"]
                yield from self._run("compare", *words)["rows"]

    def _at(self, sizes: Sequence[int]) -> list[str]:
        # A barrier has no size to ask for.
        text = ",".join(str(size or 1) for size in sizes)
        return ["--collectives", self.collective, "--sizes", text]

    def _run(self, command: str, *words: object) -> Any:
        """Return the JSON that a measuring command prints."""
        more = ("--repetitions", self.cluster.repetitions, "--format", "json")
        return json.loads(self._stagegen(command, *words, *more))

    def _stagegen(self, command: str, *words: object) -> str:
        file = self.cluster.file(self.folder.parent)
        line = [sys.executable, "-m", "stagegen", command, "--topology", str(file)]
        environment = {**os.environ, CONGESTION_VARIABLE: self.congestion}
        print(f"{self.folder}: {command}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [*line, *map(str, words)], check=True, stdout=subprocess.PIPE, env=environment
        )
        return done.stdout.decode()

    def _log(self, name: str, result: Any) -> None:
        """Leave all that a command told beside what made it."""
        write_file(self.folder / name, json.dumps(result, ensure_ascii=False) + "\n")

    def _decision(self) -> str:
        """Return the hash of the decision table: a library that decides otherwise is another."""
        path = self.folder / DECISION
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def measure_overhead(library: Path) -> dict[str, float]:
    """Return the nanoseconds that intercepting a call costs, by collective."""
    tools = [f"MPIEXEC={find_mpi('mpich').mpiexec}", f"MPICC={Toolchain.find().mpicc}"]
    command = ["make", "--silent", "-C", str(library), *tools, "overhead"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    _, *lines = (line.split() for line in result.stdout.splitlines())
    return {name: float(overhead) for name, _, _, overhead in lines}


def keep_overhead(part: Part) -> None:
    """Measure what intercepting costs in a part's library, where that is not known."""
    path = part.folder / OVERHEAD
    if (part.folder / DECISION).exists() and not path.exists():
        found = measure_overhead(part.folder)
        write_file(path, json.dumps(found) + "\n")
        part.kept.with_overheads(found).write()


def _short(digest: str) -> str:
    """Return as much of a hash as tells results apart."""
    return digest[:12]
