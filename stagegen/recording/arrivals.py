"""The process arrival patterns of a program, in numbers: what ``stagegen arrivals`` tells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagegen.recording.arrival_phases import Phase, phases_of
from stagegen.recording.calls import Aligned, Calls, align
from stagegen.recording.functions import PERSISTENT
from stagegen.recording.messages import MessageTimes
from stagegen.recording.metrics import Metrics, metrics_of
from stagegen.recording.model import Array, Recording

#: Operations with messages of at most this many bytes are small (Faraj 2006, §4.2.2.4).
SMALL = 1000

#: The ends of the classes of worst-case imbalance factors (Faraj 2006, Fig. 4.12).
CLASSES = (1, 2, 4, 8, 16, 32, math.inf)


@dataclass(frozen=True, eq=False)
class SiteArrivals:
    """The arrival patterns at a site's calls of one size, on one communicator.

    Attributes:
        calls: the calls.
        metrics: of each call.
        message: seconds of one message of the operation's size; None if it was not measured.
        phases: of the worst-case imbalance time.
    """

    calls: Calls
    metrics: Metrics
    message: float | None
    phases: tuple[Phase, ...]

    @property
    def average_factors(self) -> Array | None:
        """The average-case imbalance factor of each call; None without a message's time."""
        return None if self.message is None else self.metrics.average / self.message

    @property
    def worst_factors(self) -> Array | None:
        """The worst-case imbalance factor of each call."""
        return None if self.message is None else self.metrics.worst / self.message

    def to_json(self) -> dict[str, Any]:
        """Return the form for programs; times in seconds."""
        calls, metrics = self.calls, self.metrics
        return {
            "site": calls.site,
            "collective": calls.collective,
            "mode": calls.mode,
            "size": calls.size,
            "communicator": calls.communicator,
            "ranks": list(calls.ranks),
            "calls": len(calls.sequences),
            "average_imbalance_s": _mean(metrics.average),
            "worst_imbalance_s": _mean(metrics.worst),
            "greatest_imbalance_s": float(metrics.worst.max()),
            "message_s": self.message,
            "average_factor": _mean(self.average_factors),
            "worst_factor": _mean(self.worst_factors),
            "greatest_factor": _greatest(self.worst_factors),
            "balanced": _balanced(self.worst_factors),
            "elapsed_s": _mean(metrics.elapsed),
            "waiting_s": _mean(metrics.waiting),
            "operation_s": _mean(metrics.operation),
            "synchronisation_delay_s": _mean(metrics.delay),
            "phases": [[one.first, one.last, one.median] for one in self.phases],
        }


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The arrival patterns of a program.

    Attributes:
        recording: what they are from.
        aligned: its calls, and the errors of the clocks.
        sites: those with two ranks or more; those that take the most time first.
    """

    recording: Recording
    aligned: Aligned
    sites: tuple[SiteArrivals, ...]

    @property
    def seconds(self) -> float | None:
        """From MPI_Init to MPI_Finalize (Table 4.8), the longest of the ranks; None if unknown."""
        spans = [(one.ended - one.begun) * 1e-9 for one in self.recording.ranks if one.ended]
        return max(spans, default=None)

    @property
    def communication(self) -> float:
        """Seconds that a rank spends in blocking collectives, the mean over the ranks."""
        spent = sum(_total(site.metrics.elapsed) * len(site.calls.ranks) for site in self.sites)
        return spent / max(1, len(self.recording.ranks))

    def factors(self, worst: bool) -> float | None:
        """Return the mean imbalance factor of all calls (Tables 4.10 and 4.11)."""
        known = [s.worst_factors if worst else s.average_factors for s in self.sites]
        found = [one for one in known if one is not None]
        return float(np.concatenate(found).mean()) if found else None

    def distribution(self, small: bool) -> tuple[float, ...] | None:
        """Return the share of calls in each of :data:`CLASSES`; None if there is none.

        Args:
            small: of operations with small messages, or of all others.
        """
        found = [
            site.worst_factors
            for site in self.sites
            if site.worst_factors is not None and (site.calls.message <= SMALL) == small
        ]
        if not found:
            return None
        return class_shares(np.concatenate(found))

    def to_json(self) -> dict[str, Any]:
        """Return the form for programs; times in seconds."""
        clocks = self.aligned.clocks
        return {
            "ranks": self.recording.size,
            "missing_ranks": list(self.recording.missing),
            "finished": self.recording.finished,
            "dropped_calls": self.recording.dropped,
            "unmatched_calls": self.aligned.unmatched,
            "clock_error_s": clocks.error,
            "proven_clock_error_s": clocks.proven if math.isfinite(clocks.proven) else None,
            "program_s": self.seconds,
            "collectives_s": self.communication,
            "average_factor": self.factors(worst=False),
            "worst_factor": self.factors(worst=True),
            "classes": [None if math.isinf(end) else end for end in CLASSES],
            "distribution": {
                "small": self.distribution(small=True),
                "medium_and_large": self.distribution(small=False),
            },
            "sites": [site.to_json() for site in self.sites],
        }


def class_shares(factors: Array) -> tuple[float, ...]:
    """Return which share of some imbalance factors is in each of :data:`CLASSES`."""
    places = np.searchsorted(CLASSES, factors, side="right")
    counts = np.bincount(places, minlength=len(CLASSES))[: len(CLASSES)]
    return tuple(float(n) / len(factors) for n in counts)


def arrivals_of(recording: Recording, times: MessageTimes | None = None) -> Arrivals:
    """Return the arrival patterns of a recording.

    Args:
        recording: the recording.
        times: of messages on its cluster; without them there are no imbalance factors.
    """
    aligned = align(recording)
    sites = [
        _site(calls, times)
        for calls in aligned.calls
        if len(calls.ranks) > 1 and calls.mode != PERSISTENT
    ]
    return Arrivals(recording, aligned, tuple(sorted(sites, key=_importance)))


def _site(calls: Calls, times: MessageTimes | None) -> SiteArrivals:
    metrics = metrics_of(calls)
    message = None if times is None else times.of(calls.message)
    return SiteArrivals(calls, metrics, message, phases_of(metrics.worst))


def _importance(site: SiteArrivals) -> tuple[float, str, int, int]:
    calls = site.calls
    spent = _total(site.metrics.elapsed) * len(calls.ranks)
    return -spent, calls.site, calls.size, calls.communicator


def _total(values: Array) -> float:
    return float(np.nansum(values))


def _mean(values: Array | None) -> float | None:
    if values is None:
        return None
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _greatest(values: Array | None) -> float | None:
    return None if values is None else float(values.max())


def _balanced(factors: Array | None) -> float | None:
    """Return the share of balanced calls: all ranks arrive within the time of a message."""
    return None if factors is None else float((factors < 1).mean())
