"""Patterns of a recording that no program made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stagegen.patterns import Pattern, merged
from stagegen.recording.blocks import blocks_of
from stagegen.recording.model import (
    EVENT,
    IN_PLACE,
    RECEIVES,
    SENDS,
    Communicator,
    Rank,
    Recording,
    Site,
)

FUNCTIONS = ("allgatherv", "alltoall", "alltoallv", "gatherv", "ialltoallv")
EACH = 4  # bytes of an element


def made(calls, size=3, kept=True) -> Recording:
    """A recording of (function, sends of each rank, receives of each rank); None: not on this."""
    world = Communicator(tuple(range(size)), (), 0)
    ranks = []
    for rank in range(size):
        counts = [0]
        events = np.zeros(len(calls), EVENT)
        for sequence, (function, sends, receives) in enumerate(calls):
            event = events[sequence]
            event["arrival"], event["sequence"] = sequence + 1, sequence
            event["function"] = FUNCTIONS.index(function)
            for flag, side, short, rows in (
                (SENDS, "sent", "send_counts", sends),
                (RECEIVES, "received", "recv_counts", receives),
            ):
                if rows is None or rows[rank] is None:
                    event["flags"] |= IN_PLACE if side == "sent" else 0
                    continue
                row = rows[rank]
                event["flags"] |= flag
                event[side], event[f"{side}_bytes"] = sum(row), EACH * sum(row)
                if kept:
                    event[short] = len(counts)
                    counts += [len(row), *row]
        site = Site("a.out", 16)
        ranks.append(
            Rank(rank, "h", "c", True, 0, 9, 0, 0, (), (site,), (0,), np.array(counts), events)
        )
    return Recording(size, FUNCTIONS, ("",), (world,), tuple(ranks))


ROWS = [[0, 1, 2], [3, 4, 5], [0, 0, 7]]
COLUMNS = [list(column) for column in zip(*ROWS, strict=True)]
BYTES = tuple(tuple(EACH * n for n in row) for row in ROWS)


def test_calls_become_patterns_by_their_counts():
    swapped = [ROWS[1], ROWS[0], ROWS[2]]
    calls = [
        ("alltoallv", ROWS, COLUMNS),
        ("alltoall", ROWS, COLUMNS),
        ("ialltoallv", ROWS, COLUMNS),
        ("alltoallv", swapped, [list(c) for c in zip(*swapped, strict=True)]),
        ("alltoallv", ROWS, COLUMNS),
    ]
    blocks = blocks_of(made(calls))
    assert blocks.unknown == 0
    one, at_once, other = blocks.patterns
    assert (one.sizes, one.calls, one.collective) == (BYTES, (0, 2), "alltoallv")
    assert (one.site, one.communicator) == ("a.out+0x10", (0, 1, 2))
    assert (at_once.sizes, at_once.calls, at_once.is_blocking) == (BYTES, (0,), False)
    assert other.sizes == (BYTES[1], BYTES[0], BYTES[2])
    assert (other.calls, other.is_blocking) == ((1,), True)


def test_a_pattern_is_not_made_anew_for_each_of_its_calls(monkeypatch):
    """Else its calls are copied each time, which takes long where there are many."""
    plain, made_ones = Pattern.__init__, []

    def counted(self, *words, **named):
        made_ones.append(self)
        plain(self, *words, **named)

    monkeypatch.setattr(Pattern, "__init__", counted)
    (pattern,) = blocks_of(made([("alltoallv", ROWS, COLUMNS)] * 200)).patterns
    assert pattern.calls == tuple(range(200))
    assert len(made_ones) == 2


def test_the_counts_of_equal_calls_are_read_once(monkeypatch):
    """Hundreds of thousands of calls with the same counts are usual."""
    plain, read = Rank.counts_at, []

    def counted(self, place):
        read.append(place)
        return plain(self, place)

    monkeypatch.setattr(Rank, "counts_at", counted)
    once = blocks_of(made([("alltoallv", ROWS, COLUMNS)])).patterns
    least = len(read)
    often = made([("alltoallv", ROWS, COLUMNS)] * 200)
    for rank in often.ranks:  # the recorder keeps equal counts once
        for side in ("send_counts", "recv_counts"):
            rank.events[side] = rank.events[side][0]
    (pattern,) = blocks_of(often).patterns
    assert pattern.sizes == once[0].sizes
    assert len(pattern.calls) == 200
    assert len(read) == 2 * least


def test_in_place_a_rank_sends_what_it_receives():
    symmetric = [[0, 1, 2], [1, 0, 5], [2, 5, 0]]
    (pattern,) = blocks_of(made([("alltoallv", None, symmetric)])).patterns
    assert pattern.sizes == tuple(tuple(EACH * n for n in row) for row in symmetric)


def test_blocks_of_ranks_are_known_by_all_or_by_the_root():
    row = [1, 2, 3]
    calls = [("allgatherv", None, [row] * 3), ("gatherv", None, [None, row, None])]
    gathered, at_root = blocks_of(made(calls)).patterns
    assert gathered.sizes == at_root.sizes == ((4, 8, 12),)
    assert (gathered.collective, at_root.collective) == ("allgatherv", "gatherv")


def test_calls_without_counts_are_counted():
    blocks = blocks_of(made([("alltoallv", ROWS, COLUMNS)], kept=False))
    assert (blocks.patterns, blocks.unknown) == ((), 1)


def test_patterns_of_communicators_with_the_same_ranks_stay_apart():
    """Calls are counted on each of them."""
    plain = made([("alltoallv", ROWS, COLUMNS)] * 4)
    world = plain.communicators[0]
    both = replace(plain, communicators=(world, replace(world, ordinal=1)))
    ranks = [replace(rank, communicators=(0, 1)) for rank in both.ranks]
    for rank in ranks:
        rank.events["communicator"] = [0, 1, 0, 1]
        rank.events["sequence"] = [0, 0, 1, 1]
    one, other = merged(blocks_of(replace(both, ranks=tuple(ranks))).patterns, 0.0)
    assert (one.pattern.calls, other.pattern.calls) == ((0, 1), (0, 1))


def test_calls_that_lack_a_rank_are_counted():
    whole = made([("alltoallv", ROWS, COLUMNS)] * 3)
    lost = replace(whole.ranks[1], events=whole.ranks[1].events[2:])
    part = blocks_of(replace(whole, ranks=(whole.ranks[0], lost, whole.ranks[2])))
    assert ([len(one.calls) for one in part.patterns], part.unmatched) == ([1], 2)
    gone = blocks_of(replace(whole, ranks=whole.ranks[:2]))
    assert (gone.patterns, gone.unmatched) == ((), 3)


def test_rows_are_by_ranks_of_the_communicator_and_libraries_are_by_those_of_the_world():
    """Rank 2 is the first one of this communicator, so its row is the first one of the file."""
    plain = made([("alltoallv", ROWS, COLUMNS)])
    turned = replace(plain, communicators=(Communicator((2, 1, 0), (), 0),))
    (pattern,) = blocks_of(turned).patterns
    assert pattern.communicator == (2, 1, 0)
    assert pattern.sizes == BYTES[::-1]
    assert pattern.in_world_order.sizes == tuple(row[::-1] for row in BYTES)
    assert pattern.in_world_order.communicator == (0, 1, 2)
