"""The C of a collective's calls, from its description: prototypes, entry points, calls of MPI."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagegen.catalogue.collective import ALL, ARGUMENTS, NOTHING, ONE, Collective

#: Columns of generated C.
_WIDTH = 100

#: Stands for a blank at which no line breaks.
_GLUE = "\0"

#: The C declaration of each role of an argument; and in the large-count form, where it differs.
TYPES = {
    "input": "const void *{}",
    "output": "void *{}",
    "count": "int {}",
    "counts": "const int {}[]",
    "displacements": "const int {}[]",
    "type": "MPI_Datatype {}",
    "operation": "MPI_Op {}",
    "root": "int {}",
    "communicator": "MPI_Comm {}",
}
LARGE_TYPES = {
    "count": "MPI_Count {}",
    "counts": "const MPI_Count {}[]",
    "displacements": "const MPI_Aint {}[]",
}

#: What a function for a persistent form has besides the arguments of the collective.
_OF_INIT = ("MPI_Info info", "MPI_Request *request")

#: The members of ``struct arguments`` in calls.h, by those of ``struct coll_call``.
_IN_CALLS = {
    "sendbuf": "send",
    "recvbuf": "recv",
    "send_blocks.counts": "send_counts",
    "send_blocks.displacements": "send_displacements",
    "recv_blocks.counts": "recv_counts",
    "recv_blocks.displacements": "recv_displacements",
}

#: The members of ``struct large`` in calls.h, by the roles of arguments.
_IN_LARGE = {"count": "count", "counts": "counts", "displacements": "displacements"}

_SIDES = {NOTHING: "COLL_NOTHING", ONE: "COLL_ONE", ALL: "COLL_ALL"}
_IN_PLACE = {None: None, "sendbuf": "COLL_SENDBUF", "recvbuf": "COLL_RECVBUF"}


def hanging(head: str, items: Sequence[str], tail: str) -> str:
    """Return head, items and tail in lines of C, whole items below each other."""
    first, *others = items
    words = [f"{head}{first}", *others]
    text = ", ".join(word.replace(" ", _GLUE) for word in words) + tail.replace(" ", _GLUE)
    indent = " " * (head.rindex("(") + 1)
    lines = textwrap.wrap(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace(_GLUE, " ")


@dataclass(frozen=True)
class CallInC:
    """The calls of a collective in C, for templates.

    Attributes:
        described: the collective.
    """

    described: Collective

    @property
    def name(self) -> str:
        """Such as ``reduce_scatter``."""
        return self.described.name

    @property
    def function(self) -> str:
        """Such as ``Reduce_scatter``."""
        return self.described.function

    @property
    def constant(self) -> str:
        """The collective in ``enum coll_collective``."""
        return f"COLL_{self.name.upper()}"

    @property
    def plan(self) -> str | None:
        """What plans its persistent form; None if the MPI library serves it."""
        return self.described.plan

    @property
    def is_uneven(self) -> bool:
        """Whether blocks may differ in length."""
        return self.described.uneven

    @property
    def is_counted(self) -> bool:
        """Whether it has counts, and so a large-count form."""
        return any(ARGUMENTS[name].role in ("count", "counts") for name in self.arguments)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the ``MPI_`` function."""
        return self.described.arguments

    @property
    def head(self) -> str:
        """The head of the ``MPI_`` function."""
        return self._head("", TYPES)

    @property
    def large_head(self) -> str:
        """The head of its large-count form."""
        return self._head("_c", {**TYPES, **LARGE_TYPES})

    def _head(self, suffix: str, types: Mapping[str, str], more: Sequence[str] = ()) -> str:
        items = [types[ARGUMENTS[name].role].format(name) for name in self.arguments]
        return hanging(f"LIBCOLL_EXPORT int MPI_{self.function}{suffix}(", [*items, *more], ") {")

    @property
    def init_head(self) -> str:
        """The head of the function that makes its persistent form."""
        return self._head("_init", TYPES, _OF_INIT)

    @property
    def init_large_head(self) -> str:
        """The head of the same in the large-count form."""
        return self._head("_init_c", {**TYPES, **LARGE_TYPES}, _OF_INIT)

    @property
    def init_native(self) -> str:
        """In the function that makes the persistent form, the native call."""
        items = [*self.arguments, "info", "request"]
        return hanging(f"    return PMPI_{self.function}_init(", items, ");")

    @property
    def init_large_native(self) -> str:
        """The same in the large-count form."""
        items = [*self.arguments, "info", "request"]
        return hanging(f"    return PMPI_{self.function}_init_c(", items, ");")

    @property
    def init_passed_on(self) -> str:
        """The same below a condition."""
        items = [*self.arguments, "info", "request"]
        return hanging(f"        return PMPI_{self.function}_init_c(", items, ");")

    @property
    def members(self) -> Iterator[tuple[str, str]]:
        """Members of ``struct coll_call``, and the arguments that they are set to."""
        for name in self.arguments:
            yield ARGUMENTS[name].member, name

    @property
    def large_members(self) -> Iterator[tuple[str, str]]:
        """The same in the large-count form; counts fit into an int there."""
        for name in self.arguments:
            argument = ARGUMENTS[name]
            if argument.role == "count":
                yield argument.member, f"(int){self.counts.get(name, (name, ''))[0]}"
            else:
                yield argument.large or argument.member, name

    @cached_property
    def counts(self) -> Mapping[str, tuple[str, str]]:
        """The variable and its value for each large count that some ranks must not read."""
        one = self.described
        found: dict[str, tuple[str, str]] = {}
        at_root = "coll_at_root({}, root, comm)"
        if "sendcount" in self.arguments:
            value = "coll_with_data(sendcount, sendtype)" if one.uneven else "sendcount"
            if one.rooted and one.send == ALL:
                value = at_root.format(value)
            elif one.in_place == "sendbuf":
                value = f"sendbuf == MPI_IN_PLACE ? 0 : {value}"
            found["sendcount"] = ("sent", value)
        if "recvcount" in self.arguments:
            if one.rooted and one.send == ONE:
                found["recvcount"] = ("received", at_root.format("recvcount"))
            elif one.in_place == "recvbuf":
                found["recvcount"] = ("received", "recvbuf == MPI_IN_PLACE ? 0 : recvcount")
        return found

    @property
    def must_fit(self) -> str | None:
        """The single large counts, sent and received, as arguments in C; None if there are none."""
        fit = {"send_count": "0", "recv_count": "0"}
        singles = [name for name in self.arguments if ARGUMENTS[name].role == "count"]
        for name in singles:
            fit[ARGUMENTS[name].member] = self.counts.get(name, (name, ""))[0]
        return ", ".join(fit.values()) if singles else None

    @property
    def passed_on(self) -> str:
        """In the large-count form, the native call with the same arguments."""
        return hanging(f"        return PMPI_{self.function}_c(", self.arguments, ");")

    @property
    def native(self) -> str:
        """The native call with the arguments of a ``struct coll_call``."""
        items = [f"call->{ARGUMENTS[name].member}" for name in self.arguments]
        return hanging(f"    return PMPI_{self.function}(", items, ");")

    @property
    def large_native(self) -> str:
        """The same with the large counts of blocks."""
        arguments = [ARGUMENTS[name] for name in self.arguments]
        items = [f"call->{argument.large or argument.member}" for argument in arguments]
        return hanging(f"        return PMPI_{self.function}_c(", items, ");")

    @property
    def large_counts(self) -> str:
        """The large counts of blocks in a ``struct coll_call``: of the last that has them.

        In place, there are none to send; what is received has them in any case.
        """
        named = (ARGUMENTS[name] for name in reversed(self.arguments))
        return next(argument.large for argument in named if argument.role == "counts")

    @property
    def either(self) -> str:
        """In calls.h, the call by either name with a ``struct arguments``."""
        members = (ARGUMENTS[name].member for name in self.arguments)
        items = [f"a->{_IN_CALLS.get(member, member)}" for member in members]
        return hanging(f"    return CALL(native, {self.function})(", items, ");")

    @property
    def large_signature(self) -> str:
        """In calls.h, the signature of the call by either name in the large-count form."""
        items = ("const struct arguments *a", "const struct large *large", "int native")
        head = f"static inline int large_{self.name}("
        return hanging(head, items, ") {").removesuffix(" {")

    @property
    def either_large(self) -> str:
        """In calls.h, the call by either name in the large-count form."""
        items = [
            f"large->{_IN_LARGE[ARGUMENTS[name].role]}"
            if ARGUMENTS[name].role in _IN_LARGE
            else f"a->{_IN_CALLS.get(ARGUMENTS[name].member, ARGUMENTS[name].member)}"
            for name in self.arguments
        ]
        return hanging(f"    return CALL(native, {self.function}_c)(", items, ");")

    @property
    def has(self) -> str:
        """In calls.h, what the collective has."""
        one = self.described
        found = {
            "SENDS": one.send != NOTHING,
            "RECEIVES": one.recv != NOTHING,
            "TWO_TYPES": {"sendtype", "recvtype"} <= set(self.arguments),
            "REDUCES": one.reduces,
            "ROOTED": one.rooted,
            "EXCHANGES": one.send == one.recv == ALL,
            "UNEVEN": one.uneven,
            "WHOLE": one.counts_whole,
        }
        return " | ".join(name for name, value in found.items() if value) or "0"

    @property
    def about_view(self) -> str:
        """Lines of a C comment: what a routine finds in its call."""
        words = " ".join(f"{self.name}: {self.described.view}".split())
        return textwrap.fill(words, _WIDTH, initial_indent=" *   ", subsequent_indent=" *       ")

    @property
    def descriptor(self) -> str:
        """The initialiser of a ``struct coll_descriptor``."""
        one = self.described
        members = {
            "send": _SIDES[one.send],
            "recv": _SIDES[one.recv],
            "in_place": _IN_PLACE[one.in_place],
            "reduces": self._reduction,
            "rooted": int(one.rooted),
            "uneven": int(one.uneven),
            "whole": int(one.counts_whole),
            "unsized": int(one.has_one_rule),
        }
        given = (f".{name} = {value}" for name, value in members.items() if value)
        return f"{{{', '.join(given)}}}"

    @property
    def _reduction(self) -> str | None:
        one = self.described
        if not one.reduces:
            return None
        if one.rooted:
            return "COLL_FOR_ROOT"
        return "COLL_A_PART_FOR_EACH" if one.send == ALL else "COLL_FOR_ALL"
