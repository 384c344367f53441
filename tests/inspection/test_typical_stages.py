"""The stages of the slowest rank of a call: they add up, in the order of the path."""

from __future__ import annotations

import pytest

from stagegen.inspection.findings import tree_findings
from stagegen.inspection.parts import SlowestRank, merged, typical_stages
from stagegen.inspection.series import series_of
from stagegen.inspection.stages import CORE, DOWN, HOST, LATENCY, LEAF, ROOT, UP, Stage
from stagegen.inspection.trace import read_trace
from tests.inspection import made
from tests.inspection.reading import us


def test_stages_add_up_to_the_call_and_have_their_levels(tmp_path):
    """Rank 3 is the slowest; in its path are two nodes, that of rank 2 and the root."""
    calls = [made.two_levels(1e5 * (i + 1)) for i in range(4)]
    file = made.write(tmp_path / "events", "allreduce/tree", calls, made.TWO_HOSTS)
    (series,) = series_of(read_trace(file), 0).series
    stages = typical_stages(tree_findings(series).slowest_ranks)
    *parts, (name, whole) = stages.items()
    assert (name, whole) == ("the call", us(77))
    assert sum(seconds for _, seconds in parts) == pytest.approx(whole)
    titles = [title for title, _ in parts]
    assert titles[-1] == "before and after the tree"
    messages = [title for title in titles if title.startswith("message")]
    assert messages == [
        "message within a host 0, down", "message between hosts 0, down",
        "message between hosts 0, up", "message within a host 0, up",
    ]  # fmt: skip
    assert stages["host subtree level 0 down latency"] == us(2)
    assert stages["core"] == us(3)
    assert titles.index("core") == titles.index("message between hosts 0, up") - 2


def slowest(seconds, *stages):
    return SlowestRank(seconds, stages)


def test_a_call_without_a_stage_counts_as_0_and_titles_stay_in_order():
    down, up = Stage(DOWN, ROOT, 1, LATENCY, 7), Stage(UP, HOST, 0, LATENCY, 5)
    core, leaf = Stage(CORE, CORE, 0, LATENCY, 9), Stage(DOWN, LEAF, 0, LATENCY, 1)
    calls = [
        slowest(8.0, (leaf, 1.0), (core, 4.0)),
        slowest(8.0, (leaf, 1.0), (down, 2.0), (core, 3.0), (up, 1.0)),
        slowest(8.0, (leaf, 1.0), (core, 2.0), (Stage(UP, HOST, 0, LATENCY, 6), 3.0)),
        slowest(8.0, (leaf, 1.0), (down, 2.0), (core, 3.0), (up, 1.0)),
        slowest(0.1, (leaf, 0.1)),
        slowest(99.0, (core, 99.0)),
    ]
    stages = typical_stages(calls)
    assert list(stages) == [leaf.title, down.title, core.title, up.title,
                            "before and after the tree", "the call"]  # fmt: skip
    assert stages[leaf.title] == 1.0
    assert stages[down.title] == 1.0, "two of the four calls between the quartiles have it"
    assert stages[up.title] == 1.25, "stages of one title at several nodes count together"
    assert stages["the call"] == 8.0
    assert sum(stages.values()) == pytest.approx(16.0)
    assert typical_stages([]) == {}


def test_names_of_several_orders_are_merged():
    assert merged([["a", "d"], ["a", "b", "d"], ["b", "c", "d", "e"]]) == ["a", "b", "c", "d", "e"]
