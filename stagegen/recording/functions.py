"""The functions of MPI that the recorder watches, and their C, from their arguments.

They are the collectives of the catalogue, and those of MPI that it does not have; each with its
non-blocking and its persistent form, and with large counts where the MPI library has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from stagegen.catalogue import Catalogue
from stagegen.catalogue.collective import ARGUMENTS, load_collectives
from stagegen.generate.calls import LARGE_TYPES, TYPES, hanging

BLOCKING, NONBLOCKING, PERSISTENT = "blocking", "nonblocking", "persistent"
#: How a call ends: with the operation, before it, or with nothing but a request.
MODES = (BLOCKING, NONBLOCKING, PERSISTENT)

_GATHERED = "sendbuf sendcount sendtype recvbuf recvcounts displs recvtype"
_EXCHANGED = "sendbuf sendcounts sdispls {} recvbuf recvcounts rdispls {} comm"

#: Collectives of MPI by the arguments of their functions, in order.
_ARGUMENTS: Mapping[str, str] = {
    "alltoallw": _EXCHANGED.format("sendtypes", "recvtypes"),
    "exscan": "sendbuf recvbuf count datatype op comm",
    "gatherv": f"{_GATHERED} root comm",
    "neighbor_allgather": "sendbuf sendcount sendtype recvbuf recvcount recvtype comm",
    "neighbor_allgatherv": f"{_GATHERED} comm",
    "neighbor_alltoall": "sendbuf sendcount sendtype recvbuf recvcount recvtype comm",
    "neighbor_alltoallv": _EXCHANGED.format("sendtype", "recvtype"),
    "neighbor_alltoallw": "sendbuf sendcounts sdispls_a sendtypes recvbuf recvcounts rdispls_a "
    "recvtypes comm",
    "scan": "sendbuf recvbuf count datatype op comm",
    "scatterv": "sendbuf sendcounts displs sendtype recvbuf recvcount recvtype root comm",
}

#: Where the MPI library has persistent collectives. Open MPI 5 has them, as a library of MPI 3.1.
_HAS_PERSISTENT = "MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)"

#: Collectives in which a rank needs data of the ranks before it only.
_OF_RANKS_BEFORE = frozenset({"exscan", "scan"})

#: The C declarations of arguments that no collective of the catalogue has.
_OWN_TYPES: Mapping[str, str] = {
    "sendtypes": "const MPI_Datatype {}[]",
    "recvtypes": "const MPI_Datatype {}[]",
    "info": "MPI_Info {}",
    "request": "MPI_Request *{}",
    "sdispls_a": "const MPI_Aint {}[]",
    "rdispls_a": "const MPI_Aint {}[]",
}

#: The members of ``struct recorder_call``; for counts, also those of large ones.
_MEMBERS: Mapping[str, tuple[str, str]] = {
    "sendcount": ("send.count", "send.count"),
    "sendcounts": ("send.counts", "send.large_counts"),
    "sendtype": ("send.type", "send.type"),
    "sendtypes": ("send.types", "send.types"),
    "recvcount": ("recv.count", "recv.count"),
    "count": ("recv.count", "recv.count"),
    "recvcounts": ("recv.counts", "recv.large_counts"),
    "recvtype": ("recv.type", "recv.type"),
    "datatype": ("recv.type", "recv.type"),
    "recvtypes": ("recv.types", "recv.types"),
    "op": ("op", "op"),
    "root": ("root", "root"),
}
#: What a form has behind the arguments of the blocking one.
_BEHIND = {BLOCKING: (), NONBLOCKING: ("request",), PERSISTENT: ("info", "request")}


@dataclass(frozen=True)
class Form:
    """A function in C.

    Attributes:
        condition: of the preprocessor under which it exists; empty if it always does.
        head: of its definition.
        members: of ``struct recorder_call``, and the arguments that they are set to.
        call: of the next library's function.
    """

    condition: str
    head: str
    members: tuple[tuple[str, str], ...]
    call: str


@dataclass(frozen=True)
class Function:
    """A function of MPI that is recorded.

    Attributes:
        index: its place in the recorder's table.
        collective: such as ``reduce_scatter``.
        mode: one of :data:`MODES`.
        arguments: of the blocking form, by their names in the MPI standard.
        from_root: whether data comes from the root only.
        to_root: whether data goes to the root only.
    """

    index: int
    collective: str
    mode: str
    arguments: tuple[str, ...]
    from_root: bool
    to_root: bool

    @property
    def name(self) -> str:
        """Its name without ``MPI_`` in small letters, such as ``ibcast`` or ``bcast_init``."""
        return self.c_name.lower()

    @property
    def c_name(self) -> str:
        """Its name without ``MPI_`` in C, such as ``Ibcast``."""
        if self.mode == NONBLOCKING:
            return f"I{self.collective}"
        suffix = "_init" if self.mode == PERSISTENT else ""
        return self.collective.capitalize() + suffix

    @property
    def all_arguments(self) -> tuple[str, ...]:
        """The arguments of this form: the collective's own, and what comes behind them."""
        return (*self.arguments, *_BEHIND[self.mode])

    @property
    def has_data(self) -> bool:
        """Whether calls have data: a barrier's have none."""
        return _have_data(self.arguments)

    @property
    def flags(self) -> str:
        """What the recorder has to know to read the arguments, in C."""
        has_two_sides = {"sendtype", "recvtype"} <= set(self.arguments)
        found = {
            "RECORDER_ROOTED": "root" in self.arguments,
            "RECORDER_SENDS_AT_ROOT": has_two_sides and self.from_root,
            "RECORDER_RECEIVES_AT_ROOT": has_two_sides and self.to_root,
            "RECORDER_OF_RECEIVER": has_two_sides and self.from_root,
            "RECORDER_OF_NEIGHBOURS": self.collective.startswith("neighbor"),
            "RECORDER_OF_OWN_GROUP": {"recvcounts", "op"} <= set(self.arguments),
        }
        return " | ".join(name for name, value in found.items() if value) or "0"

    @property
    def forms(self) -> Iterator[Form]:
        """Its functions in C: with counts of ``int``, and with large ones if it has counts."""
        version = _HAS_PERSISTENT if self.mode == PERSISTENT else ""
        yield self._form(False, version)
        if _have_data(self.arguments):
            yield self._form(True, "MPI_VERSION >= 4")

    def _form(self, large: bool, condition: str) -> Form:
        name = f"MPI_{self.c_name}{'_c' if large else ''}"
        declared = [_declaration(argument, large) for argument in self.all_arguments]
        given = [argument.removesuffix("_a") for argument in self.all_arguments]
        members = [
            (_MEMBERS[argument][large], argument)
            for argument in self.arguments
            if argument in _MEMBERS
        ]
        return Form(
            condition,
            hanging(f"RECORDER_EXPORT int {name}(", declared, ") {"),
            (*members, *self._constants),
            hanging(f"    const int error = NEXT({name})(", given, ");"),
        )

    @property
    def _constants(self) -> Iterator[tuple[str, str]]:
        """Yield the members that do not stand for one argument each."""
        receiver = "RECORDER_OF_RECEIVER" in self.flags
        buffer = "recvbuf" if receiver else "sendbuf"
        if buffer in self.arguments:
            yield "in_place", f"{buffer} == MPI_IN_PLACE"
        if "op" not in self.arguments:
            yield "op", "MPI_OP_NULL"
        yield "send.present", str(int(bool({"sendtype", "sendtypes"} & set(self.arguments))))
        received = {"recvtype", "recvtypes", "datatype"} & set(self.arguments)
        yield "recv.present", str(int(bool(received)))


def _declaration(argument: str, large: bool) -> str:
    if argument in _OWN_TYPES:
        return _OWN_TYPES[argument].format(argument.removesuffix("_a"))
    types = {**TYPES, **LARGE_TYPES} if large else TYPES
    return types[ARGUMENTS[argument].role].format(argument)


@lru_cache
def arguments_of(collective: str) -> tuple[str, ...]:
    """Return the arguments of a blocking collective of MPI; none if it is unknown."""
    own = {one.name: one.arguments for one in load_collectives()}
    return own.get(collective) or tuple(_ARGUMENTS.get(collective, "").split())


def _have_data(arguments: Sequence[str]) -> bool:
    """Tell whether arguments say what is sent or received."""
    return any(one in ARGUMENTS and ARGUMENTS[one].role in LARGE_TYPES for one in arguments)


def has_data(name: str) -> bool:
    """Tell whether the calls of a function of MPI have data, such as not those of a barrier."""
    return _have_data(arguments_of(collective_of(name)[0]))


def synchronises(name: str) -> bool:
    """Tell whether no rank leaves a function before all have arrived, if it has data.

    Every rank then needs data of every other one: there is no root, no block may be empty, and the
    operation is neither one of neighbours nor one of the ranks before.
    """
    collective, mode = collective_of(name)
    arguments = set(arguments_of(collective))
    partial = collective in _OF_RANKS_BEFORE or collective.startswith("neighbor")
    uneven = {"root", "sendcounts", "recvcounts"} & arguments
    return mode == BLOCKING and bool(arguments) and not partial and not uneven


def functions_of(catalogue: Catalogue) -> tuple[Function, ...]:
    """Return what is recorded: the catalogue's collectives, and all others of MPI."""
    known = {name: _described(text.split()) for name, text in _ARGUMENTS.items()}
    for one in catalogue.descriptions:
        known[one.name] = (one.arguments, one.from_root, one.to_root)
    return tuple(_numbered(known))


def _described(arguments: Sequence[str]) -> tuple[tuple[str, ...], bool, bool]:
    """Return arguments, and whether data comes from the root, or goes to it.

    The catalogue does not have the collective: with a root, it is scatterv or gatherv, and the root
    has the counts.
    """
    rooted = "root" in arguments
    return (
        tuple(arguments),
        rooted and "sendcounts" in arguments,
        rooted and "recvcounts" in arguments,
    )


def _numbered(known: Mapping[str, tuple[tuple[str, ...], bool, bool]]) -> Iterator[Function]:
    pairs = ((name, mode) for name in sorted(known) for mode in MODES)
    for index, (name, mode) in enumerate(pairs):
        arguments, from_root, to_root = known[name]
        yield Function(index, name, mode, arguments, from_root, to_root)


def collective_of(name: str) -> tuple[str, str]:
    """Return the collective and the mode of a recorded function, such as ``ibcast``."""
    if name.endswith("_init"):
        return name.removesuffix("_init"), PERSISTENT
    if name.startswith("i"):
        return name[1:], NONBLOCKING
    return name, BLOCKING
