"""Reads the section `sites`: switches at one place, far from those of other sites."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from stagegen.topology.document import Document, did_you_mean
from stagegen.topology.model import Site, Switch
from stagegen.topology.named_groups import NAME
from stagegen.topology.sections import host_names, line_of


def read_sites(
    doc: Document, node: yaml.Node | None, switches: Sequence[Switch]
) -> tuple[Site, ...]:
    """Read the sites: two or more, each with a host; each switch with hosts is in one of them."""
    if node is None or doc.is_null(node):
        return ()
    sites: list[Site] = []
    lines: dict[str, str] = {}
    with_hosts = {switch.name for switch in switches if switch.hosts}
    for key, value in doc.mapping(node, "sites").values():
        name = doc.text(key, "the name of a site")
        if not NAME.fullmatch(name):
            doc.fail(key, f"site {name!r} must consist of a-z, 0-9 and '-', as in north-hall")
        site = Site(name, _read_switches(doc, value, name, [s.name for s in switches], lines))
        if with_hosts.isdisjoint(site.switches):
            doc.fail(value, f"site {name} has no hosts; name a switch with hosts, or leave it out")
        sites.append(site)
    if len(sites) < 2:
        doc.fail(node, "one site makes no difference; name two or more, or leave `sites` out")
    for switch in switches:
        if switch.hosts and switch.name not in lines:
            doc.fail(node, f"switch {switch.name} has hosts and is in no site; add it to one")
    return tuple(sites)


def _read_switches(
    doc: Document, node: yaml.Node, site: str, switches: Sequence[str], lines: dict[str, str]
) -> tuple[str, ...]:
    """Read the switches of a site; `lines` says of each switch so far where it was named."""
    names: list[str] = []
    for name, entry in host_names(doc, node, f"site {site}"):
        if name not in switches:
            meant = did_you_mean(name, switches)
            doc.fail(entry, f"site {site} names the unknown switch {name!r}{meant}")
        if name in lines:
            doc.fail(entry, f"switch {name} is already in {lines[name]}; keep one of them")
        lines[name] = f"site {site} (line {line_of(entry)})"
        names.append(name)
    return tuple(names)
