"""Reads the sections `switches` and `hosts`: the nodes, and the switch of each."""

from __future__ import annotations

import ipaddress
import re

import yaml

from stagegen.topology.document import Document, did_you_mean
from stagegen.topology.model import Host, Switch
from stagegen.topology.sections import Wiring, host_names, line_of, read_rate

SLOTS_MOST = 4096
"""The most slots that a host may have; more are taken for a mistake."""


def read_switches(doc: Document, node: yaml.Node, wiring: Wiring) -> tuple[Switch, ...]:
    """Read the switches and the hosts under them; at least one switch must have a host."""
    entries = doc.mapping(node, "switches")
    if not entries:
        doc.fail(node, "there is no switch; write at least s0: {hosts: [n0]}")
    for key_node, _ in entries.values():
        wiring.switch_lines[doc.name(key_node, "the switch name")] = line_of(key_node)
    switches = []
    for name, (_, value) in entries.items():
        hosts: list[str] = []
        if not doc.is_null(value):
            keys = doc.known_keys(value, f"switch {name}", ("hosts",))
            if "hosts" in keys and not doc.is_null(keys["hosts"]):
                hosts = _plug_in(doc, keys["hosts"], name, wiring)
        switches.append(Switch(name, tuple(hosts)))
    if not wiring.switch_of:
        doc.fail(node, "no switch has a host; write at least s0: {hosts: [n0]}")
    return tuple(switches)


def _plug_in(doc: Document, node: yaml.Node, switch: str, wiring: Wiring) -> list[str]:
    """Read the hosts of one switch."""
    hosts = []
    for host, entry in host_names(doc, node, f"the hosts of switch {switch}"):
        if host in wiring.switch_lines:
            line = wiring.switch_lines[host]
            doc.fail(entry, f"{host} is a switch already (line {line}); give the host another name")
        if host in wiring.switch_of:
            where = f"{wiring.switch_of[host]} (line {wiring.host_lines[host]})"
            doc.fail(entry, f"host {host} is already under switch {where}; it has one port only")
        alike = wiring.host_of_lower.setdefault(host.lower(), host)
        if alike != host:
            where = f"{alike} (line {wiring.host_lines[alike]})"
            doc.fail(entry, f"hosts {where} and {host} differ only in case; rename one of them")
        wiring.switch_of[host], wiring.host_lines[host] = switch, line_of(entry)
        hosts.append(host)
    return hosts


def read_hosts(doc: Document, node: yaml.Node | None, wiring: Wiring) -> tuple[Host, ...]:
    """Read the entries of single hosts; all other hosts take the defaults."""
    special: dict[str, tuple[int, Host]] = {}
    found: dict[str, tuple[str, int]] = {}
    entries = {} if node is None or doc.is_null(node) else doc.mapping(node, "hosts")
    for key_node, value in entries.values():
        keys = doc.known_keys(value, "a host's entry", ("bandwidth", "latency", "slots", "address"))
        bandwidth, latency = read_rate(doc, keys, wiring)
        slots = doc.count(keys["slots"], "slots", SLOTS_MOST) if "slots" in keys else 1
        names = host_names(doc, key_node, "hosts")
        address = _read_address(doc, keys["address"], names) if "address" in keys else None
        for name, _ in names:
            if name not in wiring.switch_of:
                meant = did_you_mean(name, wiring.switch_of)
                doc.fail(key_node, f"host {name} is under no switch{meant}")
            if name in special:
                doc.fail(key_node, f"host {name} is already described on line {special[name][0]}")
            host = Host(name, wiring.switch_of[name], bandwidth, latency, slots, address)
            special[name] = (line_of(key_node), host)
        if address is not None:
            _require_own(doc, keys["address"], address, names[0][0], wiring, found)
    plain = {n: Host(n, s, wiring.bandwidth, wiring.latency) for n, s in wiring.switch_of.items()}
    return tuple(special[name][1] if name in special else host for name, host in plain.items())


def _read_address(doc: Document, node: yaml.Node, names: list[tuple[str, yaml.Node]]) -> str:
    address = doc.text(node, "address")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:%@-]*|:[A-Fa-f0-9:.%]+", address, re.ASCII):
        doc.fail(node, f"address {address!r} is neither a host name nor an IP address")
    if len(names) > 1:
        doc.fail(node, f"one address cannot serve {len(names)} hosts; give each its own entry")
    return address


def _require_own(
    doc: Document,
    node: yaml.Node,
    address: str,
    host: str,
    wiring: Wiring,
    found: dict[str, tuple[str, int]],
) -> None:
    """Refuse an address that is also another host's, or its name: ranks might share that host.

    Args:
        doc: the file.
        node: of the address.
        address: of ``host``.
        host: its name.
        wiring: the hosts.
        found: for each address of the entries so far, the host and the line; learns this one.
    """
    plain = _plain(address)
    first, line = found.setdefault(plain, (host, line_of(node)))
    if first != host:
        doc.fail(node, f"address {address} is already that of host {first} (line {line})")
    named = wiring.host_of_lower.get(plain, host)
    if named != host:
        where = f"{named} (line {wiring.host_lines[named]})"
        doc.fail(node, f"address {address} is the name of another host, {where}")


def _plain(address: str) -> str:
    """Return an address in lower case, without a user, and in the usual form if it is of IP."""
    host = address.rpartition("@")[2].lower()
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host
