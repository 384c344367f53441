"""Which communicator's measurements a table of the decision is made from."""

from __future__ import annotations

from collections.abc import Sequence

from stagegen.topology import Topology
from stagegen.tune.communicators import PATTERN, Communicator, find_communicators
from stagegen.tune.loss import Measured
from stagegen.tune.tuner import kinds_of


def communicators_of_tables(
    topology: Topology, names: Sequence[str]
) -> dict[tuple[str, int, int], Communicator]:
    """Return the communicator of each table, by its kind, and by the ranks and hosts measured.

    Tables of patterns are not among them: which calls they serve does not follow from their ranks.

    Args:
        topology: the cluster.
        names: of the communicators that were tuned for.

    Raises:
        InputError: a name is unknown.
    """
    of_ranks = [name for name in names if not name.startswith(f"{PATTERN} ")]
    made = kinds_of(find_communicators(topology, of_ranks))
    return {(kind, len(one.ranks), one.hosts): one for one, kinds in made.items() for kind in kinds}


def names_of_tables(topology: Topology, names: Sequence[str]) -> Measured:
    """Return the same by the communicators' names, as records have them."""
    found = communicators_of_tables(topology, names)
    return {key: communicator.name for key, communicator in found.items()}
