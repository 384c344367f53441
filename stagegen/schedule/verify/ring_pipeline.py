"""Checks the allreduce over a logical ring; for :mod:`stagegen.schedule.verify`."""

from __future__ import annotations

from stagegen.schedule.model import Message, RingPipeline, Transfer
from stagegen.schedule.verify.hops import Climb
from stagegen.schedule.verify.paths import require
from stagegen.schedule.verify.proof import Proof
from stagegen.schedule.verify.ring import verify_ring
from stagegen.topology import Topology


def verify_ring_pipeline(topology: Topology, pipeline: RingPipeline) -> Proof:
    """Check an allreduce over a ring by doing all of its steps, in O(p²) for p ranks.

    Raises:
        ScheduleError: a property does not hold.
    """
    ring_proof = verify_ring(topology, pipeline.ring)
    count = topology.rank_count
    following = dict(
        zip(pipeline.ring.order, pipeline.ring.order[1:] + pipeline.ring.order[:1], strict=True)
    )
    require(
        sorted(pipeline.first_blocks) == list(range(count)),
        "allreduce: the first blocks do not hold every block exactly once",
    )
    # The number of contributions in each rank's own copy of each block: from the ranks up to
    # itself on the ring, in that order, until the block is complete.
    held = [[1] * count for _ in range(count)]
    for step in range(pipeline.steps):
        if step == pipeline.combining_steps:
            _check_own_blocks(held)
        _check_step(step, list(pipeline.transfers(step)), following, held)
    _check_complete(held)
    _check_rate(topology, pipeline)
    return Proof(
        collective="allreduce",
        ranks=count,
        phases=None,
        bound_phases=None,
        syncs=None,
        checked=(
            *ring_proof.checked,
            f"in each of {pipeline.steps} steps a rank sends one block to the next on the ring",
            "every block is combined once from each rank, in the order of the ring",
            "half-way every rank has its own block complete, in the end every block",
            "the operation must be commutative, as each block starts at another rank",
        ),
    )


def _check_step(
    step: int, transfers: list[Transfer], following: dict[int, int], held: list[list[int]]
) -> None:
    """Do a step: all ranks send what they had before it, then receive."""
    count = len(held)
    expected = sorted(Message(*pair) for pair in following.items()) if count > 1 else []
    messages = sorted(Message(move.source, move.destination) for move in transfers)
    require(messages == expected, f"allreduce, step {step}: not one message to each next rank")
    sent = [held[move.source][move.block] for move in transfers]
    for parts, (source, destination, block, combines) in zip(sent, transfers, strict=True):
        where = f"allreduce, step {step}, {Message(source, destination)}, block {block}"
        own = held[destination][block]
        if combines:
            require(
                own == 1, f"{where}: rank {destination} has combined it with {own} parts before"
            )
            require(parts < count, f"{where}: it is complete and must not be combined again")
            held[destination][block] = parts + 1
        else:
            require(parts == count, f"{where}: only {parts} of {count} parts are in it")
            held[destination][block] = count


def _check_own_blocks(held: list[list[int]]) -> None:
    for rank, parts in enumerate(held):
        require(
            parts[rank] == len(held),
            f"allreduce: after the reduce-scatter rank {rank} has {parts[rank]} of {len(held)} "
            "parts of its block",
        )


def _check_complete(held: list[list[int]]) -> None:
    for rank, parts in enumerate(held):
        require(
            min(parts) == max(parts) == len(held),
            f"allreduce: rank {rank} ends with a block of {min(parts)} of {len(held)} parts",
        )


def _check_rate(topology: Topology, pipeline: RingPipeline) -> None:
    """Check the rate of the slowest link on the paths between neighbours."""
    climb, order = Climb(topology), pipeline.ring.order
    rates = {frozenset(link.ends): link.bandwidth * link.count for link in topology.links}
    rates |= {frozenset((host.name, host.switch)): host.bandwidth for host in topology.hosts}
    hosts = [topology.ranks[rank] for rank in order]
    paths = map(climb.path, hosts, hosts[1:] + hosts[:1])
    slowest = min((rates[frozenset(edge)] for path in paths for edge in path), default=None)
    require(
        pipeline.rate == slowest,
        f"allreduce: the slowest link has {slowest} bit/s, not {pipeline.rate}",
    )
