"""The complete alltoall schedule of a cluster: root, phases, synchronisation.

Source: Faraj (2006), sections 3.2.2 and 3.2.3.
"""

from __future__ import annotations

from stagegen.schedule.assignment import assign_phases
from stagegen.schedule.model import PhaseSchedule
from stagegen.schedule.root import rooted_view
from stagegen.schedule.sync import synchronise
from stagegen.topology import Topology


def alltoall_schedule(
    topology: Topology, sync: str = "receiver", root: str | None = None
) -> PhaseSchedule:
    """Return an alltoall in the fewest contention-free phases (Theorem 1).

    Links that are faster than a host's are used like a host's: one message in each phase.

    Args:
        topology: the cluster.
        sync: one of `SYNC_KINDS`.
        root: the switch to make the schedule around, where several qualify.

    Raises:
        InputError: the asked-for root does not qualify.
    """
    view = rooted_view(topology, root)
    phases = assign_phases(view)
    return PhaseSchedule(
        ranks=topology.ranks,
        root=view.root,
        subtrees=view.subtrees,
        bound_phases=view.bottleneck,
        phases=phases,
        sync=synchronise(topology, phases, sync),
    )
