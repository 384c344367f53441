"""Hints for an alltoallv: one rule serves all sizes, and is looked for among few routines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.measure.records import (
    Candidate,
    CandidateFailed,
    Failure,
    Measurement,
    Request,
    Timing,
)
from stagegen.tune.decision import DecisionTable
from stagegen.tune.scope import Options
from stagegen.tune.shapes import Shape
from stagegen.tune.tuner import tune
from tests.measure.fakes import Model
from tests.strategies import make_topology

CATALOGUE = load_catalogue()

NATIVE = Candidate("native")


def one_rule(model: Model) -> DecisionTable:
    """Tune alltoallv for 8 ranks and for 4; calls of the largest size take seconds."""
    sizes = (1, 1024, 1 << 27)
    options = Options(("alltoallv",), sizes, Timing(), 1.0, ("whole", "4"))
    return tune(make_topology([4, 4], [0]), CATALOGUE, options, model, lambda: True).decision


def asked_on_four(model: Model) -> set[tuple[int, Candidate]]:
    """Return the sizes and candidates that were timed on four ranks."""
    return {
        (request.size, candidate)
        for request in model.asked
        for candidate in request.candidates
        if request.communicator == "4"
    }


class Elsewhere(Model):
    """Ring and pair are the fastest of alltoallv; on four ranks they take so many times as long."""

    def __init__(self, on_four: float):
        factors = {"native": 1.0, "ring": 0.5, "pair": 0.7}
        super().__init__(lambda c, size: factors.get(c.algorithm, 0.8) * (1e-4 + 1e-8 * size))
        self.on_four = on_four

    def measure(self, request: Request) -> Measurement:
        made = super().measure(request)
        if request.communicator == "whole":
            return made
        slower = [c.algorithm in ("ring", "pair") for c in request.candidates]
        factors = [self.on_four if is_slower else 1.0 for is_slower in slower]
        return replace(made, seconds=tuple(
            tuple(factor * t for t in seconds)
            for factor, seconds in zip(factors, made.seconds, strict=True)
        ))  # fmt: skip


@pytest.mark.parametrize(
    ("on_four", "few"),
    [
        pytest.param(1.0, True, id="it wins"),
        pytest.param(2.2, False, id="it is a little slower than native"),
        pytest.param(3.0, False, id="it is much slower than native"),
    ],
)
def test_one_rule_is_looked_for_among_what_serves_elsewhere_unless_that_loses(on_four, few):
    """Between the short messages and the longest, one size tunes the parameters."""
    model = Elsewhere(on_four)
    decision = one_rule(model)
    asked = asked_on_four(model)
    between = {c.algorithm for size, c in asked if 1024 < size < 1 << 27}
    assert (len(between) <= 3) == few
    table = decision.table("alltoallv", "hosts", Shape(4, 1))
    assert table is not None
    assert (table.choice(0).algorithm == "ring") == few
    assert table.choice(0) != NATIVE
    longest = {c.algorithm for size, c in asked if size == 1 << 27}
    assert {table.choice(0).algorithm, "native"} <= longest


def test_one_rule_is_tuned_with_values_that_the_ranks_have():
    model = Elsewhere(2.2)
    one_rule(model)
    barriers = {dict(c.parameters).get("barriers") for _, c in asked_on_four(model)} - {None}
    assert barriers
    assert max(barriers) <= 4 - 2


def test_one_rule_has_the_same_values_at_each_size():
    """A window of 64 KiB is the default. At 1 byte, all windows are alike."""
    model = Elsewhere(1.0)
    one_rule(model)
    windows = {
        candidate.parameters
        for request in model.asked
        for candidate in request.candidates
        if (request.communicator, request.size) == ("whole", 1)
        if candidate.algorithm == "own_windows"
    }
    assert windows == {(("bytes_in_flight", 65536),)}


class Breaking(Elsewhere):
    """A routine cannot be timed on four ranks, with short messages either."""

    def measure(self, request: Request) -> Measurement:
        for candidate in request.candidates:
            if (request.communicator, candidate.algorithm) == ("4", "simple"):
                raise CandidateFailed(Failure("alltoallv", request.size, candidate, "hung", "4"))
        return super().measure(request)


def test_one_rule_is_looked_for_among_all_routines_even_if_one_fails_in_these_looks():
    decision = one_rule(Breaking(2.2))
    table = decision.table("alltoallv", "hosts", Shape(4, 1))
    assert table is not None
    assert table.choice(0).algorithm not in ("native", "simple", "ring", "pair")
