"""Reductions: the same bits when asked for, and the order of operands that do not commute."""

from __future__ import annotations

import subprocess

import pytest

from tests.mpi import support

pytestmark = pytest.mark.mpi

#: Rules other than those of the library.
FORCED = "allreduce=ring,reduce=binomial,reduce_scatter=pairwise,reduce_scatter_block=pairwise"


def deterministic(
    ranks: int, cluster: int | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    program = support.compiled("deterministic.c", cluster or ranks)
    return support.run(ranks, program, variables=variables, timeout=200)


def bits(ranks: int, cluster: int | None = None, **variables: str) -> str:
    """The sums of a deterministic run, in which all sizes, roots and reductions agree."""
    result = deterministic(ranks, cluster, LIBCOLL_DETERMINISTIC="1", **variables)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(set(result.stdout.split())) > 1
    return result.stdout


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6, pytest.param(8, marks=pytest.mark.slow)])
def test_deterministic_sums_have_the_same_bits_whatever_the_size(ranks):
    """Every rule is another algorithm in this library, so sizes go by different ones."""
    assert bits(ranks)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [7, 13, 16])
def test_deterministic_sums_have_the_same_bits_on_more_ranks(ranks):
    assert bits(ranks, 16)


def test_deterministic_sums_depend_on_nothing_but_the_number_of_ranks():
    """Not on rules, nor on the cluster, nor on which of its hosts the ranks are."""
    expected = bits(5)
    assert bits(5, LIBCOLL_FORCE=FORCED) == expected
    assert bits(5, 6) == expected
    assert bits(5, 6, LIBCOLL_PLACEMENT="", LIBCOLL_HOST="n1") == expected


def test_without_the_variable_sums_differ():
    assert deterministic(5, LIBCOLL_FORCE="allreduce=ring").returncode != 0


def test_every_reduction_has_one_deterministic_routine():
    found = sorted(a.collective for a in support.CATALOGUE.algorithms if a.deterministic)
    assert found == ["allreduce", "reduce", "reduce_scatter", "reduce_scatter_block"]


@pytest.mark.parametrize("ranks", [5, 6])
def test_all_ranks_get_the_same_bits_by_any_algorithm(ranks):
    """MPI only recommends it, but programs rely on it: no rank may add up in its own order."""
    assert len(support.serving(support.cluster(ranks), "allreduce")) < 128, "lengths of agreeing.c"
    program = support.compiled("agreeing.c", ranks)
    result = support.run(ranks, program, timeout=120)
    assert result.returncode == 0, result.stderr
