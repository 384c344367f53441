"""Tree files: read as written; random ones are trees or refused with a line; the shapes."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError, ScheduleError
from stagegen.schedule.verify import facts_of, verify_configured
from stagegen.trees import SHAPES, make_tree, read_tree, shape_of, tree_yaml
from stagegen.trees.file import first_circle
from tests.strategies import examples, make_topology
from tests.trees.made import correct_file, damaged, random_file, random_tree

EIGHT_BY_FOUR = make_topology([4, 4], [0], slots={f"n{i}": 4 for i in range(8)})
FOUR_BY_EIGHT = make_topology([4], [], slots={f"n{i}": 8 for i in range(4)})
THREE = make_topology([2, 1], [0], slots={"n0": 3, "n1": 2, "n2": 1})


def down_by_hand(tree):
    """The ranks that get the result, by a plain walk: a node's worker serves its contributors."""
    got = {tree.root.worker}
    for sender, receiver in tree.down:
        assert sender in got
        assert receiver not in got
        got.add(receiver)
    return got


def sum_of(tree, node=None):
    """Every rank's number, collected along the tree."""
    node = node or tree.root
    return [
        rank
        for one in node.contributors
        for rank in ([one] if isinstance(one, int) else sum_of(tree, tree.by_name[one]))
    ]


@examples(150)
@given(st.integers(0, 10**9))
def test_a_tree_is_read_as_it_was_written(tmp_path_factory, seed):
    tree = random_tree(random.Random(seed), THREE.rank_count)
    file = tmp_path_factory.mktemp("trees") / "t.tree.yaml"
    for topology in (None, THREE):
        file.write_text(tree_yaml(tree, topology))
        assert read_tree(file, THREE) == tree


def test_a_host_stands_for_its_lowest_rank_that_contributes_or_for_its_lowest_one(tmp_path):
    """Half of the files have hosts; an oracle finds the ranks below a node by a walk."""
    file = tmp_path / "t.tree.yaml"
    chance = random.Random(23)
    files = nodes = near = 0
    for _ in range(200):
        text = correct_file(chance, THREE)
        file.write_text(text)
        tree = read_tree(file, THREE)
        hosts = dict(re.findall(r"(\w+): +\{host: (\w+)", text))
        files += bool(hosts)
        for name, host in hosts.items():
            givers = tree.by_name[name].contributors
            ranks = (one if isinstance(one, int) else tree.by_name[one].worker for one in givers)
            here = [rank for rank in ranks if THREE.ranks[rank] == host]
            expected = min(here) if here else THREE.ranks.index(host)
            assert tree.by_name[name].worker == expected
            nodes += 1
            near += bool(here)
    assert 70 < files < 130
    assert 20 < near < nodes - 20


@pytest.mark.parametrize("files", [600, 3000])
def test_random_files_are_trees_or_refused_with_a_line(tmp_path, files):
    """What the reader lets pass has every rank once, and the checker agrees."""
    file = tmp_path / "t.tree.yaml"
    chance = random.Random(17)
    good = unplaced = 0
    reasons = set()
    for _ in range(files):
        file.write_text(random_file(chance, THREE))
        try:
            tree = read_tree(file, THREE)
        except InputError as error:
            unplaced += not re.match(rf"{re.escape(str(file))}:\d+: .", str(error))
            reasons.add(re.sub(r"'[^']*'|\d+|node \S+", "#", error.message)[:40])
            continue
        good += 1
        assert sorted(sum_of(tree)) == list(range(THREE.rank_count))
        assert down_by_hand(tree) == set(range(THREE.rank_count))
        facts = facts_of(THREE, tree.rows)
        assert (facts.up, facts.down) == (len(tree.up), len(tree.down))
        assert facts.height == tree.height
    assert good > files // 6
    assert not unplaced
    assert len(reasons) > 10, reasons


def is_told(file, error):
    """Whether a message is FILE:LINE and one short line of text, with a line that the file has."""
    text = str(error)
    ends = len(re.split(b"\r\n|\n|\r|\xc2\x85|\xe2\x80[\xa8\xa9]", file.read_bytes()))
    placed = re.match(rf"{re.escape(str(file))}:\d+: .", text)
    return placed and 1 <= error.line <= ends and text.isprintable() and len(text) < 1000


def test_thousands_of_damaged_files_are_trees_or_refused_with_a_line(tmp_path):
    """Any other error fails the test: no file makes a traceback."""
    file = tmp_path / "t.tree.yaml"
    chance = random.Random(4)
    good = 0
    reasons: set[str] = set()
    untold: list[tuple[int, str]] = []
    for number in range(1600):
        text = correct_file(chance, THREE)
        file.write_bytes(damaged(chance, text))
        try:
            tree = read_tree(file, THREE)
        except InputError as error:
            if not is_told(file, error):
                untold.append((number, str(error)))
            reasons.add(re.sub(r"'[^']*'|\d+|node \S+", "#", error.message)[:40])
            continue
        good += 1
        assert sorted(sum_of(tree)) == list(range(THREE.rank_count))
        verify_configured(THREE, "allreduce", tree.rows)
    assert not untold
    assert good > 50
    assert len(reasons) > 40


def test_an_escape_for_no_character_has_a_line(tmp_path):
    file = tmp_path / "t.tree.yaml"
    for code in ("FFFFFFFF", "00110000"):
        file.write_text(f'name: t\nnodes:\n  "\\U{code}": {{}}\n')
        with pytest.raises(InputError, match=r":3: an escape for a character that does not exist"):
            read_tree(file, THREE)


GOOD = """name: t
nodes:
  root: {rank: 0, contributors: [a, b]}
  a: {host: n0, contributors: [0-2]}
  b: {host: n1, contributors: [3, 4, 5]}
"""

MISTAKES = {
    "rank 2 contributes to node a already": (5, "[3, 4, 5]", "[3, 4, 2]"),
    "rank 5 contributes to no node": (3, "[3, 4, 5]", "[3, 4]"),
    "rank 6 does not exist; ranks are 0 to 5": (5, "[3, 4, 5]", "[3-6]"),
    "'5-3' goes backwards; write 3-5": (5, "[3, 4, 5]", "[5-3]"),
    "there is no node 'c'": (3, "[a, b]", "[a, c]"),
    "node b contributes to no node, nor does root": (5, "[a, b]", "[a]"),
    "a circle: root → a → root": (3, "[0-2]", "[0-2, root]"),
    "host 'n9' does not exist": (4, "host: n0", "host: n9"),
    "neither a rank nor a host": (4, "host: n0, ", ""),
    "both a rank and a host": (4, "host: n0", "host: n0, rank: 1"),
    "unknown key 'worker'": (4, "host: n0", "host: n0, worker: 1"),
    "node a has no contributor": (4, "[0-2]", "[]"),
    "rank 7 does not exist": (3, "rank: 0", "rank: 7"),
    "the rank 'x' is not a whole number": (3, "rank: 0", "rank: x"),
    "the node '9a' has to begin with a letter": (4, "  a:", "  9a:"),
    "there is no node; write at least the root": (3, GOOD[GOOD.index("  root") :], "  {}\n"),
    "'b' is already given on line 5": (6, "5]}\n", "5]}\n  b: {rank: 0, contributors: [5]}\n"),
    "the tree is for 7 ranks": (2, "nodes:", "ranks: 7\nnodes:"),
}  # fmt: skip


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_has_a_line(tmp_path, message):
    line, old, new = MISTAKES[message]
    file = tmp_path / "t.tree.yaml"
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        read_tree(file, THREE)
    assert str(caught.value).startswith(f"{file}:{line}: ")
    assert message in str(caught.value)


def test_a_tree_of_too_many_levels_is_refused(tmp_path):
    file = tmp_path / "t.tree.yaml"
    chain = "".join(f"  v{i}: {{rank: 0, contributors: [v{i + 1}]}}\n" for i in range(300))
    file.write_text(f"name: t\nnodes:\n{chain}  v300: {{rank: 0, contributors: [0-5]}}\n")
    with pytest.raises(InputError, match=r":3: the tree has 301 levels; use at most 256"):
        read_tree(file, THREE)


def test_a_host_stands_for_its_rank_that_hands_over_data(tmp_path):
    file = tmp_path / "t.tree.yaml"
    file.write_text(GOOD)
    assert {n.name: n.worker for n in read_tree(file, THREE).nodes} == {"root": 0, "a": 0, "b": 3}
    file.write_text(GOOD.replace("[3, 4, 5]", "[4, 5]").replace("[a, b]", "[a, b, 3]"))
    assert read_tree(file, THREE).by_name["b"].worker == 4
    file.write_text(GOOD.replace("rank: 0", "host: n2"))
    assert read_tree(file, THREE).root.worker == 5


@pytest.mark.parametrize("name", [*SHAPES, "2-ary", "3-ary", "100-ary"])
@pytest.mark.parametrize("topology", [EIGHT_BY_FOUR, FOUR_BY_EIGHT, THREE], ids=lambda t: t.name)
def test_every_shape_is_a_tree_on_every_cluster(tmp_path, topology, name):
    for root_host in ("", topology.ranks[-1]):
        tree = make_tree(topology, shape_of(name), "t", root_host)
        file = tmp_path / "t.tree.yaml"
        file.write_text(tree_yaml(tree, topology))
        assert read_tree(file, topology) == tree
        assert topology.ranks[tree.root.worker] == (root_host or topology.ranks[0])
        verify_configured(topology, "allreduce", tree.rows)


def levels(topology, name):
    """Height, nodes, and the hosts that do work of the cluster root."""
    tree = make_tree(topology, shape_of(name), "t")
    roots = {topology.ranks[n.worker] for n in tree.nodes if n.name.startswith("root")}
    return tree.height, len(tree.nodes), len(roots)


def test_the_configurations_of_the_paper_have_its_levels():
    """Section 6.1 on 4 hosts of 8, section 6.2 on 8 hosts of 4: levels and hosts of the root."""
    eights = ("nary8W", "quad8W", "binaryquad8W", "binary8W")
    assert [levels(FOUR_BY_EIGHT, name) for name in eights] == [
        (2, 5, 1), (3, 13, 1), (4, 29, 1), (5, 31, 1)
    ]  # fmt: skip
    fours = ("nary4W", "binary4W", "split4W", "split4W-2")
    assert [levels(EIGHT_BY_FOUR, name) for name in fours] == [
        (2, 9, 1), (5, 31, 1), (5, 31, 4), (5, 23, 4)
    ]  # fmt: skip


@pytest.mark.parametrize("hosts", [2, 4, 5, 7, 8])
def test_hosts_without_a_part_of_the_cluster_root_have_one_node(hosts):
    topology = make_topology([hosts], [], slots={f"n{i}": 4 for i in range(hosts)})
    tree = make_tree(topology, shape_of("split-2"), "t")
    at_root = {node.worker // 4 for node in tree.nodes if node.name.startswith("root")}
    nodes = Counter(node.worker // 4 for node in tree.nodes if not node.name.startswith("root"))
    assert nodes == {host: 3 if host in at_root else 1 for host in range(hosts)}


@pytest.mark.parametrize("damage", range(6))
def test_the_checker_finds_damage(damage):
    rows = [[worker, list(c)] for worker, c in make_tree(THREE, shape_of("binary"), "t").rows]
    verify_configured(THREE, "allreduce", rows)
    if damage == 0:
        rows[0][1].append(rows[1][1][0])
    elif damage == 1:
        rows[0][1].pop()
    elif damage == 2:
        rows[0][0] = 6
    elif damage == 3:
        rows[0][1].append(6 + len(rows) - 1)
    elif damage == 4:
        rows.reverse()
    else:
        rows[1][1] = []
    with pytest.raises(ScheduleError):
        verify_configured(THREE, "allreduce", rows)


def test_the_uses_of_each_link_are_counted():
    flat = facts_of(EIGHT_BY_FOUR, make_tree(EIGHT_BY_FOUR, shape_of("flat"), "t").rows)
    nary = facts_of(EIGHT_BY_FOUR, make_tree(EIGHT_BY_FOUR, shape_of("nary"), "t").rows)
    uses = {link.edge: (link.up, link.at_once, link.down) for link in nary.links}
    assert flat.links[0].up == flat.links[0].at_once == 28
    assert (flat.up_between, nary.up_between, nary.down_between) == (28, 7, 7)
    assert uses["s1", "s0"] == (4, 4, 0)
    assert uses["s0", "s1"] == (0, 0, 4)
    assert uses["s0", "n0"] == (7, 7, 0)
    assert (flat.most_work, flat.worker, nary.most_work) == (31, 0, 10)


def test_results_that_may_meet_are_counted_as_operands_are():
    flat = make_tree(EIGHT_BY_FOUR, shape_of("flat"), "t")
    uses = {link.edge: link for link in facts_of(EIGHT_BY_FOUR, flat.rows).links}
    assert (uses["n0", "s0"].down, uses["n0", "s0"].down_at_once) == (28, 28)
    assert (uses["n0", "s0"].at_once, uses["s0", "n0"].down_at_once) == (0, 0)
    rows = [(0, (1, 2, 4, 5)), (0, (0, 3, 6))]  # from n0, two results go at depth 1, one at 0
    uses = {link.edge: link for link in facts_of(THREE, rows).links}
    assert (uses["n0", "s0"].down, uses["n0", "s0"].down_at_once) == (3, 2)


def test_a_rank_with_several_nodes_gets_the_result_once():
    """Rank 3 on host n1 hands over the operands of two nodes to the root on n0, at one depth."""
    rows = [(3, (3,)), (3, (4, 5)), (0, (0, 1, 2, 6, 7))]
    uses = {link.edge: link for link in facts_of(THREE, rows).links}
    assert (uses["n1", "s0"].at_once, uses["s0", "n1"].down_at_once) == (2, 1)


@examples(150)
@given(st.integers(0, 10**9))
def test_no_more_results_meet_than_operands(seed):
    """The proof of a routine that has both ways names the way up only."""
    tree = random_tree(random.Random(seed), THREE.rank_count)
    uses = {link.edge: link for link in facts_of(THREE, tree.rows).links}
    for (one, other), link in uses.items():
        assert link.down_at_once <= uses[other, one].at_once
        assert link.down_at_once <= link.down


@pytest.mark.parametrize(
    ("collective", "wanted"),
    [
        ("bcast", "at most 28 messages from nodes of one depth share a link (n0→s0)"),
        ("reduce", "at most 28 messages to nodes of one depth share a link (s0→n0)"),
        ("allreduce", "at most 28 messages to nodes of one depth share a link (s0→n0)"),
    ],
)
def test_the_proof_names_a_link_in_the_direction_of_the_data(collective, wanted):
    rows = make_tree(EIGHT_BY_FOUR, shape_of("flat"), "t").rows
    assert verify_configured(EIGHT_BY_FOUR, collective, rows).checked[-1] == wanted


class Counted(dict):
    """Counts how often it is asked."""

    asked = 0

    def get(self, key, default=None):
        self.asked += 1
        return super().get(key, default)

    def __getitem__(self, key):
        self.asked += 1
        return super().__getitem__(key)


def test_circles_are_looked_for_once_at_each_node():
    names = [f"v{i}" for i in range(8192)]
    above = Counted(pairwise(names))
    assert first_circle(names, above) == []
    assert above.asked <= len(names)
    above["v8191"] = "v4000"
    way = first_circle(names, above)
    assert (way[0], way[-1], len(way)) == ("v4000", "v4000", 8193 - 4000)
    assert above.asked <= 4 * len(names)


@examples(300)
@given(st.lists(st.integers(-1, 9), min_size=1, max_size=10))
def test_the_circle_that_an_error_names_is_the_first_one_of_the_file(parents):
    """As a walk from each node says, which may ask for each node as often as there are nodes."""
    names = [f"v{i}" for i in range(len(parents))]
    above = {n: f"v{p}" for n, p in zip(names, parents, strict=True) if 0 <= p < len(parents)}
    wanted: list[str] = []
    for name in names:
        way = [name]
        while not wanted and way[-1] in above and len(way) <= len(names):
            way.append(above[way[-1]])
            wanted = way if way[-1] == name else []
    assert first_circle(names, above) == wanted
