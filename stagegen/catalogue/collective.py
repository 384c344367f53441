"""The description of a collective: ``templates/<collective>/collective.yaml``.

All that follows from it mechanically is derived: the ``MPI_`` functions with their large-count and
Fortran forms, the native call, the calls of the check, of the session and of the benchmark, the
sizes at which it is measured, and its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagegen.catalogue.keys import Keys, one_of, read_mapping, text_of
from stagegen.catalogue.templates import Templates, templates_of
from stagegen.data import TEMPLATES
from stagegen.schedule.bounds.formulas import COLLECTIVES as BOUNDED

FILE = "collective.yaml"
_WHAT = "the description"

NOTHING, ONE, ALL = "nothing", "one", "all"
#: What a rank holds on one side of a call: nothing, one block, or a block for, or from, each rank.
SIDES = (NOTHING, ONE, ALL)


@dataclass(frozen=True)
class Argument:
    """An argument of an ``MPI_`` function.

    Attributes:
        role: what it is for; with it, C and Fortran types are known.
        member: the member of ``struct coll_call`` that holds it.
        large: the member for its large-count form, if that is another one.
    """

    role: str
    member: str
    large: str = ""


#: The arguments by their names in the MPI standard. Reductions and broadcasts have one count and
#: type, which are those of the receiving side.
ARGUMENTS: Mapping[str, Argument] = {
    "sendbuf": Argument("input", "sendbuf"),
    "sendcount": Argument("count", "send_count"),
    "sendcounts": Argument("counts", "send_blocks.counts", "send_blocks.large_counts"),
    "sdispls": Argument(
        "displacements", "send_blocks.displacements", "send_blocks.large_displacements"
    ),
    "sendtype": Argument("type", "send_type"),
    "recvbuf": Argument("output", "recvbuf"),
    "buffer": Argument("output", "recvbuf"),
    "recvcount": Argument("count", "recv_count"),
    "count": Argument("count", "recv_count"),
    "recvcounts": Argument("counts", "recv_blocks.counts", "recv_blocks.large_counts"),
    "rdispls": Argument(
        "displacements", "recv_blocks.displacements", "recv_blocks.large_displacements"
    ),
    "displs": Argument(
        "displacements", "recv_blocks.displacements", "recv_blocks.large_displacements"
    ),
    "recvtype": Argument("type", "recv_type"),
    "datatype": Argument("type", "recv_type"),
    "op": Argument("operation", "op"),
    "root": Argument("root", "root"),
    "comm": Argument("communicator", "comm"),
}

#: What plans the persistent forms of collectives: functions ``coll_plan_…`` of the library; and
#: which of :data:`stagegen.catalogue.algorithm.STEPS` each can make. An exchange needs none.
PLANNERS: Mapping[str, tuple[str, ...]] = {
    "allreduce": ("ring", "doubling"),
    "barrier": ("dissemination", "binomial"),
    "bcast": ("line", "binomial"),
    "exchange": (),
    "gather": ("direct",),
    "gathered": ("ring", "direct"),
    "reduce": ("line", "binomial"),
    "scatter": ("direct",),
    "scattered": ("ring",),
}

#: What a size in bytes counts, in words.
UNITS: Mapping[str, str] = {
    "pair": "per pair of ranks",
    "rank": "per rank",
    "whole": "of the whole message",
    "unknown": "per pair of ranks",
    "none": "none",
}


@dataclass(frozen=True)
class Collective:
    """What a collective is.

    Attributes:
        name: such as ``reduce_scatter``; the name of its folder.
        summary: what it does, in one sentence.
        arguments: of its ``MPI_`` function, in order, by their names in :data:`ARGUMENTS`.
        send: what a rank holds to send, one of :data:`SIDES`.
        recv: what a rank receives. With a root, data goes from the root if ranks hold blocks to
            send for all, or nothing, else to the root.
        in_place: the buffer that may be ``MPI_IN_PLACE``, at the root if there is one; or None.
        size: what the size of a message counts, one of :data:`UNITS`. With ``unknown``, a rank
            knows its own blocks only, so that one rule serves all calls; they are measured with
            blocks of so many bytes for each pair of ranks.
        view: what a routine finds in its ``struct coll_call``.
        bound: the row of :data:`stagegen.schedule.bounds.formulas.FORMULAS` whose lower bound holds
            for it, or None.
        plan: what plans its persistent form, one of :data:`PLANNERS`; None if the MPI library
            serves it.
    """

    name: str
    summary: str
    arguments: tuple[str, ...]
    send: str
    recv: str
    in_place: str | None
    size: str
    view: str
    bound: str | None
    plan: str | None = None

    @property
    def function(self) -> str:
        """Its function in C without ``MPI_``, such as ``Reduce_scatter``."""
        return self.name.capitalize()

    @property
    def rooted(self) -> bool:
        """Whether it has a root."""
        return "root" in self.arguments

    @property
    def to_root(self) -> bool:
        """Whether data goes to the root only."""
        return self.rooted and self.send == ONE

    @property
    def from_root(self) -> bool:
        """Whether data comes from the root only."""
        return self.rooted and self.send != ONE

    @property
    def reduces(self) -> bool:
        """Whether it is a reduction."""
        return "op" in self.arguments

    @property
    def uneven(self) -> bool:
        """Whether blocks may differ in length."""
        return any(ARGUMENTS[name].role == "counts" for name in self.arguments)

    @property
    def has_data(self) -> bool:
        """Whether its calls have data; a barrier's have none, so that their only size is 0."""
        return self.size != "none"

    @property
    def has_one_rule(self) -> bool:
        """Whether one rule serves all calls, as they have no size that all ranks know."""
        return self.size in ("none", "unknown")

    @property
    def counts_whole(self) -> bool:
        """Whether a size counts the whole message, and not one block of it."""
        return self.size == "whole"

    @property
    def is_divided(self) -> bool:
        """Whether a size is that of the blocks of all ranks together."""
        return self.counts_whole and ALL in (self.send, self.recv)

    @property
    def facts(self) -> tuple[str, ...]:
        """What changes the code that is compiled, or what a measurement measures."""
        return (
            " ".join(self.arguments),
            f"{self.send} {self.recv} {self.in_place} {self.size}",
        )


def load_collectives(root: Path = TEMPLATES) -> tuple[Collective, ...]:
    """Return the collectives of a templates folder, sorted by name.

    Raises:
        InputError: a description is wrong.
    """
    return collectives_of(templates_of(root))


def collectives_of(templates: Templates) -> tuple[Collective, ...]:
    """Return the collectives of some templates, sorted by name.

    Raises:
        InputError: a description is wrong.
    """
    return tuple(
        _read_collective(path.partition("/")[0], templates.text(path), templates.where(path))
        for path in templates.matching(f"*/{FILE}")
    )


def sizes_in_words(collectives: Iterable[Collective]) -> str:
    """Return what sizes count, such as ``per rank (gather, scatter)``."""
    by_unit: dict[str, list[str]] = {UNITS[size]: [] for size in UNITS}
    for one in collectives:
        by_unit[UNITS[one.size]].append(one.name)
    by_unit.pop(UNITS["none"])
    told = [f"{unit} ({', '.join(names)})" for unit, names in by_unit.items() if names]
    return " or ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)


def _read_collective(name: str, text: str, where: str) -> Collective:
    """Read a description from its text; messages name its file.

    Raises:
        InputError: it is not YAML, has unknown keys or values, or contradicts itself.
    """
    keys = Keys(read_mapping(text, _WHAT, where), _WHAT, where, text)
    collective = Collective(
        name=name,
        summary=keys.take("summary", text_of),
        arguments=keys.take("arguments", _arguments),
        send=keys.take("send", one_of(SIDES)),
        recv=keys.take("recv", one_of(SIDES)),
        in_place=keys.take("in_place", one_of(("sendbuf", "recvbuf")), default=None),
        size=keys.take("size", one_of(tuple(UNITS))),
        view=keys.take("view", text_of),
        bound=keys.take("bound", one_of(BOUNDED), default=None),
        plan=keys.take("plan", one_of(tuple(PLANNERS)), default=None),
    )
    keys.done()
    for key, is_right, message in _RULES:
        if not is_right(collective):
            raise keys.wrong(key, f"`{key}`: {message}")
    return collective


def _arguments(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not set(value) <= set(ARGUMENTS):
        raise ValueError(f"expected a list of {', '.join(ARGUMENTS)}")
    members = [ARGUMENTS[name].member for name in value]
    if len(set(members)) < len(members):
        raise ValueError("two arguments are the same thing; name each member once")
    return tuple(value)


def _sends(one: Collective) -> bool:
    """Whether the arguments of the sending side fit what a rank holds to send."""
    wanted = set()
    if one.send != NOTHING:
        wanted = {"input"} if one.reduces else {"input", "count or counts", "type"}
    return wanted == _roles(one, "send") - {"displacements"}


def _receives(one: Collective) -> bool:
    wanted = set() if one.recv == NOTHING else {"output", "count or counts", "type"}
    return wanted == _roles(one, "recv") - {"displacements"}


def _roles(one: Collective, side: str) -> set[str]:
    """Return the roles of the arguments of one side."""
    found = {
        ARGUMENTS[name].role for name in one.arguments if ARGUMENTS[name].member.startswith(side)
    }
    counts = found & {"count", "counts"}
    return found - counts | ({"count or counts"} if len(counts) == 1 else counts)


def _sized(one: Collective) -> bool:
    return one.has_data == (one.send != NOTHING or one.recv != NOTHING)


def _has_blocks(one: Collective) -> bool:
    return one.size not in ("pair", "rank", "unknown") or ALL in (one.send, one.recv)


#: The key that an error names, what has to hold, and what to do.
_RULES: tuple[tuple[str, Callable[[Collective], bool], str], ...] = (
    ("arguments", lambda one: one.arguments[-1] == "comm", "the last one has to be comm"),
    ("send", _sends, "needs sendbuf with count and type (reductions: sendbuf alone), or nothing"),
    ("recv", _receives, "needs a buffer, a count or counts, and a type, or nothing"),
    (
        "in_place",
        lambda one: one.in_place is None or one.in_place in one.arguments,
        "there is no such argument",
    ),
    ("size", _sized, "has to be none if there is no data, and only then"),
    ("size", _has_blocks, "has to be whole, as no rank has a block for, or from, each rank"),
    (
        "size",
        lambda one: one.size != "unknown" or one.uneven,
        "is unknown only if blocks differ in length",
    ),
)
