"""A source for ranks that come late: numbers experiments, and makes looks of several.

Every repetition is an experiment with delays of its own, and one pattern of arrivals says little.
So a look at candidates is the mean of some experiments, the same ones for all looks at a size.
Equal requests, such as the rounds of a launch, go on with further experiments. When candidates
leave a launch, the request for the others says which is the first one that is left.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

from stagegen.measure.arrivals import LOOK
from stagegen.measure.records import Candidate, Check, Measurement, Request
from stagegen.measure.source import Source
from stagegen.topology import WHOLE


class Experiments:
    """Numbers the experiments of requests by the requests before, so that a log answers alike.

    Args:
        source: of checks and measurements.
    """

    def __init__(self, source: Source):
        self._source = source
        self._done: Counter[Hashable] = Counter()

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        """Pass checks on: they have no arrivals."""
        return self._source.check(collective, candidates, communicator)

    def measure(self, request: Request) -> Measurement:
        """Measure in experiments that no equal request had before."""
        if request.timing.arrivals is None:
            return self._source.measure(request)
        if request.look:
            many = self._source.measure(replace(request, repetitions=LOOK))
            means = tuple((statistics.fmean(s),) for s in many.seconds)
            return Measurement(request, means, took=many.took)
        key = replace(request, repetitions=0)
        numbered = replace(request, first=request.first + self._done[key])
        self._done[key] += request.repetitions
        return replace(self._source.measure(numbered), request=request)
