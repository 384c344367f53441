"""The parts of the benchmark: tune, compare, AAPC against the rest, the cost of intercepting.

A part is of one cluster, one congestion control and one collective. It has a folder of its own,
``generated/bench-<cluster>-<congestion>/<collective>``, which is what ``stagegen tune`` leaves,
with ``compared.json`` and ``families.json`` in it. What is there already is not measured again,
so the benchmark may be stopped at any time and started again, or run part by part.
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

from docs.tools.bench.families import FROM, Meeting, entrants, meetings, samples_of
from docs.tools.bench.plan import CATALOGUE, Cluster
from docs.tools.bench.rows import Row, row_of
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
        self._tune(anew)
        if anew or self._result(COMPARED) is None:
            sizes = self.cluster.compared(self.collective)
            self._keep(COMPARED, self._run("bench", "--library", self.folder, *self._at(sizes)))
        if self.collective == "alltoall" and (anew or self._result(FAMILIES) is None):
            self._keep(FAMILIES, {"rows": list(self._families())})

    def rows(self) -> tuple[Row, ...]:
        """Return what was compared; nothing before it was."""
        result = self._result(COMPARED)
        return tuple(map(row_of, result["rows"])) if result else ()

    def environment(self) -> dict[str, Any] | None:
        """Return where it was compared; None before it was."""
        result = self._result(COMPARED)
        return result["environment"] if result else None

    def meetings(self) -> tuple[Meeting, ...]:
        """Return how AAPC fared against the rest; nothing before this was measured."""
        result = self._result(FAMILIES)
        return meetings(result["rows"], CATALOGUE) if result else ()

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

    def _keep(self, name: str, result: Any) -> None:
        form = {"decision": self._decision(), **result}
        write_file(self.folder / name, json.dumps(form, ensure_ascii=False) + "\n")

    def _result(self, name: str) -> Any:
        """Return a result, if it is of the library that is there now."""
        path = self.folder / name
        if not path.exists():
            return None
        form = json.loads(path.read_text(encoding="utf-8"))
        return form if form["decision"] == self._decision() else None

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
    if not path.exists():
        write_file(path, json.dumps(measure_overhead(part.folder)) + "\n")


def overhead_of(part: Part) -> dict[str, float]:
    """Return what intercepting costs in a part's library; empty before it was measured."""
    path = part.folder / OVERHEAD
    found: dict[str, float] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found
