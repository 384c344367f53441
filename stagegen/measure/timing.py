"""How the measuring session times the calls of a repetition (docs/timing.md).

The mechanisms are C files, of stagegen or a user's own (:mod:`stagegen.generate.timings`). Those of
Faraj 2006, Fig. 4.3, are there: (a) mpptest, (b) barrier, (c) computation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stagegen.generate.timings import BUILT_IN
from stagegen.measure.arrivals import METRICS_LATE, Arrivals, arrivals_from_json
from stagegen.measure.entries import entry, natural, number
from stagegen.measure.iterations import ADAPTIVE, PRESETS, Iterations

TIMINGS = tuple(BUILT_IN)

#: How the times of all ranks become one: the slowest rank's, or the mean over the ranks, as in
#: Faraj 2006, §4.1.2.2; if ranks come late, the mean, or the time from the last arrival to the last
#: exit. The first of each is the default.
METRICS_PLAIN = ("slowest", "mean")
METRICS = tuple(dict.fromkeys((*METRICS_PLAIN, *METRICS_LATE)))


@dataclass(frozen=True)
class Habits:
    """What a mechanism does between the calls of a repetition; the defaults are a user's own.

    Attributes:
        is_apart: whether a barrier comes before each call.
        computes: whether it may compute before a call.
        is_late: whether ranks come late.
        forms: how ``--timing`` names it and what each form does, if more than a name is written.
    """

    is_apart: bool = False
    computes: bool = True
    is_late: bool = False
    forms: tuple[tuple[str, str], ...] = ()


#: What is written behind the names of mechanisms in which ranks come late.
_RANDOM = (
    (
        "imbalance:F",
        "ranks come late by random delays below F message times, or below a time such as 20ms",
    ),
)
_RECORDED = (
    ("replay:FILE#SITE", "as late as in a recorded program"),
    ("replay:RANK=TIME,…", "these ranks come late"),
)


_HABITS: Mapping[str, Habits] = {
    "barrier": Habits(is_apart=True, computes=False),
    "computation": Habits(),
    "imbalance": Habits(is_apart=True, computes=False, is_late=True, forms=_RANDOM),
    "mpptest": Habits(computes=False),
    "replay": Habits(is_apart=True, computes=False, is_late=True, forms=_RECORDED),
}

#: The mechanisms in which ranks come late; those that have a barrier before each call; and those
#: that never compute.
LATE = frozenset(name for name, habits in _HABITS.items() if habits.is_late)
APART = frozenset(name for name, habits in _HABITS.items() if habits.is_apart)
IDLE = frozenset(name for name, habits in _HABITS.items() if not habits.computes)


def mechanisms_help() -> str:
    """Return the mechanisms as ``--timing`` takes them, for help texts."""
    return ", ".join(
        ", ".join(f"{form} ({effect})" for form, effect in _HABITS[name].forms) or name
        for name in TIMINGS
    )


#: If times decide, a repetition has enough calls to last this many seconds, at most CALLS_MOST.
REPETITION_SECONDS = 0.02
CALLS_MOST = 8

#: If times decide, a repetition has at least so many calls, however long they take. Without a
#: barrier between calls, a mechanism is about what one call does to the next, and the first call of
#: a repetition has none before it. Of 5 calls, 4 are as they are in a program. 5 is also the
#: source's least ITER (Faraj 2006, §4.1.2.2). With a barrier before each call, one call is enough.
CALLS_LEAST = 5
CALLS_LEAST_APART = 1


@dataclass(frozen=True)
class Timing:
    """How a repetition is timed.

    Attributes:
        mechanism: one of :data:`TIMINGS`, or the name of a user's own.
        computation_ms: what a rank computes before each call, in milliseconds; 0 if the mechanism
            never computes.
        metric: one of :data:`METRICS`.
        iterations: how many calls make a repetition.
        arrivals: how late ranks come, if the mechanism is one of :data:`LATE`; else None.
        hash: of a user's own mechanism; else empty.
        operations: of logs from before computation was given in milliseconds: the BOUND of
            Fig. 4.3 (c), in thousands of operations.
    """

    mechanism: str = "barrier"
    computation_ms: float = 0.0
    metric: str = "slowest"
    iterations: Iterations = PRESETS[ADAPTIVE]
    hash: str = ""
    operations: int = 0
    arrivals: Arrivals | None = None

    def calls(self, size: int, seconds: float | None = None) -> int:
        """Return ITER: how many calls make a repetition.

        Args:
            size: of the message, in bytes.
            seconds: what a call takes; None if unknown yet, as in a first look.
        """
        fixed = self.iterations.at(size)
        if fixed is not None:
            return fixed
        least = CALLS_LEAST_APART if self.mechanism in APART else CALLS_LEAST
        if seconds is None:
            return least
        return max(least, min(CALLS_MOST, math.ceil(REPETITION_SECONDS / max(seconds, 1e-9))))

    @property
    def recorded(self) -> Timing:
        """What a record tells of it: a record counts its calls, whatever decided their number."""
        return replace(self, iterations=PRESETS[ADAPTIVE])

    def to_json(self) -> dict[str, Any]:
        """Return the form of the log's header."""
        return {
            "mechanism": self.mechanism,
            **self._common(),
            "iterations": self.iterations.to_json(),
            **({"hash": self.hash} if self.hash else {}),
        }

    def to_record(self) -> dict[str, Any]:
        """Return the entries of the record of a measurement."""
        own = {"timing_hash": self.hash} if self.hash else {}
        return {"timing": self.mechanism, **self._common(), **own}

    def _common(self) -> dict[str, Any]:
        late = {"arrivals": self.arrivals.to_json()} if self.arrivals else {}
        return {
            "computation": self.operations,
            "computation_ms": self.computation_ms,
            "metric": self.metric,
            **late,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Timing:
        """Read the form of the log's header.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        iterations = Iterations.from_json(form.get("iterations", ADAPTIVE))
        return replace(_read(form, "mechanism", "hash"), iterations=iterations)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Timing:
        """Read the entries of the record of a measurement.

        Raises:
            KeyError, TypeError, ValueError: they are damaged.
        """
        return _read(record, "timing", "timing_hash")


def metrics_of(mechanism: str) -> tuple[str, ...]:
    """Return the metrics of a mechanism; the first is the default."""
    return METRICS_LATE if mechanism in LATE else METRICS_PLAIN


def _read(form: Mapping[str, Any], name: str, own: str) -> Timing:
    """Read what header and records have in common; old logs have neither metric nor milliseconds.

    Raises:
        KeyError, TypeError, ValueError: it is damaged.
    """
    mechanism = entry(form, name, str)
    digest = entry(form, own, str) if own in form else ""
    if mechanism not in TIMINGS and not digest:
        raise ValueError(f"`{name}` must be one of {', '.join(TIMINGS)}, or have `{own}`")
    arrivals = arrivals_from_json(entry(form, "arrivals", dict)) if mechanism in LATE else None
    metric = form.get("metric", METRICS[0])
    if metric not in metrics_of(mechanism):
        raise ValueError(f"`metric` must be one of {', '.join(metrics_of(mechanism))}")
    milliseconds = number(form.get("computation_ms", 0.0))
    return Timing(
        mechanism,
        milliseconds,
        metric,
        hash=digest,
        operations=natural(form, "computation"),
        arrivals=arrivals,
    )
