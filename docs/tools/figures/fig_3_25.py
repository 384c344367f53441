"""Figure 3.25 of Faraj (2006) again: the longest message on the rings LR1 and LR3.

Clusters as in section 3.3.3: a random connected graph of switches with an average degree of 4,
five hosts for each switch, every host on a switch chosen at random; three ways to take a spanning
tree of the graph; 50 clusters for each point. The dissertation's graphs came from GT-ITM. Here
they are drawn from all graphs with twice as many links as switches, again until one is connected.

Writes ``fig_3_25.json`` (the numbers) and ``fig_3_25.svg`` beside this script. Takes about a
minute; needs matplotlib. The same clusters are drawn each time.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl
import networkx as nx

from stagegen.schedule import logical_ring
from stagegen.schedule.verify import verify_ring
from stagegen.topology import Host, Link, RankMap, Switch, Topology

FIGURES = Path(__file__).parents[2] / "figures"
HOSTS = (50, *range(100, 1001, 100))
HOSTS_PER_SWITCH = 5
DEGREE = 4
CLUSTERS = 50
RINGS = ("lr1", "lr3")
GIGABIT = 10**9

Ends = tuple[int, int]


def breadth_first(graph: nx.Graph, choice: random.Random) -> list[Ends]:
    """Return the breadth-first tree from a random switch."""
    return list(nx.bfs_edges(graph, choice.choice(sorted(graph))))


def depth_first(graph: nx.Graph, choice: random.Random) -> list[Ends]:
    """Return the depth-first tree from a random switch."""
    return list(nx.dfs_edges(graph, choice.choice(sorted(graph))))


def random_links(graph: nx.Graph, choice: random.Random) -> list[Ends]:
    """Return the links that close no loop when links are added in random order."""
    links, joined = sorted(graph.edges), nx.utils.UnionFind(graph)
    choice.shuffle(links)
    tree = []
    for one, other in links:
        if joined[one] != joined[other]:
            joined.union(one, other)
            tree.append((one, other))
    return tree


TREES: dict[str, Callable[[nx.Graph, random.Random], list[Ends]]] = {
    "BFS": breadth_first,
    "DFS": depth_first,
    "random": random_links,
}


def switch_graph(switches: int, choice: random.Random) -> nx.Graph:
    """Return a random connected graph of switches with the average degree."""
    pairs = list(combinations(range(switches), 2))
    while True:
        graph = nx.empty_graph(switches)
        graph.add_edges_from(choice.sample(pairs, switches * DEGREE // 2))
        if nx.is_connected(graph):
            return graph


def cluster(hosts: list[int], links: list[Ends]) -> Topology:
    """Return the cluster of so many hosts on each switch."""
    names = iter(range(sum(hosts)))
    switches = tuple(
        Switch(f"s{index}", tuple(f"n{next(names)}" for _ in range(count)))
        for index, count in enumerate(hosts)
    )
    machines = tuple(
        Host(n, switch.name, GIGABIT, 5e-5) for switch in switches for n in switch.hosts
    )
    ranks = RankMap("block", tuple(host.name for host in machines))
    tree = tuple(Link((f"s{one}", f"s{other}"), GIGABIT, 5e-5) for one, other in links)
    return Topology("random", switches, machines, tree, ranks)


def clusters(hosts: int, number: int) -> Iterator[tuple[str, Topology]]:
    """Yield a random cluster once with each of :data:`TREES`."""
    choice = random.Random(f"{hosts} hosts, cluster {number}")
    count = hosts // HOSTS_PER_SWITCH
    graph = switch_graph(count, choice)
    places = Counter(choice.randrange(count) for _ in range(hosts))
    for name, spanning in TREES.items():
        yield name, cluster([places[index] for index in range(count)], spanning(graph, choice))


def measure(hosts: int) -> dict[str, dict[str, Any]]:
    """Return for each tree and ring how many hops there are; all rings are verified."""
    hops: dict[str, list[int]] = {f"{tree} {lr}": [] for tree in TREES for lr in RINGS}
    proven = 0
    for number in range(CLUSTERS):
        for tree, topology in clusters(hosts, number):
            for lr in RINGS:
                ring = logical_ring(topology, lr)
                proof = verify_ring(topology, ring)
                proven += "smaller maximum" in proof.checked[-1]
                hops[f"{tree} {lr}"].append(ring.max_hops)
    found = {
        name: {
            "mean": round(mean(values), 3),
            "least": min(values),
            "most": max(values),
            **({"counts": dict(sorted(Counter(values).items()))} if name.endswith("lr3") else {}),
        }
        for name, values in hops.items()
    }
    return {**found, "lr3 proven by one switch": {"rings": proven, "of": len(TREES) * CLUSTERS}}


def plot(numbers: dict[str, Any], path: Path) -> None:
    """Draw both parts of the figure."""
    mpl.rcParams.update({"svg.hashsalt": "stagegen", "svg.fonttype": "none", "font.size": 9})
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency

    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    both, optimal = figure.subplots(1, 2)
    colours = {"BFS": "#4878a8", "DFS": "#c8553d", "random": "#5b8c5a"}
    styles = {"lr1": {"marker": "o"}, "lr3": {"marker": "s", "linestyle": "--"}}
    hosts = [int(count) for count in numbers]
    for axes, rings in ((both, RINGS), (optimal, ("lr3",))):
        for lr in rings:
            for tree, colour in colours.items():
                means = [row[f"{tree} {lr}"]["mean"] for row in numbers.values()]
                label = f"{lr.upper()}, {tree} tree"
                axes.plot(hosts, means, color=colour, markersize=3, label=label, **styles[lr])
        axes.set_xlabel("hosts (five for each switch)")
        axes.set_xlim(0, None)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=len(rings))
    both.set_title("LR1 and LR3", fontsize=9)
    both.set_ylabel(f"most hops on the ring, mean of {CLUSTERS}")
    both.set_ylim(0, 35)
    optimal.set_title("LR3 alone", fontsize=9)
    optimal.set_ylim(2, 4)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def main() -> None:
    """Draw clusters, make rings, write numbers and picture."""
    numbers = {str(hosts): measure(hosts) for hosts in HOSTS}
    text = json.dumps({"clusters": CLUSTERS, "hops": numbers}, indent=1)
    (FIGURES / "fig_3_25.json").write_text(text + "\n")
    plot(numbers, FIGURES / "fig_3_25.svg")


if __name__ == "__main__":
    main()
