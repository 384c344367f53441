"""The description of an algorithm: its name, parameters, constraints, cost and reference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from stagegen.catalogue.formula import NOTHING, Formula
from stagegen.catalogue.values import ValueRange, sample
from stagegen.schedule import SCHEME_NAMES

NATIVE = "native"

#: The most parts of a composition (``COLL_PARTS_MOST`` in C).
PARTS_MOST = 2

#: Constraints that a template may declare, and the C constant of each.
CONSTRAINTS = {
    "commutative": "COLL_COMMUTATIVE",
    "dense": "COLL_DENSE",
    "power_of_two": "COLL_POWER_OF_TWO",
    "unprepared": "COLL_UNPREPARED",
}

#: Schedules that an algorithm may be made from, as tables, and the constructions of each; those of
#: an alltoall are its schemes. `hosts` is an alltoall between the leaders of hosts, if these have
#: several ranks.
SCHEDULES: dict[str, tuple[str, ...]] = {
    "aapc": SCHEME_NAMES,
    "hosts": ("none", "sender", "receiver"),
    "ring": ("lr2", "lr3"),
    "tree": ("binary", "kary"),
}

#: Parameters that choose among the tables of a routine. Each of their values has a table, or tokens
#: of its own, so they are listed.
OF_TABLES = {
    "aapc": frozenset({"block_size", "window"}),
    "hosts": frozenset({"block_size", "window"}),
    "tree": frozenset({"arity"}),
}

#: What an algorithm may need without a table, for any ranks on hosts of the cluster: their
#: depth-first order (LR1 and the linear tree follow it); the same order, of the hosts' leaders;
#: the switches, or the sites, that the ranks are on.
PLACES = {
    "order": "COLL_NEEDS_ORDER",
    "leaders": "COLL_NEEDS_LEADERS",
    "switches": "COLL_NEEDS_SWITCHES",
    "sites": "COLL_NEEDS_SITES",
}

#: Needs that divide the ranks into parts, such as hosts. A communicator must have several parts,
#: and several ranks in at least one of them.
LEVELS = frozenset({"leaders", "hosts", "switches", "sites"})

#: What the steps of a routine's persistent form are, and the C constant of each with its comment.
STEPS = {
    None: ("COLL_STEPS_NONE", "the MPI library serves it"),
    "ring": ("COLL_STEPS_RING", "around the ring of ranks"),
    "direct": ("COLL_STEPS_DIRECT", "each block goes to each rank at once"),
    "doubling": ("COLL_STEPS_DOUBLING", "recursive doubling"),
    "line": ("COLL_STEPS_LINE", "up or down the line of ranks"),
    "binomial": ("COLL_STEPS_BINOMIAL", "up or down the binomial tree"),
    "dissemination": ("COLL_STEPS_DISSEMINATION", "to the rank 2^k after, in step k"),
}

#: The need of an algorithm whose template brings its own tables, for all ranks of one topology.
OWN_TABLES = "tables"

#: The ranks that routines with each of these needs serve, in words.
RANKS_SERVED = {
    "order": "ranks on hosts of the cluster, any number on each, in any order",
    "leaders": "ranks on several hosts of the cluster, more than one on some, in any order",
    "hosts": "ranks on several hosts of the cluster, more than one on some, in any order",
    "switches": "ranks at several switches of the cluster, more than one at some, in any order",
    "sites": "ranks at several sites of the cluster, more than one at some, in any order",
}


@dataclass(frozen=True)
class Adaptation:
    """Says that calls which adapt may try an algorithm (Faraj 2006, §4.3.1.1 and §4.3.1.3).

    Attributes:
        group: the source's group of algorithms with the same aim; 0 if the source does not have it.
        representative: whether it stands for its group until that is chosen.
        max_bytes: the largest message that it is tried for, or None.
        without_hosts: whether it is tried only where the ranks' hosts are not known: another
            algorithm has its place where they are.
        optimises: the aim of its group: terms of the cost model (Faraj 2006, §4.1.1.1).
    """

    group: int = 0
    representative: bool = False
    max_bytes: int | None = None
    without_hosts: bool = False
    optimises: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A number that tuning chooses for an algorithm.

    Attributes:
        name: as in ``struct coll_parameters``.
        meaning: what it is, with its unit; begins with ``bytes`` if it is a number of bytes.
        values: what tuning tries: numbers in ascending order, or the range that they come from.
        default: used where nothing was tuned.
    """

    name: str
    meaning: str
    values: tuple[int, ...] | ValueRange
    default: int

    @property
    def in_bytes(self) -> bool:
        """Whether it is a number of bytes of a message."""
        return self.meaning.startswith("bytes")

    @property
    def listed(self) -> tuple[int, ...]:
        """The values of a parameter that has no range.

        Raises:
            TypeError: it has one.
        """
        if isinstance(self.values, ValueRange):
            raise TypeError(f"{self.name} has a range, and no list of values")
        return self.values

    @property
    def values_text(self) -> str:
        """The values in words, such as ``1, 2, 4`` or ``1, 2, 3, … up to p - 2``."""
        if isinstance(self.values, ValueRange):
            return self.values.text
        return ", ".join(map(str, self.values))

    @property
    def most(self) -> int:
        """The largest value on any ranks, at any size."""
        return self.values.most if isinstance(self.values, ValueRange) else self.values[-1]

    def values_at(self, size: int, ranks: int) -> tuple[int, ...]:
        """Return the values that make a difference on so many ranks at a size, ascending.

        Of the numbers of bytes that cover the whole message, only the least does.
        """
        values = self.values
        if isinstance(values, ValueRange):
            values = values.at(size, ranks)
        if not self.in_bytes:
            return values
        smaller = sum(value < size for value in values)
        return values[: smaller + 1]

    def sample_at(self, size: int, ranks: int) -> tuple[int, ...]:
        """Return values to check before any is timed: all of a list, and some of a range."""
        values = self.values
        return sample(values.at(size, ranks)) if isinstance(values, ValueRange) else values

    def may_be(self, value: int) -> bool:
        """Whether a routine can be called with a value.

        Listed values may have tables. Any number of bytes cuts a message somewhere.
        """
        if isinstance(self.values, ValueRange):
            return value > 0 if self.in_bytes else self.values.holds(value)
        return value in self.values or (self.in_bytes and value > 0)

    @property
    def fact(self) -> str:
        """What changes the code: listed values may have tables, the ends of a range change none."""
        values = "" if isinstance(self.values, ValueRange) else f" {self.values}"
        return f"{self.name}{values} {self.default} {self.in_bytes}"


@dataclass(frozen=True)
class Part:
    """A call of another collective, or of the same one, that a composition makes.

    Attributes:
        collective: its name.
        size: the call's size in bytes, as its collective counts them, for a call of the composition
            of ``n`` bytes in elements of ``e`` bytes on ``p`` ranks.
    """

    collective: str
    size: Formula


@dataclass(frozen=True)
class Algorithm:
    """One way to do a collective: a template file, or one of the variants of a file.

    Attributes:
        collective: such as ``alltoall``: the template's folder, unless a variant names another.
        name: such as ``ring``: the name of the file, or of the variant.
        summary: what it does, in one or two sentences.
        parameters: the numbers that tuning chooses; may be empty.
        constraints: names from :data:`CONSTRAINTS`.
        needs: the schedule that it is made from (:data:`SCHEDULES`), what it has to know of
            the ranks' hosts (:data:`PLACES`), :data:`OWN_TABLES`, or None.
        construction: how that schedule is made; None if it needs no schedule.
        topology: hash of the topology that its own tables (:data:`OWN_TABLES`) are for, or None.
        max_ranks: the most ranks of a cluster that it is generated for, or None.
        min_bytes: the smallest message that it can do.
        max_bytes: the largest, or None.
        cost: time in α, β, γ, θ, δ (Faraj 2006, §4.1.1.1).
        reference: author, year, section.
        template: path of the template below ``templates/``.
        deterministic: whether it serves ``LIBCOLL_DETERMINISTIC``: the order of its operands
            follows from the number of ranks alone.
        arrivals: whether what it does depends on the order in which ranks arrive.
        uses: algorithms of other collectives whose routines it calls, as ``collective/name``.
        parts: of a composition, the calls that it is made of; the routines that serve them are
            bound when the composition is measured.
        scratch: the most bytes of data that it allocates on any rank, for a message of ``n``
            bytes, as the collective counts them, in elements of ``e`` bytes, on ``p`` ranks with
            at most ``m`` on a host; the scratch of its parts comes on top.
        wins: when it is the best choice, in one sentence; empty for native routines.
        example: its steps for a small number of ranks, line by line; empty where they are obvious.
        traits: what the template asks about a variant, by names that only the template knows.
        persistent: the steps of its persistent form, one of :data:`STEPS`; no fact of the routine.
        adaptive: how calls that adapt try it, or None; no fact of the routine.
        hash: SHA-256 of what its routine is compiled from; comments and layout do not count.
    """

    collective: str
    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    constraints: tuple[str, ...]
    needs: str | None
    construction: str | None
    max_ranks: int | None
    min_bytes: int
    max_bytes: int | None
    cost: str
    reference: str
    template: PurePosixPath
    topology: str | None = None
    deterministic: bool = False
    arrivals: bool = False
    uses: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    scratch: Formula = NOTHING
    wins: str = ""
    example: str = ""
    traits: tuple[tuple[str, str | int], ...] = ()
    persistent: str | None = None
    adaptive: Adaptation | None = None
    hash: str = ""

    @property
    def full_name(self) -> str:
        """Its collective and its name, such as ``alltoall/ring``."""
        return f"{self.collective}/{self.name}"

    @property
    def routine(self) -> str:
        """Name of the generated C function."""
        return f"{self.collective}_{self.name}"

    @property
    def kind(self) -> str | None:
        """The construction, by its key of the front matter. Templates know it by this name, too."""
        return self.construction

    @property
    def facts(self) -> tuple[str, ...]:
        """The values of its front matter that change the code: all but texts for people."""
        return (
            *(parameter.fact for parameter in self.parameters),
            *(f"{part.collective} {part.size.text}" for part in self.parts),
            f"{self.constraints} {self.needs} {self.construction} "
            f"{self.max_ranks} {self.min_bytes}",
            f"{self.max_bytes} {self.deterministic} {self.uses} {self.scratch.text}",
            *(f"{name} {value}" for name, value in self.traits),
            *(["arrivals"] if self.arrivals else []),
            *([self.topology] if self.topology else []),
        )

    @property
    def topology_specific(self) -> bool:
        """Whether it serves only ranks on hosts of the topology that it was generated for."""
        return self.needs is not None

    @property
    def has_tables(self) -> bool:
        """Whether it has tables of the topology or of a group; most serve only all these ranks."""
        return self.needs in SCHEDULES or self.needs == OWN_TABLES

    @property
    def serves_other_hosts(self) -> bool:
        """Whether it serves any hosts of the cluster, and has tables of some, which it may use."""
        return self.needs == "hosts"

    def serves_more_than(self, used: Algorithm) -> bool:
        """Whether it serves calls that an algorithm which it uses cannot serve."""
        # The caller packs the blocks, so `dense` is no condition.
        if not set(used.constraints) - {"dense"} <= set(self.constraints):
            return True
        if used.max_ranks is not None and used.max_ranks != self.max_ranks:
            return True
        if used.needs == "order":
            return not self.topology_specific
        own = self.needs, self.construction
        return used.needs is not None and (used.needs, used.construction) != own

    def works_for(self, ranks: int) -> bool:
        """Whether its constraints allow a communicator of ``ranks`` ranks."""
        return self.why_not_for(ranks) is None

    def why_not_for(self, ranks: int) -> str | None:
        """Return why its constraints forbid a communicator of ``ranks`` ranks; None if not."""
        if self.max_ranks is not None and ranks > self.max_ranks:
            return f"it is made for at most {self.max_ranks} ranks, not {ranks}"
        if "power_of_two" in self.constraints and ranks & (ranks - 1) != 0:
            return f"{ranks} is no power of two"
        return None

    def handles(self, size: int) -> bool:
        """Whether it can do messages of ``size`` bytes."""
        return self.min_bytes <= size and (self.max_bytes is None or size <= self.max_bytes)
