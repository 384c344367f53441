"""Checks alltoall schedules; for :mod:`stagegen.schedule.verify`."""

from __future__ import annotations

from collections.abc import Iterator

from stagegen.schedule.model import PhaseSchedule
from stagegen.schedule.verify.checked_schemes import CheckedScheme, checked_scheme_of, promise
from stagegen.schedule.verify.dummies import check_dummies
from stagegen.schedule.verify.links import Links
from stagegen.schedule.verify.order import check_order
from stagegen.schedule.verify.paths import Network, require, require_same_ranks
from stagegen.schedule.verify.phases import check_capacities, check_count, check_root
from stagegen.schedule.verify.plan import check_every_pair_once, check_one_at_a_time
from stagegen.schedule.verify.progress import check_progress
from stagegen.schedule.verify.proof import Proof
from stagegen.schedule.verify.slow_links import check_ends
from stagegen.schedule.verify.sync import check_syncs, check_token_order, read_syncs
from stagegen.topology import Topology


def verify_alltoall(topology: Topology, schedule: PhaseSchedule) -> Proof:
    """Check an alltoall schedule.

    Takes time and memory in proportion to the size of the schedule, and to messages times ranks
    for the order that the syncs make.

    Raises:
        ScheduleError: a property does not hold.
    """
    require_same_ranks(topology, schedule.ranks)
    scheme, network = checked_scheme_of(schedule.sync), Network(topology)
    links, plan = Links(topology, network), check_every_pair_once(schedule)
    check_one_at_a_time(plan)
    uses = links.uses(plan)
    check_capacities(plan, links, uses)
    bound = check_count(schedule, links, check_ends(plan, links, uses))
    check_root(schedule, network, links)
    table = read_syncs(schedule.sync.syncs, plan)
    check_syncs(table, plan, schedule.sync, scheme)
    check_token_order(table, plan)
    if scheme.giver:
        check_order(plan, links, uses, table, schedule.sync, scheme)
    require(scheme.dummies or not any(schedule.dummies), "the scheme has no dummy messages")
    moving = check_dummies(schedule, plan, links, uses) if scheme.dummies else plan
    check_progress(moving, table, schedule.sync, scheme)
    return Proof(
        collective="alltoall",
        ranks=len(schedule.ranks),
        phases=len(schedule.phases),
        bound_phases=bound,
        syncs=len(schedule.sync.syncs),
        checked=tuple(_checked(schedule, scheme, links)),
    )


def _checked(schedule: PhaseSchedule, scheme: CheckedScheme, links: Links) -> Iterator[str]:
    """Yield the properties that hold, in words."""
    yield "every ordered pair of ranks is in exactly one phase"
    if links.equal:
        yield "no two messages of a phase share a network edge"
        yield "the number of phases is the load of the bottleneck"
    else:
        yield "no network edge carries more messages of a phase than it can"
    if links.slow:
        yield "links slower than the hosts' are free when the messages start"
    yield promise(schedule.sync)
    if scheme.giver:
        yield "no synchronisation follows from others"
        yield "tokens between two ranks cannot be mistaken for each other"
    if scheme.dummies:
        yield "dummy messages keep every rank busy, and cause no contention"
    yield "the steps of all ranks complete under rendezvous"
