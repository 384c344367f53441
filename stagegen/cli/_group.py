"""The cluster that a command is about: a topology file, or a group of its hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from stagegen.topology import Topology, expand_hostlist, load_topology, restricted_to

_Command = TypeVar("_Command", bound=Callable[..., Any])


def hosts_option(command: _Command) -> _Command:
    """Add `--hosts LIST`."""
    return click.option(
        "--hosts",
        metavar="LIST",
        help="Only the ranks of these hosts, such as n[0-5,9], numbered from 0 in their order.",
    )(command)


def load_group(topology_file: str, hosts: str | None) -> Topology:
    """Return the cluster of a file with the ranks of these hosts, or with all.

    Raises:
        InputError: the file is wrong, or there is no such host.
    """
    topology = load_topology(topology_file)
    if hosts is None:
        return topology
    try:
        names = expand_hostlist(hosts)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--hosts") from error
    return restricted_to(topology, names)
