"""What users may add: templates, generators of routines, timing mechanisms, launchers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from stagegen.catalogue.templates import Root
from stagegen.parts.sources import Named
from stagegen.topology import Topology

#: The file that names a user's own parts. It is looked for beside the topology file.
FILE = "stagegen.yaml"


class Generator(Protocol):
    """Makes routines for a topology, and maybe for a pattern, from a description of its own."""

    def __call__(self, topology: Topology, description: Path | None) -> Mapping[str, str]:
        """Return templates, and engines, by their paths below a templates folder.

        A template with tables for just these ranks has ``needs: tables`` and ``topology: HASH``
        in its front matter, ``HASH`` being ``topology.hash``. The same topology and description
        give the same texts.

        Args:
            topology: the cluster.
            description: a file in the generator's own format, as ``stagegen.yaml`` names it.

        Raises:
            InputError: the description is wrong; with its file and line.
            NotFoundError: there is no routine for this topology.
        """


@dataclass(frozen=True)
class Parts:
    """The parts that a user adds to those of the repository.

    Attributes:
        roots: templates: those of folders, and those that generators made.
        timings: the C files of timing mechanisms, by name.
        launchers: what makes a launcher from the path of an ``mpiexec``, or from None.
    """

    roots: tuple[Root, ...] = ()
    timings: Mapping[str, Path] = field(default_factory=dict)
    launchers: tuple[Named[Callable[..., Any]], ...] = ()
