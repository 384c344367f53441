"""Clusters as data: loading, checking and describing trees of switches and hosts."""

from stagegen.topology.groups import restricted_to
from stagegen.topology.hostlist import expand_hostlist
from stagegen.topology.load import line_of_key, load_topology
from stagegen.topology.model import WHOLE, Group, Host, Link, RankMap, Site, Switch, Topology
from stagegen.topology.tree import Edge, RankTree
from stagegen.topology.units import (
    format_bandwidth,
    format_latency,
    parse_bandwidth,
    parse_latency,
    parse_size,
)
from stagegen.topology.write import topology_yaml

__all__ = [
    "WHOLE",
    "Edge",
    "Group",
    "Host",
    "Link",
    "RankMap",
    "RankTree",
    "Site",
    "Switch",
    "Topology",
    "expand_hostlist",
    "format_bandwidth",
    "format_latency",
    "line_of_key",
    "load_topology",
    "parse_bandwidth",
    "parse_latency",
    "parse_size",
    "restricted_to",
    "topology_yaml",
]
