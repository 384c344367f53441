"""A user's own parts in commands, from `stagegen.yaml` beside the topology file and packages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stagegen.catalogue.templates import Root
from stagegen.errors import InputError
from stagegen.measure.launch.registry import register
from stagegen.parts import Parts, find_parts
from stagegen.parts.trees import trees_root
from stagegen.topology import Topology


def added_to(
    topology_file: str, topology: Topology, trees: Sequence[Path] = ()
) -> tuple[Root, ...]:
    """Return the templates that a user adds, and let ``--launcher`` find the user's launchers.

    Args:
        topology_file: a ``stagegen.yaml`` may be beside it.
        topology: the cluster.
        trees: files of configured trees, which become templates too.

    Raises:
        InputError: a part is wrong, or its name is taken; says where.
        GenerateError: a generator failed.
    """
    parts = own_parts(topology_file, topology)
    _register(parts)
    return (*parts.roots, *trees_root(trees, topology))


def register_launchers(topology_file: str | None) -> None:
    """Let ``--launcher`` find the user's launchers; none of the user's generators runs.

    Args:
        topology_file: a ``stagegen.yaml`` may be beside it; None: in the current folder.

    Raises:
        InputError: a part is wrong, or its name is taken; says where.
    """
    _register(own_parts(topology_file, None))


def _register(parts: Parts) -> None:
    for one in parts.launchers:
        try:
            register(one.name, one.value)
        except InputError as error:
            raise InputError(error.message, one.where) from error


def own_parts(topology_file: str | None, topology: Topology | None) -> Parts:
    """Return a user's own parts; without a topology file, those of the current folder."""
    folder = Path() if topology_file is None else Path(topology_file).parent
    return find_parts(folder, topology)
