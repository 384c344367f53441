"""What `stagegen inspect` finds in real runs: a rank that comes late, as late as it does."""

from __future__ import annotations

import pytest

from stagegen.inspection.findings import tree_findings
from stagegen.inspection.look import looks_at
from stagegen.inspection.nodes import of_node
from stagegen.inspection.parts import typical_parts
from stagegen.inspection.series import series_of
from stagegen.inspection.stages import ARRIVAL_WAIT
from stagegen.inspection.timeline import OUTSIDE, messages_of, step_findings
from tests.mpi import tracing

pytestmark = pytest.mark.mpi

CALLS, SKIPPED, LATE, DELAY = 24, 4, 3, 60_000e-6


def series(tmp_path, name, *words, size=4):
    trace = tracing.traced(tmp_path / "events", name, CALLS, size, *words)
    (found,) = [one for one in series_of(trace, SKIPPED).series if one.routine == name]
    assert len(found) == CALLS - SKIPPED
    return found


@pytest.mark.parametrize("name", ["allreduce/fixed_tree", "allreduce/reduce_bcast"])
def test_an_injected_delay_is_found_back(tmp_path, name):
    """The others wait for the late rank, at the node to which it contributes and above."""
    one = series(tmp_path, name, LATE, round(DELAY * 1e6))
    found = tree_findings(one)
    waits = {
        rank: sum(own.mean(stage) for stage in own.stages if stage.what == ARRIVAL_WAIT)
        for rank, own in found.ranks.items()
    }
    assert waits[0] > 0.9 * DELAY
    assert waits[LATE] < waits[0] / 4
    mine = [node for node in found.nodes.values() if of_node(LATE) in node.contributors]
    (above,) = mine
    last = len(above.contributors) - 1
    assert above.arrival_places[of_node(LATE)][last] >= 0.9 * (CALLS - SKIPPED)
    mean = sum(above.arrival_waits[above.rank]) / (CALLS - SKIPPED)
    assert 0.9 * DELAY < mean <= (one.ended - one.begun)[:, above.rank].mean()
    assert "arrival wait" not in found.hotspots()[0].title


@pytest.mark.parametrize(
    "name",
    ["allreduce/fixed_tree", "allreduce/hierarchical", "allreduce/reduce_bcast",
     "allreduce/token_tree", "barrier/fixed_tree"],
)  # fmt: skip
def test_stages_of_real_calls_add_up(tmp_path, name):
    one = series(tmp_path, name)
    found = tree_findings(one)
    assert found is not None
    assert found.treeless == 0
    for rank, stages in found.ranks.items():
        mean = float((one.ended - one.begun)[:, rank].mean())
        assert stages.total(waits=True) == pytest.approx(mean, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    ("name", "late"),
    [("allreduce/fixed_tree", LATE), ("barrier/fixed_tree", LATE),
     ("reduce/binomial", LATE), ("bcast/binomial", 0)],
)  # fmt: skip
def test_parts_of_the_slowest_rank_take_as_long_as_its_call(tmp_path, name, late):
    """Before and after the tree is what begins a call and completes sends.

    The slowest rank waits for the late one: that wait is of the tree, on a busy machine, too.
    """
    one = series(tmp_path, name, late, round(DELAY * 1e6))
    found = tree_findings(one)
    times = sorted((one.ended - one.begun).max(axis=1).tolist())
    assert sorted(call.seconds for call in found.slowest_ranks) == pytest.approx(times)
    parts = typical_parts(found.slowest_ranks)
    assert times[0] <= parts["the call"] <= times[-1]
    assert -0.05 < parts["before and after the tree"] / parts["the call"] < 0.5
    assert parts["messages within hosts"] + parts["messages between hosts"] > 0


@pytest.mark.parametrize("name", ["reduce/binomial", "bcast/binomial", "bcast/flat"])
def test_trees_of_one_way_are_found(tmp_path, name):
    found = tree_findings(series(tmp_path, name))
    assert found is not None
    assert found.treeless == 0
    assert sum(len(node.contributors) - 1 for node in found.nodes.values()) == tracing.RANKS - 1


def test_a_ring_and_phases_are_steps(tmp_path):
    ring = series(tmp_path, "allreduce/ring")
    assert tree_findings(ring) is None
    steps = step_findings(ring)
    assert not steps.has_phases
    assert all(one.messages == tracing.RANKS for one in steps.steps)
    aapc = step_findings(series(tmp_path, "alltoall/aapc_sender"))
    assert aapc.has_phases
    assert sum(one.messages for one in aapc.steps) == tracing.RANKS * (tracing.RANKS - 1)
    assert all(0 <= share < 1 for share in aapc.idle)


@pytest.mark.parametrize("size", [4, 60_000])
def test_phases_between_hosts_are_steps_of_the_first_ranks(tmp_path, size):
    """What they gather and scatter on their hosts is outside; of 60 kB, they send segments."""
    one = series(tmp_path, "alltoall/hierarchical", size=size)
    found = step_findings(one)
    assert found is not None
    assert found.has_phases
    leaders = {(0, tracing.SLOTS), (tracing.SLOTS, 0)}
    others = {(rank - rank % tracing.SLOTS, rank) for rank in range(tracing.RANKS)} - {
        (leader, leader) for leader, _ in leaders
    }
    for number in range(len(one)):
        messages = messages_of(one.call(number))
        of_phases = [(m.sender, m.receiver) for m in messages if m.step != OUTSIDE]
        outside = [(m.sender, m.receiver) for m in messages if m.step == OUTSIDE]
        assert sorted(of_phases) == sorted(leaders)
        assert sorted(outside) == sorted(others | {(b, a) for a, b in others})


def test_the_report_covers_all_of_a_file(tmp_path):
    tracing.traced(tmp_path / "events", "barrier/combining_tree", CALLS, 0)
    looks = looks_at(tmp_path / "events", skip=2)
    assert [look.series.routine for look in looks][:1] == ["barrier/combining_tree"]
    assert looks[0].to_json()["calls"] == CALLS - 2
