"""Figure 3.29 of Faraj (2006) again: heights of the binary trees that Algorithm 5 computes.

Clusters as in section 3.4.2.2: links between random switches are added, those that would close a
loop are not, until all switches are joined; each host goes on a switch chosen at random; 20
clusters for each size, with 8 or 16 hosts for each switch on average. The root is on the switch
that the first host fell on.

Writes ``fig_3_29.json`` (the numbers) and ``fig_3_29.svg`` beside this script. Takes about a
minute; needs matplotlib. The same clusters are drawn each time.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl
import networkx as nx

from stagegen.schedule import broadcast_tree
from stagegen.schedule.model import least_height
from stagegen.schedule.trees.orders import ORDERS
from stagegen.schedule.verify import verify
from stagegen.topology import Host, Link, RankMap, Switch, Topology

FIGURES = Path(__file__).parents[2] / "figures"
HOSTS = (16, *range(64, 1025, 64))
HOSTS_PER_SWITCH = (16, 8)
CLUSTERS = 20
TRIED = {"one order": 1, "best order": ORDERS}
GIGABIT = 10**9

Ends = tuple[int, int]


def random_tree(switches: int, choice: random.Random) -> list[Ends]:
    """Return the links of a tree of switches, in the order in which they were added."""
    joined = nx.utils.UnionFind(range(switches))
    links: list[Ends] = []
    while len(links) < switches - 1:
        one, other = choice.randrange(switches), choice.randrange(switches)
        if joined[one] != joined[other]:
            joined.union(one, other)
            links.append((one, other))
    return links


def cluster(hosts: int, per_switch: int, number: int) -> Topology:
    """Return a random cluster; its ranks are numbered as the hosts were placed."""
    choice = random.Random(f"{hosts} hosts, {per_switch} per switch, cluster {number}")
    count = hosts // per_switch
    links = random_tree(count, choice)
    machines = tuple(
        Host(f"n{index}", f"s{choice.randrange(count)}", GIGABIT, 5e-5) for index in range(hosts)
    )
    plugged: dict[str, list[str]] = {f"s{index}": [] for index in range(count)}
    for host in machines:
        plugged[host.switch].append(host.name)
    return Topology(
        name="random",
        switches=tuple(Switch(name, tuple(own)) for name, own in plugged.items()),
        hosts=machines,
        links=tuple(Link((f"s{one}", f"s{other}"), GIGABIT, 5e-5) for one, other in links),
        rank_map=RankMap("list", tuple(host.name for host in machines)),
    )


def measure(hosts: int, per_switch: int) -> dict[str, Any]:
    """Return the heights with one and with several depth-first orders; all trees are verified."""
    heights: dict[str, list[int]] = {name: [] for name in TRIED}
    for number in range(CLUSTERS):
        topology = cluster(hosts, per_switch, number)
        for name, orders in TRIED.items():
            tree = broadcast_tree(topology, 0, "binary", orders=orders)
            verify(topology, tree)
            heights[name].append(tree.height)
    return {
        name: {"mean": round(mean(values), 3), "least": min(values), "most": max(values)}
        for name, values in heights.items()
    } | {"complete": least_height(hosts, 2)}


def plot(numbers: dict[str, Any], path: Path) -> None:
    """Draw a panel for each number of hosts per switch."""
    mpl.rcParams.update({"svg.hashsalt": "stagegen", "svg.fonttype": "none", "font.size": 9})
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency

    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    lines = {
        "one order": ("Algorithm 5, one depth-first order", "#c8553d", "o"),
        "best order": (f"Algorithm 5, the best of {ORDERS} orders", "#4878a8", "s"),
    }
    panels = figure.subplots(1, len(numbers), sharey=True)
    for axes, (per_switch, rows) in zip(panels, numbers.items(), strict=True):
        hosts = [int(count) for count in rows]
        for name, (label, colour, marker) in lines.items():
            own = [row[name] for row in rows.values()]
            axes.plot(
                hosts, [one["mean"] for one in own], marker=marker, markersize=3, color=colour,
                label=label,
            )  # fmt: skip
            axes.fill_between(
                hosts, [one["least"] for one in own], [one["most"] for one in own],
                color=colour, alpha=0.15, linewidth=0,
            )  # fmt: skip
        complete = [row["complete"] for row in rows.values()]
        axes.plot(hosts, complete, color="#222", linestyle=":", label="complete binary tree")
        axes.set_title(f"{per_switch} hosts per switch on average", fontsize=9)
        axes.set_xlabel("hosts")
        axes.set_xlim(0, None)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylim(0, 40)
    panels[0].set_ylabel(f"height, mean and range of {CLUSTERS} clusters")
    panels[0].legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def main() -> None:
    """Compute all points, write them, draw them."""
    numbers = {
        str(per_switch): {str(hosts): measure(hosts, per_switch) for hosts in HOSTS}
        for per_switch in HOSTS_PER_SWITCH
    }
    (FIGURES / "fig_3_29.json").write_text(json.dumps(numbers, indent=1) + "\n")
    plot(numbers, FIGURES / "fig_3_29.svg")


if __name__ == "__main__":
    main()
