"""Pictures of every schedule on very different clusters: complete, and always the same."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from stagegen.cli.schedule import command
from stagegen.errors import InputError, StagegenError
from stagegen.report import plots
from stagegen.report.pictures import FORMATS, draw
from stagegen.report.pictures.layout import lay_out, lay_out_ring
from stagegen.report.pictures.link_use import link_uses
from stagegen.schedule import (
    RING_CONSTRUCTIONS,
    SCHEME_NAMES,
    TREE_CONSTRUCTIONS,
    alltoall_schedule,
    broadcast_tree,
    logical_ring,
    reduce_tree,
    ring_pipeline,
)
from stagegen.topology import load_topology
from tests.schedule.rated import with_rates
from tests.strategies import make_topology

pytest.importorskip("matplotlib", reason="pictures need the extra `report`")

SVG = "{http://www.w3.org/2000/svg}"


def slow_and_fast():
    topology = make_topology([2, 3, 3], [0, 0], slots={"n0": 3})
    return with_rates(topology, {}, {"s1": 5 * 10**8, "s2": 2 * 10**9})


CLUSTERS = {
    "one rank": make_topology([1], []),
    "one host": make_topology([1], [], slots={"n0": 4}),
    "two": make_topology([1, 1], [0]),
    "one switch": make_topology([5], []),
    "chain": make_topology([4] * 4, [0, 1, 2], ranks=[f"n{i * 5 % 16}" for i in range(16)]),
    "three levels": make_topology([0, 0, 2, 4, 4, 3, 3], [0, 0, 1, 1, 2, 2]),
    "rates and slots": slow_and_fast(),
    "many switches": make_topology([1] * 12, [0] * 11),
}


@pytest.fixture(params=CLUSTERS)
def topology(request):
    return CLUSTERS[request.param]


def parse(form: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(form)


def groups(root, prefix: str) -> list[ElementTree.Element]:
    return [g for g in root.iter(f"{SVG}g") if g.get("id", "").startswith(prefix)]


def texts(root) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def arrows(root) -> set[tuple[int, ...]]:
    found = [tuple(map(int, g.get("id").split("-")[1:])) for g in groups(root, "message-")]
    assert len(found) == len(set(found))
    return set(found)


def cells(root, gid: str) -> int:
    return sum(len(list(group.iter(f"{SVG}path"))) for group in groups(root, gid))


@pytest.mark.parametrize("ring", RING_CONSTRUCTIONS)
def test_a_ring_has_an_arrow_from_each_rank_to_the_next(topology, ring):
    try:
        schedule = logical_ring(topology, ring)
    except StagegenError:
        pytest.skip("no ring of two hops on this cluster")
    root = parse(draw(topology, schedule, "svg"))
    order = schedule.order
    expected = set(zip(order, order[1:] + order[:1], strict=True)) if len(order) > 1 else set()
    assert arrows(root) == expected
    assert {str(rank) for rank in order} <= set(texts(root))
    assert set(topology.ranks) <= set(texts(root))


@pytest.mark.parametrize("construction", TREE_CONSTRUCTIONS)
@pytest.mark.parametrize("make", [broadcast_tree, reduce_tree])
def test_a_tree_has_an_arrow_for_each_edge_and_shows_its_height(topology, construction, make):
    schedule = make(topology, topology.rank_count - 1, construction)
    root = parse(draw(topology, schedule, "svg"))
    assert arrows(root) == set(map(tuple, schedule.edges))
    written = texts(root)
    assert {str(rank) for rank in range(topology.rank_count)} <= set(written)
    assert any(f"Height {schedule.height}" in text for text in written)
    marks = [int(text[1:]) for text in written if re.fullmatch(r"×\d+", text)]
    worst = [schedule.contention[0].ranks] if schedule.contention else []
    assert sorted(marks)[-1:] == worst


@pytest.mark.parametrize("sync", SCHEME_NAMES)
def test_every_message_of_an_alltoall_has_a_cell(topology, sync):
    schedule = alltoall_schedule(topology, sync)
    root = parse(draw(topology, schedule, "svg"))
    assert cells(root, "messages") == sum(map(len, schedule.phases))
    assert cells(root, "dummies") == sum(map(len, schedule.dummies))
    written = texts(root)
    assert {str(rank) for rank in range(topology.rank_count)} <= set(written)
    assert set(topology.ranks) <= set(written)
    count = len(schedule.phases)
    assert f"{count} phase" in " ".join(written)
    assert f"lower bound {schedule.bound_phases}" in " ".join(written)


def test_an_allreduce_has_an_arrow_from_each_rank(topology):
    schedule = ring_pipeline(topology)
    root = parse(draw(topology, schedule, "svg"))
    assert len(arrows(root)) == (topology.rank_count if topology.rank_count > 1 else 0)
    assert any("Allreduce" in text for text in texts(root))


@pytest.mark.parametrize("output_format", FORMATS)
@pytest.mark.parametrize("make", [alltoall_schedule, logical_ring, broadcast_tree, ring_pipeline])
def test_a_picture_has_the_same_bytes_again(make, output_format):
    topology = CLUSTERS["rates and slots"]
    schedule = make(topology)
    form = draw(topology, schedule, output_format)
    assert form == draw(topology, schedule, output_format)
    assert form.startswith({"svg": b"<?xml", "png": b"\x89PNG\r\n\x1a\n"}[output_format])


def test_the_bottleneck_is_marked():
    topology = CLUSTERS["chain"]
    written = texts(parse(draw(topology, alltoall_schedule(topology), "svg")))
    assert [text for text in written if "bottleneck" in text and "/" in text] == [
        "64 / 1  bottleneck"
    ] * 2
    switch = CLUSTERS["one switch"]
    written = texts(parse(draw(switch, alltoall_schedule(switch), "svg")))
    assert any("the ranks’ own links" in text for text in written)


def test_many_phases_are_summed_up():
    topology = make_topology([22, 22], [0])
    root = parse(draw(topology, alltoall_schedule(topology, "none"), "svg"))
    assert any("A column is 2 phases" in text for text in texts(root))
    assert list(root.iter(f"{SVG}image"))


def test_names_are_left_out_of_many_ranks():
    topology = make_topology([65, 65], [0])
    written = texts(parse(draw(topology, logical_ring(topology), "svg")))
    assert any("130 ranks are left out" in text for text in written)


def test_links_are_used_for_as_long_as_their_messages_take():
    """Each edge is busy for load / capacity phases, and never more than a phase allows."""
    topology = CLUSTERS["rates and slots"]
    schedule = alltoall_schedule(topology, "none")
    uses = {use.label: use for use in link_uses(topology, schedule)}
    assert {label: float(use.capacity) for label, use in uses.items() if "s0→s" in label} == {
        "s0→s1": 0.5,
        "s0→s2": 2,
    }
    for use in uses.values():
        assert sum(use.use) == pytest.approx(float(use.fraction))
        assert all(0 <= share <= 1 for share in use.use)
    paths = [topology.path(*message) for phase in schedule.phases for message in phase]
    for label, use in uses.items():
        assert use.load == sum(tuple(label.split("→")) in path for path in paths)


def test_layout_keeps_every_subtree_together(topology):
    tree = topology.tree
    for layout in (
        lay_out_ring(tree, logical_ring(topology).order),
        lay_out(tree, range(tree.rank_count)[::-1], 0),
    ):
        assert sorted(layout.order) == list(range(tree.rank_count))
        for node, above in enumerate(layout.above):
            first, last = layout.spans[node]
            if above >= 0:
                assert last - first + 1 == tree.ranks_beyond(above, node)
                assert layout.spans[above][0] <= first <= last <= layout.spans[above][1]


def test_a_ring_is_drawn_in_its_order(topology):
    """Contention-free rings need only one arrow back to the left."""
    order = logical_ring(topology).order
    drawn = lay_out_ring(topology.tree, order).order
    at = order.index(drawn[0])
    assert drawn == order[at:] + order[:at]


def test_what_there_is_no_picture_of_is_an_error():
    with pytest.raises(InputError, match="no picture of this schedule; there are pictures of"):
        draw(CLUSTERS["two"], "a schedule", "svg")


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(plots.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(StagegenError, match=r"pip install 'stagegen\[report\]'"):
        draw(CLUSTERS["two"], logical_ring(CLUSTERS["two"]), "svg")


def test_importing_the_commands_needs_no_matplotlib(monkeypatch):
    """`--format json` works without the extra, and fast."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = ["allgather", "--topology", "topologies/fig-3-2.yaml", "--format", "json"]
    assert CliRunner().invoke(command, line).exit_code == 0


@pytest.mark.parametrize("collective", ["alltoall", "allgather", "bcast", "reduce", "allreduce"])
def test_the_command_writes_the_picture_that_it_shows(collective, tmp_path):
    line = [collective, "--topology", "topologies/fig-3-2.yaml", "--hosts", "n[0-4]"]
    shown = CliRunner().invoke(command, [*line, "--format", "svg"], catch_exceptions=False)
    assert shown.exit_code == 0
    assert "n4" in texts(parse(shown.stdout_bytes))
    file = tmp_path / "picture.svg"
    written = CliRunner().invoke(command, [*line, "--format", "svg", "--output", str(file)])
    assert (written.exit_code, written.output) == (0, "")
    assert file.read_bytes() == shown.stdout_bytes
    picture = CliRunner().invoke(command, [*line, "--format", "png"])
    assert picture.stdout_bytes.startswith(b"\x89PNG")


def test_text_and_json_are_written_as_they_are_shown(tmp_path):
    for output_format in ("text", "json"):
        line = ["bcast", "--topology", "topologies/fig-3-2.yaml", "--format", output_format]
        shown = CliRunner().invoke(command, line)
        CliRunner().invoke(command, [*line, "--output", str(tmp_path / "out")])
        assert (tmp_path / "out").read_bytes() == shown.stdout_bytes
    nowhere = CliRunner().invoke(command, [*line, "--output", str(tmp_path / "no" / "where")])
    assert "cannot write it" in str(nowhere.exception)


def test_topologies_of_the_repository_are_drawn():
    for name in ("fig-3-2", "chain-4x8-cyclic", "cluster-24-a"):
        topology = load_topology(f"topologies/{name}.yaml")
        root = parse(draw(topology, alltoall_schedule(topology), "svg"))
        assert cells(root, "messages") == topology.rank_count * (topology.rank_count - 1)
