"""How far the phases of an alltoall are from their bound: the table in docs/theory.md.

Usage: python docs/tools/figures/aapc_gap.py [CLUSTERS]   (in each row; 50 unless given)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from random import Random

from stagegen.schedule.alltoall.schedule import alltoall_phases
from stagegen.topology import Host, Link, RankMap, Switch, Topology

GIGABIT = 10**9
UPLINKS = (2, 3, 4, 5, 8, 10)


def cluster(
    hosts: Sequence[int],
    links: Sequence[tuple[int, int, float]],
    slots: Sequence[int] = (1,),
    speeds: Sequence[float] = (1,),
) -> Topology:
    """Switches with so many hosts, and links (switch, switch, Gbit/s) between them.

    Ranks and rates of the hosts' links go round the two lists; the slowest link has 1 Gbit/s.
    """
    found, switches = [], []
    for number, count in enumerate(hosts):
        names = [f"n{len(found) + index}" for index in range(count)]
        for index, name in enumerate(names, len(found)):
            rate = round(GIGABIT * speeds[index % len(speeds)])
            found.append(Host(name, f"s{number}", rate, 5e-5, slots[index % len(slots)]))
        switches.append(Switch(f"s{number}", tuple(names)))
    between = [Link((f"s{a}", f"s{b}"), round(GIGABIT * rate), 5e-5) for a, b, rate in links]
    ranks = tuple(host.name for host in found for _ in range(host.slots))
    return Topology(
        "random", tuple(switches), tuple(found), tuple(between), RankMap("block", ranks)
    )


def star(hosts: Sequence[int], uplinks: Sequence[float], **options: Sequence[float]) -> Topology:
    """Switches around a core without hosts."""
    links = [(0, number, rate) for number, rate in enumerate(uplinks, 1)]
    return cluster([0, *hosts], links, **options)


def three_level(random: Random, sizes: Callable[[], int]) -> Topology:
    """Two to four times two to four switches, with links of one rate on each level."""
    upper, lower = random.choice(UPLINKS), random.choice(UPLINKS)
    hosts, links, leaves = [0], [], random.randint(2, 4)
    for _ in range(random.randint(2, 4)):
        middle = len(hosts)
        links.append((0, middle, 2 * upper))
        links += [(middle, middle + leaf, lower) for leaf in range(1, leaves + 1)]
        hosts += [0, *(sizes() for _ in range(leaves))]
    return cluster(hosts, links)


def two_level_equal(random: Random) -> Topology:
    """Up to 16 switches with as many hosts and uplinks as each other."""
    count = random.randint(2, 16)
    return star([random.randint(4, 32)] * count, [random.choice(UPLINKS)] * count)


def two_level_uneven(random: Random) -> Topology:
    """Up to 16 switches, each with its own number of hosts and its own uplink."""
    count = random.randint(2, 16)
    uplinks = [random.choice(UPLINKS) for _ in range(count)]
    return star([random.randint(4, 32) for _ in range(count)], uplinks)


def two_level_tight(random: Random) -> Topology:
    """Equal switches whose uplinks are about as loaded as their hosts."""
    count, size = random.randint(2, 12), random.randint(4, 16)
    ranks = count * size
    uplink = -(-size * (ranks - size) // (ranks - 1)) - random.randint(0, 1)
    return star([size] * count, [max(2, uplink)] * count)


def three_level_equal(random: Random) -> Topology:
    """Three levels, as many hosts on every switch."""
    size = random.choice((4, 8, 12, 16))
    return three_level(random, lambda: size)


def three_level_uneven(random: Random) -> Topology:
    """Three levels, up to twice as many hosts on one switch as on another."""
    size = random.choice((4, 8, 12, 16))
    return three_level(random, lambda: random.randint(size // 2, size))


def chain(random: Random) -> Topology:
    """Up to 8 switches in a row."""
    count = random.randint(2, 8)
    links = [(i, i + 1, random.choice(UPLINKS)) for i in range(count - 1)]
    return cluster([random.randint(2, 16) for _ in range(count)], links)


def any_tree(random: Random, **options: Sequence[float]) -> Topology:
    """Up to 12 switches in any tree, some without hosts."""
    count, most = random.randint(2, 12), random.choice((4, 8, 16))
    hosts = [random.choice((0, random.randint(1, most), most)) for _ in range(count)]
    links = [(random.randrange(i), i, random.choice((1, *UPLINKS))) for i in range(1, count)]
    return cluster([hosts[0] + 2, *hosts[1:]], links, **options)


def slots(random: Random) -> Topology:
    """Hosts with one, two and four ranks."""
    return any_tree(random, slots=(2, 2, 4, 1))


def slots_and_speeds(random: Random) -> Topology:
    """Hosts with one, two and four ranks and links of three rates."""
    return any_tree(random, slots=(1, 2, 4), speeds=(1, 10, 1, 2.5))


def slow_links(random: Random) -> Topology:
    """Switches, some with an uplink that is slower than a host's link."""
    count = random.randint(2, 6)
    uplinks = [random.choice((0.1, 0.4, 0.5, 0.75, 1, 2)) for _ in range(count)]
    return star([random.randint(2, 10) for _ in range(count)], uplinks)


CLUSTERS: dict[str, Callable[[Random], Topology]] = {
    "two levels, equal switches": two_level_equal,
    "two levels, uneven": two_level_uneven,
    "two levels, uplinks and hosts about equally loaded": two_level_tight,
    "three levels, equal switches": three_level_equal,
    "three levels, uneven": three_level_uneven,
    "chains of switches": chain,
    "random trees": any_tree,
    "random trees, 1 to 4 ranks on a host": slots,
    "the same, hosts of three speeds": slots_and_speeds,
    "two levels, some uplinks slower than hosts": slow_links,
}


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    print("| clusters | ranks | optimal | mean gap | largest gap | slowest |")
    print("|---|---|---|---|---|---|")
    for name, make in CLUSTERS.items():
        random = Random(name)
        rows = []
        for _ in range(count):
            topology = make(random)
            start = time.process_time()
            gap = alltoall_phases(topology).gap
            rows.append((topology.rank_count, gap, time.process_time() - start))
        ranks, gaps, seconds = zip(*rows, strict=True)
        print(
            f"| {name} | {min(ranks)}–{max(ranks)} | {gaps.count(0)} of {count} "
            f"| {sum(gaps) / count:.2%} | {max(gaps):.2%} | {max(seconds):.1f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
