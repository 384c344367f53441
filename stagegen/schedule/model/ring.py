"""Logical rings and the allreduce over one, with the JSON form of ``docs/interfaces.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

RING_CONSTRUCTIONS = ("lr1", "lr2", "lr3")
"""Logical rings that exist (Faraj, 2006, section 3.3.2)."""


@dataclass(frozen=True)
class Ring:
    """A logical ring for allgather.

    Attributes:
        ranks: the host of every rank.
        construction: how it was made, such as `lr1`.
        order: every rank once; each sends to the next, the last one to the first.
        max_hops: the most switches that a message between neighbours passes.
    """

    ranks: tuple[str, ...]
    construction: str
    order: tuple[int, ...]
    max_hops: int

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the contract."""
        return {
            "collective": "allgather",
            "ranks": list(self.ranks),
            "kind": self.construction,
            "ring": list(self.order),
            "max_hops": self.max_hops,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Ring:
        """Return the ring of a JSON form."""
        return cls(tuple(form["ranks"]), form["kind"], tuple(form["ring"]), form["max_hops"])


class Transfer(NamedTuple):
    """A block on its way from a rank to the next one on the ring.

    Attributes:
        source: the rank that sends.
        destination: the next one on the ring.
        block: which block of the vector.
        combines: whether the receiver combines it, as the left operand, with its own block;
            else the block replaces its own.
    """

    source: int
    destination: int
    block: int
    combines: bool


@dataclass(frozen=True)
class RingPipeline:
    """An allreduce over a logical ring of p ranks, with the vector in p blocks.

    In step 0 every rank sends its first block; in every later step it sends the block that it
    received in the step before. In the first p-1 steps (reduce-scatter) a rank combines what it
    receives with its own block; after them rank r has block r complete. In the other p-1 steps
    (allgather) complete blocks go around.

    Block r is combined in the order of the ring, from the rank after r on to r itself. This order
    is a different rotation for each block, so the operation must be commutative. All ranks
    get the same bits, because every block is computed once.

    Attributes:
        ring: the logical ring.
        first_blocks: the block that each rank sends in step 0: the block of the rank before it.
        combining_steps: how many of the steps are the reduce-scatter.
        steps: how many steps there are.
        rate: of the slowest network edge that the ring uses, in bit/s; None where all ranks are
            on one host.
        size: bytes of the vector; None for any size.
    """

    ring: Ring
    first_blocks: tuple[int, ...]
    combining_steps: int
    steps: int
    rate: int | None
    size: int | None = None

    @property
    def ranks(self) -> tuple[str, ...]:
        """The host of every rank."""
        return self.ring.ranks

    def transfers(self, step: int) -> Iterator[Transfer]:
        """Yield what every rank sends in a step, in the order of the ring."""
        order = self.ring.order
        if len(order) > 1:
            for place, rank in enumerate(order):
                origin = order[(place - step) % len(order)]
                following = order[(place + 1) % len(order)]
                combines = step < self.combining_steps
                yield Transfer(rank, following, self.first_blocks[origin], combines)

    def blocks(self, count: int) -> tuple[tuple[int, int], ...]:
        """Return (first element, number of elements) of each block of a vector.

        Args:
            count: elements of the vector. Blocks differ by one element at most.
        """
        least, larger = divmod(count, len(self.ranks))
        return tuple(
            (index * least + min(index, larger), least + (index < larger))
            for index in range(len(self.ranks))
        )

    def seconds(self, size: int) -> float:
        """Return how long the data takes, without start-ups and combining.

        In every step each link of the tree carries one block in each direction, so a step takes
        as long as the largest block on the slowest edge: 2 (p-1) ⌈n/p⌉ / rate. Over equal links
        with one rank on each host that is the lower bound 2 (p-1)/p · n / rate, except for
        the rounding of n/p.

        Args:
            size: n, the bytes of the vector.
        """
        if self.rate is None:
            return 0.0
        return self.steps * 8 * -(-size // len(self.ranks)) / self.rate

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the contract; it has `seconds` if there is a `size`."""
        form = {
            "collective": "allreduce",
            "ranks": list(self.ranks),
            "kind": self.ring.construction,
            "ring": list(self.ring.order),
            "max_hops": self.ring.max_hops,
            "first_blocks": list(self.first_blocks),
            "combining_steps": self.combining_steps,
            "steps": self.steps,
            "rate": self.rate,
        }
        if self.size is not None:
            form |= {"size": self.size, "seconds": self.seconds(self.size)}
        return form

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> RingPipeline:
        """Return the pipeline of a JSON form."""
        return cls(
            ring=Ring.from_json(form),
            first_blocks=tuple(form["first_blocks"]),
            combining_steps=form["combining_steps"],
            steps=form["steps"],
            rate=form["rate"],
            size=form.get("size"),
        )
