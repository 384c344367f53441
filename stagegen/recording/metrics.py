"""Metrics of process arrival patterns (Faraj 2006, §4.2.1), for each call of a site.

Times are seconds. The metrics of a call are those of all of its ranks together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stagegen.recording.calls import Calls
from stagegen.recording.functions import BLOCKING
from stagegen.recording.model import Array


@dataclass(frozen=True, eq=False)
class Metrics:
    """Metrics of the calls of a site; each is an array over the calls.

    Attributes:
        average: the average-case imbalance time, the mean distance of a rank's arrival from the
            mean arrival.
        worst: the worst-case imbalance time, from the first arrival to the last.
        elapsed: what a rank spends in the call, the mean over the ranks. It contains the waiting.
        waiting: what of it passes before the last rank arrives, the mean over the ranks.
        operation: the rest of it.
        delay: the synchronisation delay, from the last arrival to the last exit (Mamidala, Liu and
            Panda, §5.3); unlike the elapsed time, it does not contain the skew.

    The last four are NaN where an exit is not the end of the operation, or is not known.
    """

    average: Array
    worst: Array
    elapsed: Array
    waiting: Array
    operation: Array
    delay: Array


def metrics_of(calls: Calls) -> Metrics:
    """Return the metrics of some calls."""
    arrivals = calls.arrivals
    exits = calls.exits if calls.mode == BLOCKING else np.full_like(arrivals, np.nan)
    last = arrivals.max(axis=1, keepdims=True)
    waiting = np.minimum(exits, last) - arrivals
    return Metrics(
        average=np.abs(arrivals - arrivals.mean(axis=1, keepdims=True)).mean(axis=1),
        worst=arrivals.max(axis=1) - arrivals.min(axis=1),
        elapsed=(exits - arrivals).mean(axis=1),
        waiting=waiting.mean(axis=1),
        operation=(exits - arrivals - waiting).mean(axis=1),
        delay=exits.max(axis=1) - last[:, 0],
    )
