"""Ranges of values that depend on the ranks and the size, and the samples of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.catalogue import Parameter, load_catalogue
from stagegen.catalogue.formula import Formula
from stagegen.catalogue.values import INT_MOST, ValueRange, sample

BARRIERS = ValueRange(1, Formula("p - 2"))
SEGMENTS = ValueRange(512, Formula("n"), 2)

ranges = st.builds(
    ValueRange,
    st.integers(1, 1000),
    st.sampled_from(["n", "p", "p - 2", "n // p", "min(p, 64)", "7"]).map(Formula),
    st.integers(1, 4),
)
sizes, ranks = st.integers(0, 5000), st.integers(2, 300)


def oracle(values: ValueRange, size: int, ranks: int) -> list[int]:
    """The values, one after the other, by Python's own arithmetic."""
    end = eval(values.until.text, {"n": size, "p": ranks, "min": min})
    found = [values.first]
    while found[-1] < end:
        found.append(found[-1] * values.times if values.times > 1 else found[-1] + 1)
    return found


@given(ranges, sizes, ranks)
def test_a_range_goes_on_until_a_value_reaches_its_end(values, size, ranks):
    found = values.at(size, ranks)
    assert list(found) == oracle(values, size, ranks)
    assert all(map(values.holds, found))
    assert found[-1] <= values.most


@pytest.mark.parametrize(
    ("values", "size", "ranks", "found"),
    [
        (BARRIERS, 0, 2, (1,)),
        (BARRIERS, 0, 3, (1,)),
        (BARRIERS, 0, 4, (1, 2)),
        (BARRIERS, 0, 9, (1, 2, 3, 4, 5, 6, 7)),
        (SEGMENTS, 1, 9, (512,)),
        (SEGMENTS, 512, 9, (512,)),
        (SEGMENTS, 513, 9, (512, 1024)),
        (SEGMENTS, 3000, 9, (512, 1024, 2048, 4096)),
    ],
)
def test_ranges_have_the_values_of_the_source(values, size, ranks, found):
    assert values.at(size, ranks) == found


def test_no_value_is_too_large_for_an_int():
    (*_, last) = SEGMENTS.at(2**40, 2)
    assert last == 2**30
    assert SEGMENTS.most == 2**30
    assert BARRIERS.most == INT_MOST
    assert ValueRange(3, Formula("min(p - 1, 64)")).most == 64


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=600, unique=True).map(sorted))
def test_a_sample_has_both_ends_and_is_short(values):
    found = sample(values)
    assert set(found) <= set(values)
    assert list(found) == sorted(set(found))
    assert (found[0], found[-1]) == (values[0], values[-1])
    assert len(found) <= 2 + len(values).bit_length()
    assert sample(values[:3]) == tuple(values[:3])


@given(ranges, sizes, ranks)
def test_only_one_value_in_bytes_covers_the_message(values, size, ranks):
    parameter = Parameter("piece", "bytes of a piece", values, values.first)
    found = parameter.values_at(size, ranks)
    assert found == values.at(size, ranks)[: len(found)]
    assert sum(value >= size for value in found) <= 1
    assert sum(value < size for value in found) == sum(v < size for v in values.at(size, ranks))


def test_parameters_that_the_source_gives_as_ranges_are_ranges():
    """Faraj 2006, §4.1.1.1 and §4.1.1.3: N from 1 to p - 2, and segments of pipelines."""
    parameters = {
        a.full_name: {p.name: p for p in a.parameters} for a in load_catalogue().algorithms
    }
    for collective, ring in (
        ("alltoall", "ring"),
        ("alltoallv", "ring"),
        ("allgather", "ring_direct"),
        ("allgatherv", "ring_direct"),
    ):
        for name in (ring, "pair"):
            algorithm = f"{collective}/{name}_n_mpi_barriers"
            assert parameters[algorithm]["barriers"].values == BARRIERS
    for collective in ("bcast", "reduce"):
        for name in ("pipelined_linear", "pipelined_binary", "topology_linear", "topology_binary"):
            assert parameters[f"{collective}/{name}"]["segment_size"].values == SEGMENTS
    for name in ("alltoall/bruck", "allgather/bruck", "bcast/knomial", "reduce/knomial"):
        assert parameters[name]["radix"].values_at(1, 300)[-1] == 300
