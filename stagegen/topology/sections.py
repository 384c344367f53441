"""The state and the readers that the sections of a topology file share."""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml

from stagegen.topology.document import Document, did_you_mean
from stagegen.topology.hostlist import expand_hostlist
from stagegen.topology.units import parse_bandwidth, parse_latency

DEFAULT_BANDWIDTH = 1_000_000_000
"""The default rate of a link, in bit/s."""
DEFAULT_LATENCY = 50e-6
"""The default latency of a link, in seconds."""


@dataclass
class Wiring:
    """What the sections so far define: switches, the switch of each host, their lines, defaults."""

    switch_lines: dict[str, int] = field(default_factory=dict)
    switch_of: dict[str, str] = field(default_factory=dict)
    host_of_lower: dict[str, str] = field(default_factory=dict)
    host_lines: dict[str, int] = field(default_factory=dict)
    bandwidth: int = DEFAULT_BANDWIDTH
    latency: float = DEFAULT_LATENCY


def line_of(node: yaml.Node) -> int:
    """Return the line of a node, counted from 1."""
    return int(node.start_mark.line) + 1


def host_names(doc: Document, node: yaml.Node, what: str) -> list[tuple[str, yaml.Node]]:
    """Expand a host list, or a list of them, to (host name, its node)."""
    entries = doc.items(node, what) if isinstance(node, yaml.SequenceNode) else [node]
    names = []
    for entry in entries:
        doc.text(entry, "a host name")
        for name in doc.parsed(entry, "a host name", expand_hostlist):
            names.append((doc.checked_name(entry, name, "the host name"), entry))
    return names


def read_choice(doc: Document, node: yaml.Node, what: str, choices: tuple[str, ...]) -> str:
    """Read a word that must be one of `choices`."""
    value = doc.text(node, what)
    if value not in choices:
        doc.fail(node, f"unknown {what} {value!r}{did_you_mean(value, choices)}")
    return value


def read_rate(doc: Document, keys: dict[str, yaml.Node], wiring: Wiring) -> tuple[int, float]:
    """Read the bandwidth and latency of a link, or take the file's defaults."""
    bandwidth, latency = wiring.bandwidth, wiring.latency
    if "bandwidth" in keys:
        bandwidth = doc.parsed(keys["bandwidth"], "bandwidth", parse_bandwidth)
    if "latency" in keys:
        latency = doc.parsed(keys["latency"], "latency", parse_latency)
    return bandwidth, latency
