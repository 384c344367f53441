"""Reads the sections `links` and `spanning_tree`, and makes a tree of the switches."""

from __future__ import annotations

import yaml

from stagegen.topology.document import Document, did_you_mean
from stagegen.topology.model import Link
from stagegen.topology.sections import Wiring, line_of, read_rate
from stagegen.topology.spanning import breadth_first_links, first_cycle, unreachable
from stagegen.topology.units import RATE_MOST, format_bandwidth


def read_links(doc: Document, node: yaml.Node, wiring: Wiring) -> list[tuple[Link, int]]:
    """Read the links between switches, each with its line."""
    links: list[tuple[Link, int]] = []
    seen: dict[frozenset[str], int] = {}
    for entry in [] if doc.is_null(node) else doc.items(node, "links"):
        keys = doc.known_keys(
            entry, "a link", ("ends", "bandwidth", "latency", "count"), required=("ends",)
        )
        one, other = _read_ends(doc, keys["ends"], wiring)
        pair, line = frozenset((one, other)), line_of(entry)
        if pair in seen:
            doc.fail(
                entry,
                f"switches {one} and {other} are already linked on line {seen[pair]}; "
                "for parallel cables give that link a count",
            )
        seen[pair] = line
        count = doc.count(keys["count"], "count") if "count" in keys else 1
        link = Link((one, other), *read_rate(doc, keys, wiring), count)
        if link.rate > RATE_MOST:
            together = f"{count:,} cables of {format_bandwidth(link.bandwidth)}"
            most = format_bandwidth(RATE_MOST)
            doc.fail(keys["count"], f"{together} are more than {most} together; use fewer")
        links.append((link, line))
    return links


def _read_ends(doc: Document, node: yaml.Node, wiring: Wiring) -> tuple[str, str]:
    ends = doc.items(node, "ends")
    if len(ends) != 2:
        doc.fail(node, f"a link has two ends, not {len(ends)}; write ends: [s0, s1]")
    names = [doc.text(end, "an end of a link") for end in ends]
    for name, end in zip(names, ends, strict=True):
        if name in wiring.switch_of:
            switch = wiring.switch_of[name]
            doc.fail(end, f"{name} is a host; list it under its switch only ({switch} has it)")
        if name not in wiring.switch_lines:
            meant = did_you_mean(name, wiring.switch_lines)
            doc.fail(end, f"a link names the unknown switch {name!r}{meant}")
    if names[0] == names[1]:
        doc.fail(node, f"switch {names[0]} is linked to itself; a link joins two switches")
    return names[0], names[1]


def read_spanning_root(doc: Document, node: yaml.Node, wiring: Wiring) -> str:
    """Read the switch that the spanning tree grows from."""
    keys = doc.known_keys(node, "spanning_tree", ("root",), required=("root",))
    root = doc.text(keys["root"], "root")
    if root not in wiring.switch_lines:
        meant = did_you_mean(root, wiring.switch_lines)
        doc.fail(keys["root"], f"the spanning tree's root {root!r} is no switch{meant}")
    return root


def to_tree(
    doc: Document, links: list[tuple[Link, int]], root: str | None, wiring: Wiring
) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
    """Return the links of the tree, and the links that the spanning tree blocks.

    Fails if a switch cannot be reached, or if there is a cycle but no `root` to cut it from.
    """
    switches = list(wiring.switch_lines)
    ends = [link.ends for link, _ in links]
    apart = unreachable(switches, ends)
    if apart:
        names = ", ".join(apart[:5]) + (", …" if len(apart) > 5 else "")
        line = wiring.switch_lines[apart[0]]
        doc.fail(line, f"not connected to switch {switches[0]}: {names}; add a link")
    if root is not None:
        chosen = breadth_first_links(root, ends)
        return (
            tuple(link for index, (link, _) in enumerate(links) if index in chosen),
            tuple(link for index, (link, _) in enumerate(links) if index not in chosen),
        )
    cycle = first_cycle(switches, ends)
    if cycle is not None:
        index, around = cycle
        names = ", ".join(f"{one}–{other}" for one, other in around)
        doc.fail(
            links[index][1],
            f"the links {names} form a cycle; remove one of them, or add "
            f"spanning_tree: {{root: {switches[0]}}}",
        )
    return tuple(link for link, _ in links), ()
