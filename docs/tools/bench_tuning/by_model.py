"""The parts on the model cluster. The true times are known, so every loss is exact.

A part takes seconds, so it keeps no log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from docs.tools.bench_tuning.drawn import draw_jobs, draw_program, whole_calls
from docs.tools.bench_tuning.plan import CATALOGUE, Setting
from docs.tools.bench_tuning.plan import SHARES_ON_MODEL as SHARES
from docs.tools.bench_tuning.results import Row, summary
from docs.tools.bench_tuning.truth import CatalogueCluster, CatalogueTruth
from stagegen.measure.records import Candidate
from stagegen.measure.statistics import MARGIN
from stagegen.topology import WHOLE
from stagegen.tune.allowance import allowance
from stagegen.tune.decision import CLUSTER, HOSTS, NATIVE_CANDIDATE, ONE_HOST, DecisionTable
from stagegen.tune.loss import Loss, total
from stagegen.tune.program import options_for, program_of
from stagegen.tune.scope import Options
from stagegen.tune.shapes import Shape
from stagegen.tune.tuner import tune


@dataclass(frozen=True)
class Tuning:
    """A tuning on the model.

    Attributes:
        decision: its tables.
        seconds: how long it would have taken.
    """

    decision: DecisionTable
    seconds: float


class Modelled:
    """A setting on the model cluster.

    Args:
        setting: cluster, collectives, sizes, and the seed of the true times.
    """

    def __init__(self, setting: Setting):
        self.setting = setting
        self._topology = setting.topology
        self._jobs = draw_jobs(self._topology, setting.seed) if setting.part == "jobs" else ()
        jobs = (job.communicator(self._topology) for job in self._jobs)
        self._truth = CatalogueTruth(
            self._topology, CATALOGUE, (*setting.communicators, *jobs), setting.seed
        )

    def result(self) -> dict[str, Any]:
        """Return the result of the part."""
        parts: Mapping[str, Callable[[], dict[str, Any]]] = {
            "whole": self._whole,
            "exhaustive": self._exhaustive,
            "twice": self._twice,
            "budget": self._budget,
            "program": self._program,
            "shapes": self._shapes,
            "jobs": self._in_jobs,
        }
        return parts[self.setting.part]()

    def _tune(self, options: Options, seed: int = 1) -> Tuning:
        cluster = CatalogueCluster(self._truth, seed)
        tuned = tune(self._topology, CATALOGUE, options, cluster, lambda: False)
        return Tuning(tuned.decision, cluster.seconds)

    @cached_property
    def _full(self) -> Tuning:
        return self._tune(self.setting.options())

    def _whole(self) -> dict[str, Any]:
        least = sum(
            2 * (self._truth.best(name, size, WHOLE)[0] + self._native(name, size))
            for name in self.setting.collectives
            for size in self.setting.sizes_of(name)
        )
        return {"seconds": self._full.seconds, "least_seconds": least}

    def _exhaustive(self) -> dict[str, Any]:
        losses = {
            name: self._loss(name, self._full, partial(self._best, name))
            for name in self.setting.collectives
        }
        shares = {name: loss.share for name, loss in losses.items()}
        return {"loss": total(losses.values()), "by_collective": shares}

    def _twice(self) -> dict[str, Any]:
        other = self._tune(self.setting.options(seed=2), seed=2)
        losses = [
            self._loss(name, self._full, partial(self._seconds, other, name))
            for name in self.setting.collectives
        ]
        there = total(losses) or 0.0
        shares = [loss.share or 0.0 for loss in losses]
        return {
            "a_in_b": there,
            "b_in_a": 1 / (1 + there) - 1,
            "worst": max(abs(share) for share in shares),
            "seconds": [self._full.seconds, other.seconds],
        }

    def _budget(self) -> dict[str, Any]:
        return {"full_seconds": self._unlimited.seconds, "steps": list(map(self._within, SHARES))}

    @cached_property
    def _unlimited(self) -> Tuning:
        return self._tune(self.setting.unlimited())

    def _within(self, share: float) -> dict[str, Any]:
        """Return the result of a tuning within a share of the time without a budget."""
        budget = share * self._unlimited.seconds
        tuned = self._tune(replace(self.setting.options(), total=budget))
        losses = {
            name: self._loss(name, tuned, partial(self._best, name))
            for name in self.setting.collectives
        }
        known = [
            one.loss >= losses[name].ratios[one.size] - 1
            for name in self.setting.collectives
            if (table := tuned.decision.table(name, CLUSTER, self._shape))
            for one in table.estimates
            if one.loss is not None and one.size in losses[name].ratios
        ]
        spending = tuned.decision.spending
        return {
            "share": share,
            "budget": budget,
            "seconds": tuned.seconds,
            "loss": total(losses.values()),
            "stated": spending.loss if spending else None,
            "unknown": spending.unknown if spending else 0,
            "held": sum(known) / len(known) if known else None,
        }

    def _program(self) -> dict[str, Any]:
        largest = self.setting.sizes[-1]
        names = self.setting.collectives
        calls = draw_program(
            self._topology, CATALOGUE, names, self.setting.seed, self._native, largest
        )
        program = program_of(calls, self._topology)
        options = options_for(program, self.setting.options(), CATALOGUE, self._topology)
        total = allowance(self._topology, CATALOGUE, options)
        tuned = self._tune(replace(options, total=total))
        used, full = (
            sum(
                count * self._seconds(tuning, name, size)
                for (name, size), count in whole_calls(calls).items()
            )
            for tuning in (tuned, self._full)
        )
        return {
            "seconds": tuned.seconds,
            "full_seconds": self._full.seconds,
            "loss": used / full - 1,
            "called": len(calls),
        }

    def _shapes(self) -> dict[str, Any]:
        names = tuple(one.name for one in self.setting.communicators)
        every = self._tune(self.setting.options(names))
        return {
            "seconds": every.seconds,
            "whole_seconds": self._full.seconds,
            "communicators": len(names),
        }

    def _in_jobs(self) -> dict[str, Any]:
        names = tuple(one.name for one in self.setting.communicators)
        decision = self._tune(self.setting.options(names)).decision
        rows: list[Row] = []
        for job in self._jobs:
            ranks = job.communicator(self._topology)
            shape = Shape.of(ranks.hosts, len(ranks.ranks))
            everyone = len(ranks.ranks) == self._topology.rank_count
            kind = CLUSTER if everyone else ONE_HOST if shape.hosts == 1 else HOSTS
            for name in self.setting.collectives:
                table = decision.table(name, kind, shape)
                described = CATALOGUE.collective(name)
                for size in self.setting.sizes if described.has_data else (0,):
                    choice = table.choice(size) if table else NATIVE_CANDIDATE
                    native = self._truth(name, NATIVE_CANDIDATE, size, ranks.name)
                    used = self._truth(name, choice, size, ranks.name)
                    rows.append(Row(name, size, job.name, choice.algorithm, native / used))
        return summary(rows)

    def _native(self, collective: str, size: int) -> float:
        return self._truth(collective, NATIVE_CANDIDATE, size, WHOLE)

    def _best(self, collective: str, size: int) -> float:
        described = CATALOGUE.collective(collective)
        if described.has_one_rule and described.has_data:
            return self._truth(collective, self._best_rule(collective), size, WHOLE)
        return self._truth.best(collective, size, WHOLE)[0]

    def _best_rule(self, collective: str) -> Candidate:
        """Return the best candidate for calls of all sizes that is nowhere slower than native."""
        sizes = self.setting.sizes_of(collective)

        def ratios(candidate: Candidate) -> list[float]:
            return [
                self._truth(collective, candidate, size, WHOLE) / self._native(collective, size)
                for size in sizes
            ]

        known = {c: ratios(c) for c in self._truth.candidates(collective, sizes[-1], WHOLE)}
        able = (candidate for candidate in known if max(known[candidate]) <= 1 + MARGIN)
        return min(able, key=lambda candidate: math.prod(known[candidate]))

    def _seconds(self, tuning: Tuning, collective: str, size: int) -> float:
        """Return the seconds of what serves a call on the whole cluster."""
        table = tuning.decision.table(collective, CLUSTER, self._shape)
        choice = table.choice(size) if table else NATIVE_CANDIDATE
        return self._truth(collective, choice, size, WHOLE)

    @cached_property
    def _shape(self) -> Shape:
        ranks = self._topology.ranks
        return Shape.of(len(set(ranks)), len(ranks))

    def _loss(self, collective: str, tuning: Tuning, reference: Callable[[int], float]) -> Loss:
        """Return what a tuning's choices cost beside the reference's seconds by size."""
        ratios = {
            size: self._seconds(tuning, collective, size) / reference(size)
            for size in self.setting.sizes_of(collective)
        }
        if any(not math.isfinite(ratio) for ratio in ratios.values()):
            raise AssertionError(f"the model has no time for a call of {collective}")
        return Loss(ratios)
