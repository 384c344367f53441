"""What ``make bench`` measures: its clusters, and which collectives at which sizes on each.

The fixed cluster has all collectives. The clusters drawn at random show that what holds there
holds elsewhere: an alltoall from 32 KiB to 256 KiB, and a broadcast. This takes five minutes on 9
hosts and ten on 12, once for each congestion control; other collectives can be asked for. A
composition is as good as its parts are tuned, and only what is asked for is tuned.

Sizes match the guidelines: where a collective counts the whole message, a size is the number of
ranks times one of those that others count per rank.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from docs.tools.bench_schedule import cluster
from stagegen.catalogue import load_catalogue
from stagegen.data import TOPOLOGIES
from stagegen.generate.write import write_file
from stagegen.topology import RankMap, Topology, load_topology, topology_yaml

KIB, MIB = 1 << 10, 1 << 20

CATALOGUE = load_catalogue()

#: TCP congestion controls: Linux's default, and that of the machine that the lab was made on.
CONGESTION = ("cubic", "bbr")

#: Of the random clusters: the links' rate in bit/s, as in topologies/chain-4x4-cyclic.yaml, how
#: many switches and hosts, and the fewest hosts on a switch.
RATE = 20_000_000
SWITCHES = (2, 4)
HOSTS = (8, 16)
HOSTS_LEAST = 2

#: The longest alltoall. It is compared, but not tuned, since a look at all algorithms would take
#: a quarter of an hour: the rule of 64 KiB serves it.
LONGEST = 256 * KIB


@dataclass(frozen=True)
class Cluster:
    """A cluster of the benchmark.

    Attributes:
        name: as on the page and in the names of folders.
        source: its topology file, or the seed that it is drawn by.
        collectives: which are measured unless others are asked for.
        sizes: bytes per rank or pair at which they are compared.
        tuned: bytes, as each collective counts them, at which they are tuned.
        repetitions: of each call; ``stagegen bench`` makes more where calls are short, and at
            most 5 where they take seconds.

    Alltoall has further sizes, those of its targets.
    """

    name: str
    source: Path | int
    collectives: tuple[str, ...]
    sizes: tuple[int, ...]
    tuned: tuple[int, ...]
    repetitions: int

    def topology(self) -> Topology:
        """Return the cluster itself."""
        if isinstance(self.source, int):
            return random_cluster(self.source)
        return load_topology(self.source)

    def file(self, folder: Path) -> Path:
        """Return its topology file; one that was drawn is written into a folder."""
        if isinstance(self.source, Path):
            return self.source
        path = folder / f"{self.name}.yaml"
        write_file(path, topology_yaml(self.topology()))
        return path

    def tuned_at(self, collectives: Iterable[str]) -> tuple[int, ...]:
        """Return the sizes in bytes at which collectives are tuned together, as each counts."""
        return _ascending((*self.tuned, *((32 * KIB,) if "alltoall" in collectives else ())))

    def compared(self, collective: str) -> tuple[int, ...]:
        """Return the sizes in bytes at which a collective is compared, as it counts them."""
        described = CATALOGUE.collective(collective)
        if not described.has_data:
            return (0,)
        if described.counts_whole:
            ranks = self.topology().rank_count
            # The shortest messages are compared as such, too: they cost nothing.
            short = (size for size in self.sizes if size <= 64)
            return _ascending((*short, *(ranks * size for size in self.sizes)))
        longer = (32 * KIB, LONGEST) if collective == "alltoall" else ()
        return _ascending((*self.sizes, *longer))


def _ascending(sizes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(sizes)))


def random_cluster(seed: int) -> Topology:
    """Return a cluster drawn by a seed: a tree of switches, hosts on each, ranks in any order."""
    chance = random.Random(seed)
    switches, hosts = chance.randint(*SWITCHES), chance.randint(*HOSTS)
    parents = [chance.randrange(index) for index in range(1, switches)]
    hosts_on = [HOSTS_LEAST] * switches
    for _ in range(hosts - sum(hosts_on)):
        hosts_on[chance.randrange(switches)] += 1
    drawn = cluster(parents, hosts_on, RATE)
    ranks = list(drawn.ranks)
    chance.shuffle(ranks)
    order = RankMap("list", tuple(ranks))
    return replace(drawn, name=f"random-{seed}", launcher="lab", rank_map=order)


def _drawn(seed: int) -> Cluster:
    return Cluster(f"random-{seed}", seed, ("alltoall", "bcast"), (64 * KIB,), (64 * KIB,), 5)


FIXED = Cluster(
    "chain-4x4-cyclic",
    TOPOLOGIES / "chain-4x4-cyclic.yaml",
    CATALOGUE.collectives,
    (1, 64, KIB, 4 * KIB, 16 * KIB, 64 * KIB),
    (1, 64, KIB, 4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB),
    9,
)

#: The first seeds that draw a cluster of two, three and four switches.
SEEDS = (1, 7, 5)

#: All clusters, by name.
CLUSTERS = {one.name: one for one in (FIXED, *map(_drawn, SEEDS))}
