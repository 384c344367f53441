"""The model of a cluster: switches, hosts, the links between them, and the host of each rank.

All classes are frozen and have a canonical JSON form; a :class:`Topology` is always a tree
(links that a spanning tree leaves out are kept apart, as ``blocked``). The model is that of
A. Faraj, *Automatic Empirical Techniques for Developing Efficient MPI Collective
Communication Routines* (2006), section 3.1: full-duplex links, one port per host.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from stagegen.topology.tree import Edge, RankTree, build_rank_tree

RANK_ORDERS = ("block", "cyclic")
WHOLE = "whole"
"""The name of the group, and of the communicator, of all ranks."""


@dataclass(frozen=True)
class Host:
    """A machine and the link to its switch.

    Attributes:
        name: its name in the topology, unique among hosts and switches.
        switch: the switch that it is plugged into.
        bandwidth: of its link, in bit/s, in each direction.
        latency: of its link, in seconds.
        slots: how many ranks it can hold.
        address: where a launcher reaches it, if that is not its name.
    """

    name: str
    switch: str
    bandwidth: int
    latency: float
    slots: int = 1
    address: str | None = None


@dataclass(frozen=True)
class Switch:
    """A switch and the names of the hosts plugged into it, in file order."""

    name: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Link:
    """A link between two switches.

    Attributes:
        ends: the two switches.
        bandwidth: of one cable, in bit/s, in each direction.
        latency: in seconds.
        count: how many parallel cables act as this one link.
    """

    ends: tuple[str, str]
    bandwidth: int
    latency: float
    count: int = 1

    @property
    def rate(self) -> int:
        """The rate of all its cables together, in bit/s in each direction."""
        return self.bandwidth * self.count


@dataclass(frozen=True)
class RankMap:
    """Which host each rank runs on.

    Attributes:
        order: how the file gives it: `block`, `cyclic` or `list`.
        hosts: the host of each rank.
    """

    order: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Hosts whose ranks get schedules of their own, besides those of all ranks.

    Attributes:
        name: unique among the groups, and not `whole`.
        hosts: their names; each has a rank.
    """

    name: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Site:
    """Switches at one place, where hosts are nearer to each other than to those of other sites.

    Attributes:
        name: unique among the sites.
        switches: their names, in the order of the file.
    """

    name: str
    switches: tuple[str, ...]


@dataclass(frozen=True)
class Topology:
    """A cluster as a tree of switches with hosts, and its ranks.

    Attributes:
        name: names the folder of its generated files.
        switches: in file order.
        hosts: in file order, those without a rank included.
        links: between switches, in file order; they form a tree.
        rank_map: the host of every rank.
        launcher: how to start programs on it by default.
        spanning_root: the switch from which the spanning tree was taken, if the file asks.
        blocked: links that the spanning tree leaves out.
        groups: in file order.
        sites: in file order; none, or so that each switch with hosts is in one of them.
    """

    name: str
    switches: tuple[Switch, ...]
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]
    rank_map: RankMap
    launcher: str | None = None
    spanning_root: str | None = None
    blocked: tuple[Link, ...] = ()
    groups: tuple[Group, ...] = ()
    sites: tuple[Site, ...] = ()

    @property
    def ranks(self) -> tuple[str, ...]:
        """The host name of each rank."""
        return self.rank_map.hosts

    @property
    def rank_count(self) -> int:
        """How many ranks there are."""
        return len(self.rank_map.hosts)

    @cached_property
    def host_by_name(self) -> Mapping[str, Host]:
        """Hosts by their names."""
        return {host.name: host for host in self.hosts}

    @cached_property
    def site_numbers(self) -> Mapping[str, int]:
        """The number of each host's site, by the host's name; 0 for all without sites."""
        of = {name: number for number, site in enumerate(self.sites) for name in site.switches}
        return {host.name: of.get(host.switch, 0) for host in self.hosts}

    @cached_property
    def switch_numbers(self) -> Mapping[str, int]:
        """The number of each host's switch among those with hosts, by the host's name."""
        with_hosts = (switch for switch in self.switches if switch.hosts)
        of = {switch.name: number for number, switch in enumerate(with_hosts)}
        return {host.name: of[host.switch] for host in self.hosts}

    @cached_property
    def tree(self) -> RankTree:
        """The tree whose leaves are the ranks, without switches that lead nowhere."""
        return build_rank_tree(
            [switch.name for switch in self.switches],
            [(host.name, host.switch) for host in self.hosts],
            [link.ends for link in self.links],
            self.ranks,
        )

    @cached_property
    def rates(self) -> Mapping[Edge, int]:
        """The rate of every directed physical edge, in bit/s."""
        both: dict[Edge, int] = {}
        for host in self.hosts:
            both[host.name, host.switch] = both[host.switch, host.name] = host.bandwidth
        for link in self.links:
            one, other = link.ends
            both[one, other] = both[other, one] = link.rate
        return both

    @cached_property
    def latencies(self) -> Mapping[Edge, float]:
        """The latency of every directed physical edge, in seconds."""
        both: dict[Edge, float] = {}
        for host in self.hosts:
            both[host.name, host.switch] = both[host.switch, host.name] = host.latency
        for link in self.links:
            one, other = link.ends
            both[one, other] = both[other, one] = link.latency
        return both

    def path(self, source: int, destination: int) -> tuple[Edge, ...]:
        """Return the directed edges from one rank to another, in their order.

        The first and the last node are hosts, or `host:slot` where a host has several ranks.
        """
        return self.tree.path(source, destination)

    def hops(self, source: int, destination: int) -> int:
        """Return the path length of section 3.1: how many switches a message passes."""
        return self.tree.hops(source, destination)

    def to_json(self) -> dict[str, Any]:
        """Return the canonical JSON form; lists keep the order of the file."""
        return {
            "name": self.name,
            "launcher": self.launcher,
            "switches": [asdict(switch) for switch in self.switches],
            "hosts": [asdict(host) for host in self.hosts],
            "links": [asdict(link) for link in self.links],
            "blocked": [asdict(link) for link in self.blocked],
            "spanning_root": self.spanning_root,
            "rank_order": self.rank_map.order,
            "ranks": list(self.ranks),
            "groups": [asdict(group) for group in self.groups],
            "sites": [asdict(site) for site in self.sites],
        }

    @cached_property
    def hash(self) -> str:
        """SHA-256 of what schedules and measurements depend on.

        That is: switches, hosts (slots, rates, latencies), the links of the tree, the host of
        each rank, and the groups and sites if there are any, all in file order. Name, launcher,
        addresses and blocked links may change without making generated files stale.
        """
        form = self.to_json()
        matters = {key: form[key] for key in ("switches", "links", "ranks")}
        if self.groups:
            matters["groups"] = form["groups"]
        if self.sites:
            matters["sites"] = form["sites"]
        matters["hosts"] = [{**host, "address": None} for host in form["hosts"]]
        text = json.dumps(matters, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
