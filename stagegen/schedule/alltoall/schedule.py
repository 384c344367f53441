"""The complete alltoall schedule of a cluster: root, phases, synchronisation.

Source: Faraj (2006), sections 3.2.2 and 3.2.3, where all links are equally fast; for others
see :mod:`stagegen.schedule.alltoall.capacity`.
"""

from __future__ import annotations

from dataclasses import replace

from stagegen.errors import InputError
from stagegen.schedule.alltoall.capacity import bound_phases, edge_capacities, require_phases
from stagegen.schedule.alltoall.phases.assignment import assign_phases
from stagegen.schedule.alltoall.phases.capacity_phases import capacity_phases
from stagegen.schedule.alltoall.phases.dummies import dummy_messages
from stagegen.schedule.alltoall.phases.root import RootedView, rooted_view
from stagegen.schedule.alltoall.phases.slow_links import slow_link_phases
from stagegen.schedule.alltoall.sync.schemes import SCHEME_NAMES, SCHEMES
from stagegen.schedule.alltoall.sync.synchronise import synchronise
from stagegen.schedule.model import Message, PhaseSchedule, SyncGraph
from stagegen.topology import Topology

SIZE_MOST = 2**20
"""The largest block size and window: schedules with as many phases are out of reach."""


def alltoall_schedule(
    topology: Topology,
    sync: str = "receiver",
    root: str | None = None,
    block_size: int = 1,
    window: int = 1,
) -> PhaseSchedule:
    """Return an alltoall in phases that overload no link, and what keeps them apart.

    Args:
        topology: the cluster.
        sync: one of `SCHEME_NAMES`.
        root: the switch to make the schedule around, where several qualify.
        block_size: phases of a block, for schemes with blocks.
        window: how many times its capacity an edge may carry at a time, for schemes with
            tokens.

    Raises:
        InputError: the asked-for root does not qualify, there is no such scheme, it has no
            blocks or no window, or one of these numbers is out of range.
        NotFoundError: a link is so slow that there would be too many phases.
    """
    check_scheme(sync, block_size, window)
    return with_sync(topology, alltoall_phases(topology, root), sync, block_size, window)


def alltoall_phases(topology: Topology, root: str | None = None) -> PhaseSchedule:
    """Return the phases of an alltoall without any synchronisation.

    There are as many phases as the bound where every capacity that matters is 1 (Theorem 1), and
    few more elsewhere: see :attr:`PhaseSchedule.gap`. :func:`with_sync` adds a synchronisation.

    Args:
        topology: the cluster.
        root: as for :func:`alltoall_schedule`.

    Raises:
        InputError: the asked-for root does not qualify.
        NotFoundError: a link is so slow that there would be too many phases.
    """
    require_phases(topology)
    view = rooted_view(topology, root)
    bound = bound_phases(topology)
    return PhaseSchedule(
        ranks=topology.ranks,
        root=view.root,
        subtrees=view.subtrees,
        bound_phases=bound,
        phases=_phases(topology, view, bound),
        sync=SyncGraph("none"),
    )


def _phases(topology: Topology, view: RootedView, bound: int) -> tuple[tuple[Message, ...], ...]:
    """Return the fewest phases that the known constructions yield."""
    if min(edge_capacities(topology).values(), default=1) < 1:
        return slow_link_phases(topology, assign_phases(view))
    if view.bottleneck == bound:
        return assign_phases(view)
    phases = capacity_phases(topology)
    return phases if len(phases) <= view.bottleneck else assign_phases(view)


def with_sync(
    topology: Topology,
    schedule: PhaseSchedule,
    scheme_name: str,
    block_size: int = 1,
    window: int = 1,
) -> PhaseSchedule:
    """Return the same phases with the synchronisation and the dummies of a scheme.

    Args:
        topology: the cluster.
        schedule: phases for it, with any scheme.
        scheme_name: one of `SCHEME_NAMES`.
        block_size: as for :func:`alltoall_schedule`.
        window: as for :func:`alltoall_schedule`.

    Raises:
        InputError: as for :func:`alltoall_schedule`.
    """
    check_scheme(scheme_name, block_size, window)
    dummies = dummy_messages(topology, schedule.phases) if SCHEMES[scheme_name].dummies else ()
    graph = synchronise(topology, schedule.phases, scheme_name, block_size, window)
    return replace(schedule, sync=graph, dummies=dummies)


def check_scheme(scheme_name: str, block_size: int, window: int) -> None:
    """Check that a scheme exists and has the parameters that are not 1.

    Raises:
        InputError: it does not; names the valid values.
    """
    if scheme_name not in SCHEMES:
        raise InputError(f"unknown sync {scheme_name!r}; choose from {', '.join(SCHEME_NAMES)}")
    with_blocks = [name for name, scheme in SCHEMES.items() if scheme.blocks]
    with_window = [name for name, scheme in SCHEMES.items() if scheme.giver is not None]
    for name, value, having in (
        ("block size", block_size, with_blocks),
        ("window", window, with_window),
    ):
        if not 1 <= value <= SIZE_MOST:
            raise InputError(f"the {name} is {value}; it must be from 1 to {SIZE_MOST:,}")
        if value > 1 and scheme_name not in having:
            raise InputError(
                f"sync {scheme_name} has no {name}; schemes with one: {', '.join(having)}"
            )
