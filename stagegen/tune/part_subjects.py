"""What else to look at for a program: the collectives that serve parts of what it calls.

A composition is as good as the routines of its parts. A program that calls no ``reduce`` may still
be served best by a ``reduce_scatter`` that is made of one. So the collectives of parts are looked
at, too, at the sizes that the parts have. That takes place in launch 0 only: the composition itself
is timed in the launches that decide, and no table is made for its parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from stagegen.catalogue import Algorithm, Catalogue, applicable
from stagegen.topology import Topology
from stagegen.tune.bounds import Least
from stagegen.tune.candidates import part_size
from stagegen.tune.communicators import as_seen_by, find_communicators
from stagegen.tune.scope import Wanted

#: Looks at a size of a part also serve other sizes within this factor. A wrong routine costs less
#: here than in a call: the composition must win with it.
NEAR = 2.0

#: Parts have no look if their lower bounds together are above the bound of the call itself by more
#: than this factor, and :data:`LATENCY` seconds: other routines are hardly so far from the bound.
DEARER, LATENCY = 1.3, 0.005


def part_subjects(
    wanted: Sequence[Wanted], catalogue: Catalogue, topology: Topology
) -> tuple[Wanted, ...]:
    """Return the subjects that are there for parts alone, in the order of the calls they serve.

    A collective that is called on the same communicator is not among them: its own table serves.

    Args:
        wanted: what a program calls.
        catalogue: all algorithms.
        topology: the cluster.

    Raises:
        InputError: a communicator is unknown.
    """
    called = {(one.collective, one.communicator) for one in wanted}
    sizes: dict[tuple[str, str], list[int]] = defaultdict(list)
    compositions = [one for one in applicable(catalogue, topology) if one.parts]
    for one in wanted:
        (communicator,) = find_communicators(topology, (one.communicator,))
        least = Least(catalogue, as_seen_by(topology, communicator))
        for collective, size in _parts(one, compositions, least, len(communicator.ranks)):
            subject = (collective, one.communicator)
            if subject not in called and not _is_served(size, sizes[subject]):
                sizes[subject].append(size)
    found = ((subject, tuple(sorted(of_subject))) for subject, of_subject in sizes.items())
    return tuple(
        Wanted(*subject, ascending, part=True) for subject, ascending in found if ascending
    )


def _parts(
    wanted: Wanted, compositions: Iterable[Algorithm], least: Least, ranks: int
) -> Iterator[tuple[str, int]]:
    """Yield the collectives and sizes of the parts that may pay, for the largest calls first."""
    able = [a for a in compositions if a.collective == wanted.collective]
    for size in reversed(wanted.sizes):
        limit = LATENCY + DEARER * least(wanted.collective, size)
        for algorithm in able:
            if algorithm.works_for(ranks) and algorithm.handles(size):
                parts = [(p.collective, part_size(p, size, ranks)) for p in algorithm.parts]
                if sum(least(*part) for part in parts) <= limit:
                    yield from parts


def _is_served(size: int, others: Iterable[int]) -> bool:
    return any(max(size, other) <= NEAR * min(size, other) for other in others)
