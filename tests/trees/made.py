"""Random trees, and random tree files that may be wrong."""

from __future__ import annotations

import random

from stagegen.topology import Topology
from stagegen.trees import ConfiguredTree, Node, ordered, tree_yaml


def random_tree(chance: random.Random, ranks: int, name: str = "t") -> ConfiguredTree:
    """A tree of any shape: any rank may do the work of any node, and of several."""
    below: list[int | str] = list(range(ranks))
    chance.shuffle(below)
    nodes: list[Node] = []
    while len(below) > 1 or not nodes:
        take = chance.choice([1, 2, 2, 3, len(below)]) if len(nodes) < 3 * ranks else len(below)
        taken = [below.pop(chance.randrange(len(below))) for _ in range(min(take, len(below)))]
        nodes.append(Node(f"v{len(nodes)}", chance.randrange(ranks), tuple(taken)))
        below.append(nodes[-1].name)
    return ConfiguredTree(name, ordered(nodes), ranks)


def random_file(chance: random.Random, topology: Topology) -> str:
    """The text of a tree file; about half of them have something wrong."""
    text = tree_yaml(random_tree(chance, topology.rank_count))
    if chance.random() < 0.4:
        return text
    lines = text.splitlines()
    at = chance.randrange(len(lines))
    number = str(chance.randrange(topology.rank_count + 2))
    name = f"v{chance.randrange(6)}"
    change = chance.randrange(9)
    if change == 0:
        lines.pop(at)
    elif change == 1:
        lines.insert(chance.randrange(len(lines)), lines[at])
    elif change == 2:
        lines[at] = lines[at].replace("[", f"[{number}, ", 1)
    elif change == 3:
        lines[at] = lines[at].replace("[", f"[{name}, ", 1)
    elif change == 4:
        lines[at] = lines[at].replace("rank: ", f"rank: {number}", 1)
    elif change == 5:
        host = chance.choice([*topology.host_by_name, "nowhere"])
        lines[at] = lines[at].replace("{rank: ", f"{{host: {host}, rank: ", 1)
    elif change == 6:
        lines[at] = lines[at].replace("rank:", chance.choice(["host:", "worker:", ""]), 1)
    elif change == 7:
        place = chance.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:place] + chance.choice("[]{},:-x \t#0'") + lines[at][place:]
    else:
        parts = lines[at].split(", ")
        parts.pop(chance.randrange(len(parts)))
        lines[at] = ", ".join(parts)
    return "\n".join(lines) + "\n"
