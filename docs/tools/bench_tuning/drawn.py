"""What is drawn by a seed: the jobs that a scheduler hands out, and a program that runs."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from stagegen import __version__
from stagegen.catalogue import Catalogue
from stagegen.catalogue.algorithm import NATIVE
from stagegen.topology import WHOLE, RankMap, Topology
from stagegen.tune.communicators import Communicator
from stagegen.tune.decision import CLUSTER
from stagegen.tune.program import VERSION, Calls

#: How many jobs, and of a program how many collectives, and sizes of each.
JOBS, COLLECTIVES, SIZES = 10, 3, 4

#: The largest message of a program, in bytes.
LARGEST = 256 * 1024

#: Seconds that a program spends in collectives.
SECONDS = 600.0


@dataclass(frozen=True)
class Job:
    """A job on some of a cluster's hosts.

    Attributes:
        hosts: names, in the order of the file.
        ranks_per_host: on each of them.
    """

    hosts: tuple[str, ...]
    ranks_per_host: int

    @property
    def name(self) -> str:
        """The hosts and the ranks on each."""
        return f"{self.ranks_per_host} on {' '.join(self.hosts)}"

    def topology(self, cluster: Topology) -> Topology:
        """Return the cluster with the job's ranks only, host by host."""
        ranks = tuple(host for host in self.hosts for _ in range(self.ranks_per_host))
        return replace(cluster, rank_map=RankMap("list", ranks))

    def communicator(self, cluster: Topology) -> Communicator:
        """Return the job's ranks among those of the whole cluster."""
        chosen: list[int] = []
        for name in self.hosts:
            on_it = [rank for rank, host in enumerate(cluster.ranks) if host == name]
            chosen += on_it[: self.ranks_per_host]
        return Communicator(self.name, tuple(chosen), len(self.hosts))


def draw_jobs(cluster: Topology, seed: int, count: int = JOBS) -> tuple[Job, ...]:
    """Return different jobs of at least two ranks: hosts and ranks per host are drawn."""
    chance = random.Random(seed)
    names = [host.name for host in cluster.hosts]
    slots = {name: cluster.ranks.count(name) for name in names}
    jobs: dict[Job, None] = {}
    while len(jobs) < count:
        ranks = chance.randint(1, max(slots.values()))
        able = [name for name in names if slots[name] >= ranks]
        hosts = set(chance.sample(able, chance.randint(1, len(able))))
        if ranks * len(hosts) > 1:
            jobs[Job(tuple(name for name in names if name in hosts), ranks)] = None
    return tuple(jobs)


def draw_program(
    cluster: Topology,
    catalogue: Catalogue,
    collectives: Sequence[str],
    seed: int,
    native: Callable[[str, int], float],
    largest: int = LARGEST,
) -> tuple[Calls, ...]:
    """Return the calls of a program that spends its time on a few collectives and sizes.

    Args:
        cluster: on all of its ranks.
        catalogue: describes the collectives.
        collectives: that it may call; those without data are called with 0 bytes.
        seed: of everything.
        native: the seconds of a native call of a collective and size.
        largest: message, in bytes.
    """
    chance = random.Random(seed)
    called = chance.sample(list(collectives), min(COLLECTIVES, len(collectives)))
    subjects = [
        (name, round(2 ** chance.uniform(0, math.log2(largest))))
        for name in called
        for _ in range(SIZES if catalogue.collective(name).has_data else 1)
    ]
    subjects = [(n, s if catalogue.collective(n).has_data else 0) for n, s in subjects]
    shares = [chance.random() for _ in subjects]
    calls: list[Calls] = []
    for (name, size), share in zip(subjects, shares, strict=True):
        each = native(name, size)
        count = max(1, round(SECONDS * share / sum(shares) / each))
        hosts = len(set(cluster.ranks))
        calls.append(Calls(name, CLUSTER, cluster.rank_count, hosts, size, count, count * each))
    return tuple(calls)


def trace_of(calls: Sequence[Calls], cluster: Topology) -> str:
    """Return the text of the file that ``LIBCOLL_TRACE=json:FILE`` would have written."""
    about = {"version": VERSION, "library": __version__, "cluster": cluster.name, "left_out": 0}
    listed = [_entry(one) for one in calls]
    form = {**about, "topology_hash": cluster.hash, "calls": listed}
    return json.dumps(form, indent=1) + "\n"


def _entry(calls: Calls) -> dict[str, object]:
    form = {**asdict(calls), "bytes": calls.size, "routine": NATIVE}
    del form["size"]
    return form


def whole_calls(calls: Sequence[Calls]) -> dict[tuple[str, int], int]:
    """Return how often each collective and size is called on the whole cluster."""
    found: dict[tuple[str, int], int] = {}
    for one in calls:
        if one.communicator in (CLUSTER, WHOLE):
            key = one.collective, one.size
            found[key] = found.get(key, 0) + one.calls
    return found
