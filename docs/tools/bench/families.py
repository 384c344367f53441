"""AAPC against what knows no topology: the best of each family, timed in turn in one job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.tools.bench.plan import CATALOGUE
from docs.tools.bench.rows import Time
from stagegen.catalogue import Catalogue
from stagegen.catalogue.algorithm import NATIVE
from stagegen.measure.log import read_log
from stagegen.measure.records import Candidate
from stagegen.measure.source import LogSource
from stagegen.measure.statistics import paired_ratio
from stagegen.measure.validity import last_routines, still_valid
from stagegen.topology import Topology
from stagegen.tune.candidates import default_candidate
from stagegen.tune.choose import Samples, median
from stagegen.tune.scope import Options
from stagegen.tune.tuner import tune

#: Families are compared from this size on: below it, latency decides.
FROM = 32 << 10

#: So many of each family enter, since the best by the log may be so by luck. The native routine
#: is one of those that know no topology, and always there.
ENTRANTS = 2


def samples_of(log: Path, topology: Topology) -> dict[int, Samples]:
    """Return what tuning saw of an alltoall at each size, by a search on its log alone."""
    header, records = read_log(log)
    options = Options.from_json(header)
    catalogue = CATALOGUE.only(last_routines(header, records))
    source = LogSource(still_valid(header, records, CATALOGUE.hashes))
    tuned = tune(topology, catalogue, options, source, lambda: False)
    (outcome,) = (one for one in tuned.outcomes if one.collective == "alltoall")
    return outcome.samples


def entrants(samples: dict[int, Samples], catalogue: Catalogue, size: int) -> tuple[Candidate, ...]:
    """Return the candidates to time at a size: each family's best at the nearest size up to it.

    That size may be far below, where other values of parameters are the best: a search looks at
    long messages only where it expects a gain. So the best one enters with its defaults, too. So
    does the best one at the next larger size: perhaps it had no look at this one.
    """

    def first(sizes: Iterable[int], wanted: Callable[[Candidate], bool]) -> list[Candidate]:
        rankings = (_ranking(samples[known], wanted) for known in sizes)
        return next((ranking for ranking in rankings if ranking), [])

    def best(wanted: Callable[[Candidate], bool], most: int) -> list[Candidate]:
        here = first(sorted((s for s in samples if s <= size), reverse=True), wanted)
        beyond = first(sorted(s for s in samples if s > size), wanted)
        return [*here[:most], *beyond[:1]]

    def with_defaults(family: Sequence[Candidate]) -> tuple[Candidate, ...]:
        usual = (default_candidate(catalogue.find("alltoall", c.algorithm)) for c in family[:1])
        return tuple(dict.fromkeys((*family, *usual)))

    aapc = best(lambda candidate: is_aapc(catalogue, candidate), ENTRANTS)
    others = best(lambda c: is_unaware(catalogue, c) and c.algorithm != NATIVE, ENTRANTS - 1)
    return (*with_defaults(aapc), *with_defaults(others), Candidate(NATIVE))


def _ranking(samples: Samples, wanted: Callable[[Candidate], bool]) -> list[Candidate]:
    """Return some candidates, the best first; those that were dropped while scouting last."""
    some = (candidate for candidate in samples if wanted(candidate))
    return sorted(some, key=lambda c: (samples[c].dropped, median(samples[c]), c))


def is_aapc(catalogue: Catalogue, candidate: Candidate) -> bool:
    """Whether a candidate of alltoall runs an AAPC schedule of all ranks."""
    return catalogue.find("alltoall", candidate.algorithm).needs == "aapc"


def is_unaware(catalogue: Catalogue, candidate: Candidate) -> bool:
    """Whether a candidate of alltoall knows nothing of the topology, and is no composition.

    A composition is as good as what serves its parts, which may be an AAPC routine.
    """
    algorithm = catalogue.find("alltoall", candidate.algorithm)
    return not (algorithm.topology_specific or algorithm.parts)


@dataclass(frozen=True)
class Entrant:
    """The best of a family at one size."""

    routine: str
    over_bound: float


@dataclass(frozen=True)
class Meeting:
    """The best of each family at one size, by the medians of one job.

    Attributes:
        size: in bytes.
        aapc: the best AAPC routine.
        unaware: the best of those that know no topology.
        ratio: AAPC over unaware, from the pairs of each round.
    """

    size: int
    aapc: Entrant
    unaware: Entrant
    ratio: Time

    @property
    def is_level(self) -> bool:
        """Whether AAPC is at least level: it is not slower, or not by more than the noise."""
        return self.ratio.median <= 1 or self.ratio.low <= 1

    def to_json(self) -> dict[str, Any]:
        """Return the form in which it is kept."""
        return {
            "size": self.size,
            "aapc": vars(self.aapc),
            "unaware": vars(self.unaware),
            "ratio": [self.ratio.median, self.ratio.low, self.ratio.high],
        }


def meeting_of(form: Mapping[str, Any]) -> Meeting:
    """Read a meeting that was kept."""
    median_, low, high = form["ratio"]
    aapc, unaware = (Entrant(**form[name]) for name in ("aapc", "unaware"))
    return Meeting(form["size"], aapc, unaware, Time(median_, (low, high)))


def meetings(rows: Sequence[Any], catalogue: Catalogue) -> tuple[Meeting, ...]:
    """Return the best candidate of each family, from rows of ``stagegen compare``.

    A size at which one of the families has nobody is left out.
    """
    found = []
    for size in sorted({row["size"] for row in rows}):
        known = [(Candidate.from_spec(row["routine"]), row) for row in rows if row["size"] == size]
        aapc = _best(row for candidate, row in known if is_aapc(catalogue, candidate))
        unaware = _best(row for candidate, row in known if is_unaware(catalogue, candidate))
        if aapc and unaware:
            ratio = paired_ratio(aapc["seconds"], unaware["seconds"])
            pair = Time(ratio.median, (ratio.low, ratio.high))
            found.append(Meeting(size, _entrant(aapc), _entrant(unaware), pair))
    return tuple(found)


def _best(family: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return min(family, key=lambda row: float(row["median_s"]), default=None)


def _entrant(row: Mapping[str, Any]) -> Entrant:
    return Entrant(row["routine"], row["over_bound"])
