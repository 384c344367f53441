"""Reductions: the same bits when asked for, and the order of operands that do not commute."""

from __future__ import annotations

import pytest

from tests.mpi import support

pytestmark = pytest.mark.mpi


def deterministic(ranks: int, **variables: str) -> int:
    program = support.compiled("deterministic.c", ranks)
    return support.run(ranks, program, variables=variables, timeout=60).returncode


@pytest.mark.parametrize("ranks", [4, 5])
def test_deterministic_sums_have_the_same_bits_whatever_the_size(ranks):
    """Every rule is another algorithm in this library, so sizes go by different ones."""
    assert deterministic(ranks, LIBCOLL_DETERMINISTIC="1") == 0


def test_without_the_variable_they_differ():
    assert deterministic(5, LIBCOLL_FORCE="allreduce=ring") != 0


def test_every_reduction_has_one_deterministic_routine():
    found = sorted(a.collective for a in support.CATALOGUE.algorithms if a.deterministic)
    assert found == ["allreduce", "reduce", "reduce_scatter", "reduce_scatter_block"]
