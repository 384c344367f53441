"""Patterns: files are read as they were written, mistakes have lines, generators keep promises."""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError
from stagegen.patterns import (
    COLLECTIVES,
    FAMILIES,
    MATRIX,
    Pattern,
    difference,
    is_typical,
    make_pattern,
    merged,
    merged_at,
    patterns_yaml,
    read_patterns,
    typical_calls,
)
from stagegen.tune.bounds import size_of_pattern
from stagegen.tune.sizes import sizes_of_pattern
from tests.strategies import examples
from tests.trees.made import damaged

sizes = st.one_of(st.just(0), st.integers(1, 5000), st.sampled_from([1024, 3 << 20]))


@st.composite
def patterns(draw, name="p"):
    collective = draw(st.sampled_from(COLLECTIVES))
    ranks = draw(st.integers(1, 6))
    rows = ranks if collective in MATRIX else 1
    row = st.lists(sizes, min_size=ranks, max_size=ranks).map(tuple)
    blocks = tuple(draw(st.lists(row, min_size=rows, max_size=rows)))
    members = draw(st.none() | st.permutations(range(3, 3 + ranks)).map(tuple))
    calls = tuple(sorted(draw(st.sets(st.integers(0, 30)))))
    site = draw(st.none() | st.just("a.out+0x11f3"))
    is_class = collective in MATRIX and draw(st.booleans())
    scale = st.floats(1e-6, 1e6) | st.sampled_from([0.25, 1.0, 64.0])
    scales = tuple(sorted(draw(st.sets(scale, max_size=3))))
    return Pattern(name, collective, blocks, site, members, calls, is_class, scales)


@examples(60)
@given(patterns("one"), patterns("two"))
def test_a_file_is_read_as_it_was_written(tmp_path_factory, one, other):
    file = tmp_path_factory.mktemp("patterns") / "p.yaml"
    file.write_text(patterns_yaml([one, other]))
    assert read_patterns(file) == (one, other)


GOOD = """patterns:
- name: a
  collective: alltoallv
  ranks: 3
  calls: [0-2, 7]
  bytes:
  - [0, 4KiB*2]
  - {0: 12}
  - [1*3]
"""


def test_a_file_written_by_hand_is_read(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(GOOD)
    (pattern,) = read_patterns(file)
    assert pattern.sizes == ((0, 4096, 4096), (12, 0, 0), (1, 1, 1))
    assert pattern.calls == (0, 1, 2, 7)
    assert pattern.total == 8192 + 12 + 2


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("name: a", "nam: a", 2, "unknown key"),
        ("alltoallv", "alltoalv", 3, "did you mean 'alltoallv'"),
        ("ranks: 3", "ranks: 4", 7, "3 rows, but there are 4 ranks"),
        ("4KiB*2", "4KiB*3", 7, "more than 3 blocks"),
        ("4KiB*2", "4KiB", 7, "2 blocks, expected 3"),
        ("4KiB*2", "4XB*2", 7, "unknown unit"),
        ("4KiB*2", "4KiB*x", 7, "not a whole number"),
        ("4KiB*2", "65GiB*2", 7, "'65GiB' is too long; write at most 64GiB"),
        ("4KiB*2", "-4*2", 7, "negative|whole number|not"),
        ("{0: 12}", "{3: 12}", 8, "rank 3 does not exist"),
        ("{0: 12}", "{0: 12, 0: 13}", 8, "given twice"),
        ("[0-2, 7]", "[2-0]", 5, "goes backwards"),
        ("  ranks: 3", "  communicator: [0, 0, 1]", 4, "different ranks"),
        ("  ranks: 3", "  class: maybe", 4, "'maybe' is neither true nor false"),
        ("  ranks: 3", "  class: [true]", 4, "class must be a single value"),
        ("  ranks: 3", "  class:", 4, "class must be a single value, empty"),
        ("  ranks: 3", "  scales: 2", 4, "scales must be a list"),
        ("  ranks: 3", "  scales: []", 4, "scales has no number"),
        ("  ranks: 3", "  scales: [1, 0]", 4, "'0' is not a number above 0"),
        ("  ranks: 3", "  scales: [1, nan]", 4, "'nan' is not a number above 0"),
        ("  ranks: 3", "  scales: [1e7]", 4, "of at most 1,000,000"),
    ],
)
def test_a_mistake_has_its_line(tmp_path, old, new, line, said):
    file = tmp_path / "p.yaml"
    assert old in GOOD
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError, match=said) as error:
        read_patterns(file)
    assert str(error.value).startswith(f"{file}:{line}:")


@pytest.mark.parametrize("collective", ["allgatherv", "reduce_scatter"])
@pytest.mark.parametrize("value", ["true", "false"])
def test_only_an_alltoallv_says_whether_it_is_a_class(tmp_path, collective, value):
    file = tmp_path / "p.yaml"
    one = f"- {{name: a, collective: {collective}, bytes: [1, 2],\n   class: {value}}}\n"
    file.write_text(f"patterns:\n{one}")
    with pytest.raises(InputError, match=f":3: only alltoallv can have `class`, not {collective}"):
        read_patterns(file)


@pytest.mark.parametrize(("value", "is_class"), [("true", True), ("false", False)])
def test_a_class_is_read_as_the_file_says(tmp_path, value, is_class):
    text = GOOD.replace("  ranks: 3", f"  ranks: 3\n  class: {value}")
    (pattern,) = read_patterns_of(tmp_path / "p.yaml", text)
    assert pattern.is_class is is_class
    assert pattern.has_order is not is_class


NO_NAMES = ("", " a", "a\n", "a\nb", "a\tb", "\x7f", "\udc80", "a" * 81)


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_cannot_be_printed_has_its_line(tmp_path, name):
    file = tmp_path / "p.yaml"
    file.write_text(GOOD.replace("name: a", f"name: {json.dumps(name)}"))
    with pytest.raises(InputError, match=r":2: name .* has to have 1 to 80 printable"):
        read_patterns(file)


@pytest.mark.parametrize("text", ['"', "\\", "a: [b", "'#", "é😀", "\u2028\x85\x7f", "\udc80\n"])
def test_a_text_with_any_characters_is_read_as_it_was_written(tmp_path, text):
    (pattern,) = read_patterns_of(tmp_path / "p.yaml", GOOD)
    named = replace(pattern, site=text, name=text if text.isprintable() else "a")
    assert read_patterns_of(tmp_path / "q.yaml", patterns_yaml([named])) == (named,)


def test_damaged_files_are_patterns_or_refused_with_a_line(tmp_path):
    file = tmp_path / "p.yaml"
    chance = random.Random(4)
    good = 0
    unplaced = []
    for _ in range(600):
        file.write_bytes(damaged(chance, GOOD))
        try:
            good += bool(read_patterns(file))
        except InputError as error:
            if not re.match(rf"{re.escape(str(file))}:\d+: .", str(error)):
                unplaced.append(str(error))
    assert not unplaced
    assert 10 < good < 300


def read_patterns_of(file, text):
    file.write_text(text, encoding="utf-8")
    return read_patterns(file)


def test_two_patterns_of_one_name_are_refused(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(GOOD + GOOD.removeprefix("patterns:\n"))
    with pytest.raises(InputError, match="names must differ") as error:
        read_patterns(file)
    assert error.value.line == 10


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("ranks", [2, 7, 16, 27])
def test_a_generator_keeps_the_average_and_the_seed(family, ranks):
    pattern = make_pattern(family, ranks, 4096, seed=3)
    assert pattern == make_pattern(family, ranks, 4096, seed=3)
    assert pattern.ranks == ranks
    assert not any(pattern.sizes[r][r] for r in range(ranks))
    assert pattern.average == pytest.approx(4096, rel=0.01)


def test_generated_patterns_have_the_blocks_of_their_definitions():
    banded = make_pattern("banded", 12, 100, number=2).array
    place = np.arange(12)
    apart = np.abs(place[:, None] - place)
    assert ((banded > 0) == ((apart <= 2) & (apart > 0))).all()
    assert ((make_pattern("stencil2d", 16, 100).array > 0).sum(axis=1) == 4).all()
    assert ((make_pattern("stencil2d", 16, 100, number=1).array > 0).sum(axis=1) == 8).all()
    assert ((make_pattern("stencil3d", 27, 100).array > 0).sum(axis=1) == 6).all()
    assert ((make_pattern("stencil3d", 27, 100, number=1).array > 0).sum(axis=1) == 26).all()
    assert np.count_nonzero(make_pattern("sparse", 16, 100, number=0.25).array) == 60
    heavy = make_pattern("heavy", 16, 10000, number=8).array
    least = heavy[heavy > 0].min()
    assert sorted((heavy.sum(axis=1) > 100 * least).tolist()) == [False] * 15 + [True]
    assert sorted((heavy.sum(axis=0) > 100 * least).tolist()) == [False] * 15 + [True]
    zipf = np.sort(make_pattern("zipf", 16, 100000).array[~np.eye(16, dtype=bool)])[::-1]
    slope = np.polyfit(np.log(np.arange(10, 200)), np.log(zipf[10:200]), 1)[0]
    assert -1.3 < slope < -0.8
    assert make_pattern("zipf", 16, 100, seed=1) != make_pattern("zipf", 16, 100, seed=2)


@pytest.mark.parametrize(
    ("family", "ranks", "average", "number"),
    [
        ("none", 4, 8, None), ("banded", 1, 8, None), ("sparse", 4, 8, 2.0), ("banded", 4, 8, 0.0),
        ("stencil2d", 4, 8, 0.3), ("banded", 4, 8, 1.5), ("zipf", 32, 2 << 30, None),
        ("zipf", 1 << 15, 8, None),
    ],
)  # fmt: skip
def test_a_generator_refuses_numbers_that_make_no_pattern(family, ranks, average, number):
    with pytest.raises(InputError):
        make_pattern(family, ranks, average, number=number)


@pytest.mark.parametrize("ranks", [1, 2, 3, 16, 61])
def test_typical_calls_are_of_different_classes(ranks):
    typical = typical_calls(ranks)
    assert len(typical) == {1: 0, 2: 1}.get(ranks, 3)
    of_alltoallv = [one for one in typical if one.is_matrix]
    assert all(one.is_class and one.ranks == ranks for one in of_alltoallv)
    even, *others = sorted(one.largest_over_mean for one in of_alltoallv) or [1]
    assert even == 1
    assert all(other > 2 for other in others)
    for one in typical:
        assert one.array.max() * one.scales[-1] < 1 << 31
        assert is_typical(one)
        assert sizes_of_pattern(one, one.scales)[0] >= 4
        assert len(sizes_of_pattern(one, one.scales)) == len(one.scales)


@pytest.mark.parametrize("collective", ["alltoallv", "allgatherv"])
def test_no_size_of_a_pattern_is_so_large_that_an_int_cannot_count_it(collective):
    row = (64 << 20,) * 16
    even = Pattern("p", collective, (row,) * 16 if collective == "alltoallv" else (row,))
    sizes = sizes_of_pattern(even, (0.25, 1.0, 4.0))
    assert len(sizes) == 3
    scaled = [even.scaled(size / size_of_pattern(even)) for size in sizes]
    sums = [max(map(sum, one.sizes)) for one in scaled]
    assert sums[:2] == [256 << 20, 1 << 30]
    assert 0.99 * (1 << 31) < sums[2] < 1 << 31


def test_the_number_of_a_class_is_its_largest_block_over_the_mean():
    own_ones_do_not_count = ((9000, 30, 0), (10, 9000, 10), (10, 0, 9000))
    assert Pattern("p", "alltoallv", own_ones_do_not_count).largest_over_mean == 3
    assert Pattern("p", "allgatherv", ((1, 1, 1, 5),)).largest_over_mean == 2.5
    assert Pattern("p", "alltoallv", ((5, 0), (0, 5))).largest_over_mean == 1
    even = make_pattern("banded", 7, 1000, number=6)
    assert even.largest_over_mean == 1


@given(patterns(), patterns())
def test_the_difference_is_a_symmetric_share(one, other):
    apart = difference(one, other)
    assert apart == difference(other, one)
    assert 0 <= apart <= 1
    assert difference(one, one) == 0


def test_a_threshold_merges_patterns_of_one_site():
    base = make_pattern("zipf", 8, 10000)
    grown = [
        Pattern("g", "alltoallv", base.scaled(1 + 0.1 * k).sizes, calls=(k,)) for k in range(6)
    ]
    counts = [len(merged(grown, at)) for at in (0.0, 0.06, 0.15, 1.0)]
    assert counts[0] == 6
    assert counts[-1] == 1
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) > 2
    (one,) = merged(grown, 1.0)
    assert (one.members, one.pattern.calls) == (6, (0, 1, 2, 3, 4, 5))
    assert one.farthest == pytest.approx(difference(grown[0], grown[-1]))
    other = Pattern("g", "alltoallv", base.sizes, site="elsewhere")
    assert len(merged([*grown, other], 1.0)) == 2
    of_a_class = replace(base, is_class=True)
    assert [one.members for one in merged([*grown, of_a_class, of_a_class], 1.0)] == [6, 2]


def one_after_the_other(patterns, threshold):
    """An oracle of ``merged``: each pattern is compared with all distinct ones before it."""
    found = []
    for pattern in patterns:
        for group in found:
            first = group[0]
            place = ("collective", "is_class", "site", "communicator")
            alike = all(getattr(first, name) == getattr(pattern, name) for name in place)
            if alike and difference(first, pattern) <= threshold:
                group.append(pattern)
                break
        else:
            found.append([pattern])
    return [
        (
            replace(group[0], calls=tuple(sorted({call for one in group for call in one.calls}))),
            len(group),
            max(difference(group[0], one) for one in group),
        )
        for group in found
    ]


@examples(60)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.booleans()), max_size=12))
def test_merging_at_several_thresholds_is_as_merging_at_each(drawn):
    all_of_them = [
        Pattern(f"p{k}", "alltoallv", ((0, 50 + much), (50, 0)), site, None, (k,), of_class)
        for k, (site, much, of_class) in enumerate(drawn)
    ]
    thresholds = (0.0, 0.01, 0.03, 1.0)
    found = merged_at(all_of_them, thresholds)
    for at in thresholds:
        got = [(one.pattern, one.members, one.farthest) for one in found[at]]
        assert got == one_after_the_other(all_of_them, at)


def test_a_pattern_is_compared_with_all_before_it_at_once_whatever_the_thresholds(monkeypatch):
    """Thousands of patterns, as of a sort whose counts differ in each call, take seconds."""
    compared = []
    place = sys.modules["stagegen.patterns.difference"]._Place
    apart = place._apart
    monkeypatch.setattr(
        place, "_apart", lambda *words: compared.append(len(found := apart(*words))) or found
    )
    count = 30
    many = [
        Pattern(f"p{k}", "alltoallv", ((0, 2**k), (1, 0)), site)
        for site in "ab"
        for k in range(count)
    ]
    merged = merged_at(many, (0.0, 0.01, 0.02, 0.05, 0.1))
    assert [len(of_it) for of_it in merged.values()] == [2 * count] * 5
    assert compared == [*range(count), *range(count)]
    assert many[0].array is many[0].array


def test_patterns_of_other_numbers_of_ranks_stay_apart():
    two = Pattern("two", "alltoallv", ((0, 5), (5, 0)))
    three = Pattern("three", "alltoallv", ((0, 5, 5), (5, 0, 5), (5, 5, 0)))
    assert len(merged([two, three], 1.0)) == 2


@examples(60)
@given(patterns(), st.data())
def test_the_order_of_a_communicator_can_be_undone(pattern, data):
    world = data.draw(
        st.lists(st.integers(0, 99), min_size=pattern.ranks, max_size=pattern.ranks, unique=True)
    )
    ordered = replace(pattern, communicator=tuple(world)).in_world_order
    assert ordered == ordered.in_world_order
    assert ordered.communicator == tuple(sorted(world))
    place = {rank: at for at, rank in enumerate(sorted(world))}
    for u, row in enumerate(pattern.sizes):
        own = ordered.sizes[place[world[u]] if pattern.is_matrix else 0]
        assert all(own[place[world[v]]] == size for v, size in enumerate(row))
    assert ordered.total == pattern.total


@examples(30)
@given(patterns())
def test_patterns_without_a_communicator_or_in_order_stay_as_they_are(pattern):
    alone = replace(pattern, communicator=None)
    assert alone.in_world_order is alone
    ordered = replace(pattern, communicator=tuple(range(7, 7 + pattern.ranks)))
    assert ordered.in_world_order is ordered
