"""Times all plain candidates of a collective at a size, in the lab, by ``stagegen compare``.

All algorithms compete: each with its defaults, and with other values of one parameter at a time.
They are timed in groups, each group beside the native routine, so that a group takes minutes; the
ratio to the native routine of the same group makes groups comparable. The least of many ratios is
partly luck. So the best and the tuned choice meet in one job. If another one wins there, it and the
choice are timed once more, and only this pair counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from docs.tools.bench_tuning.plan import CATALOGUE, EXHAUSTIVE_BOUND, Setting
from docs.tools.bench_tuning.runs import Clock, kept, listed, stagegen
from stagegen.catalogue import applicable
from stagegen.catalogue.algorithm import NATIVE
from stagegen.measure.records import Candidate
from stagegen.tune.bounds import patience
from stagegen.tune.candidates import at_size, variants

#: Seconds that a group may take if its calls take SLOW times their bound, or LATENCY.
GROUP_SECONDS, SLOW, LATENCY = 90.0, 2.0, 0.02

#: Repetitions of the first look, of the meeting, and how many of the best meet.
LOOK, MEETING, BEST = 3, 9, 4

#: Calls of a repetition: the scout of `compare` and an untimed call come on top.
CALLS = 4


class Exhaustive:
    """Ratios to the native routine.

    Args:
        setting: the cluster.
        folder: keeps what was measured.
        clock: of this run.
    """

    def __init__(self, setting: Setting, folder: Path, clock: Clock):
        self._setting, self._folder, self._clock = setting, folder, clock

    def meeting(
        self, collective: str, size: int, also: Sequence[Candidate] = ()
    ) -> dict[Candidate, float]:
        """Return the median times of the best over native's, and of others in the same job.

        Args:
            collective: which one.
            size: in bytes.
            also: other candidates that meet the best, such as compositions.
        """
        ratios = self.looks(collective, size)
        best = sorted(ratios, key=lambda one: (ratios[one], one))[:BEST]
        native = Candidate(NATIVE)
        met = [native, *dict.fromkeys(c for c in (*also, *best) if c != native)]
        return self.ratios(collective, size, met, MEETING, "meeting")

    def loss(self, collective: str, size: int, choice: Candidate) -> float:
        """Return the time of a choice over that of the best of all candidates."""
        met = self.meeting(collective, size, (choice,))
        best = min(met, key=lambda one: (met[one], one != choice, one))
        return self.of_pair(collective, size, choice, best)

    def looks(self, collective: str, size: int) -> dict[Candidate, float]:
        """Return the ratios of the first look at all candidates."""
        found: dict[Candidate, float] = {}
        for number, group in enumerate(self._groups(collective, size)):
            both = (Candidate(NATIVE), *group)
            found |= self.ratios(collective, size, both, LOOK, f"look-{number}")
        return found

    def ratios(
        self,
        collective: str,
        size: int,
        candidates: Sequence[Candidate],
        repetitions: int,
        name: str,
    ) -> dict[Candidate, float]:
        """Time candidates in turn; return the ratios to the first, each a median of pairs."""
        specs = listed([candidate.spec for candidate in candidates])

        def make() -> Mapping[str, float]:
            words = ["--topology", self._setting.file, "--collective", collective]
            words += ["--algorithms", specs, "--sizes", size or 1, "--repetitions", repetitions]
            words += ["--output", self._folder / "build", "--format", "json"]
            rows = json.loads(stagegen(self._clock, "compare", *words))["rows"]
            return {row["routine"]: row["ratio"] for row in rows}

        path = self._folder / f"{collective}-{size}-{name}.json"
        answer = kept(path, make)
        if set(answer) != {candidate.spec for candidate in candidates}:
            path.unlink()  # it is about another choice: the table was made anew since
            answer = kept(path, make)
        return {Candidate.from_spec(spec): ratio for spec, ratio in answer.items()}

    def of_pair(self, collective: str, size: int, used: Candidate, reference: Candidate) -> float:
        """Return the time of one candidate over another's, timed in turn; 1 if they are one."""
        if used == reference:
            return 1.0
        return self.ratios(collective, size, (reference, used), MEETING, "pair")[used]

    def _groups(self, collective: str, size: int) -> list[list[Candidate]]:
        everyone = plain_candidates(self._setting, collective, size)
        call = max(LATENCY, SLOW * _bound(self._setting, collective, size))
        count = max(1, int(GROUP_SECONDS / (CALLS * LOOK * call)) - 1)
        return [everyone[first : first + count] for first in range(0, len(everyone), count)]


def plain_candidates(setting: Setting, collective: str, size: int) -> list[Candidate]:
    """Return all candidates but native and compositions, each once."""
    ranks = setting.topology.rank_count
    return list(
        dict.fromkeys(
            at_size(algorithm, candidate, size, ranks)
            for algorithm in applicable(CATALOGUE, setting.topology)
            if algorithm.collective == collective
            and algorithm.name != NATIVE
            and not algorithm.parts
            and algorithm.handles(size)
            and algorithm.works_for(ranks)
            for candidate in variants(algorithm, size, ranks)
        )
    )


def quick_sizes(setting: Setting, collective: str) -> tuple[int, ...]:
    """Return the sizes at which all candidates can be timed in minutes.

    Where one rule serves all sizes, it is chosen for all of them, so some of them say nothing.
    """
    sizes = setting.sizes_of(collective)
    quick = tuple(size for size in sizes if _bound(setting, collective, size) <= EXHAUSTIVE_BOUND)
    return quick if quick == sizes or not CATALOGUE.collective(collective).has_one_rule else ()


def _bound(setting: Setting, collective: str, size: int) -> float:
    """Return the seconds of the lower bound; 0 without data."""
    described = CATALOGUE.collective(collective)
    return patience(setting.topology, described, size) if described.has_data else 0.0
