"""The Fortran functions of the library, derived from its C functions.

A collective is written once, in its ``_entry.c.j2``. The function for Fortran programs differs
only in how arguments are passed, which follows from their types.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from stagegen.errors import GenerateError

#: Columns of generated C.
_WIDTH = 100

#: Stands for a blank at which no line breaks.
_GLUE = "\0"

#: An entry point for Fortran's INTEGER counts; those for large counts end in ``_c``.
_PROTOTYPE = re.compile(r"^LIBCOLL_EXPORT int MPI_(\w+)(?<!_c)\(([^)]*)\) \{", re.MULTILINE)
_ARGUMENT = re.compile(r"(?P<type>.*?)(?P<name>\w+)(?P<array>\[\])?")

#: By the type of an argument in C: how Fortran passes it, and how it is given to the C function.
_PASSING = {
    "void *": ("void *{}", "address({})"),
    "const void *": ("const void *{}", "address({})"),
    "int": ("const MPI_Fint *{}", "(int)*{}"),
    "const int []": ("const MPI_Fint {}[]", "{}"),
    "MPI_Datatype": ("const MPI_Fint *{}", "datatype_of(*{})"),
    "MPI_Op": ("const MPI_Fint *{}", "operation_of(*{})"),
    "MPI_Comm": ("const MPI_Fint *{}", "communicator_of(*{})"),
}


@dataclass(frozen=True)
class FortranFunction:
    """A function of MPI as Fortran programs call it.

    Attributes:
        lower: its name without ``MPI_`` in lower case.
        upper: the same in upper case.
        has_buffers: whether it takes the application's data.
        c_head: the head of the C function that receives Fortran's arguments.
        c_call: the call of the C function of MPI, as a statement's expression.
    """

    lower: str
    upper: str
    has_buffers: bool
    c_head: str
    c_call: str


def fortran_functions(sources: Iterable[str]) -> list[FortranFunction]:
    """Return the Fortran functions for the entry points that C files define.

    Raises:
        GenerateError: an entry point has an argument of a type that Fortran cannot pass.
    """
    return [
        _function(prototype[1], prototype[2])
        for source in sources
        for prototype in _PROTOTYPE.finditer(source)
    ]


def _function(name: str, arguments: str) -> FortranFunction:
    names_and_types = [] if arguments == "void" else [_parsed(name, a) for a in _split(arguments)]
    passing = [(_PASSING[kind], argument) for argument, kind in names_and_types]
    parameters = [how[0].format(argument) for how, argument in passing]
    values = [how[1].format(argument) for how, argument in passing]
    lower = name.lower()
    return FortranFunction(
        lower=lower,
        upper=name.upper(),
        has_buffers=any("void" in kind for _, kind in names_and_types),
        c_head=_hanging(f"static void {lower}(", [*parameters, "MPI_Fint *ierror"], ") {"),
        c_call=_hanging(f"    answer(ierror, MPI_{name}(", values, "));"),
    )


def _split(arguments: str) -> list[str]:
    return [" ".join(argument.split()) for argument in arguments.split(",")]


def _parsed(function: str, argument: str) -> tuple[str, str]:
    """Return name and type of an argument as it is declared."""
    found = _ARGUMENT.fullmatch(argument)
    kind = f"{found['type'].strip()}{' []' if found['array'] else ''}" if found else argument
    if found is None or kind not in _PASSING:
        raise GenerateError(f"MPI_{function}: Fortran cannot pass {argument!r}")
    return found["name"], kind


def _hanging(head: str, items: list[str], tail: str) -> str:
    """Return head, items and tail in lines of C, whole items below each other."""
    text = head + ", ".join(item.replace(" ", _GLUE) for item in items) + tail
    lines = textwrap.wrap(text, _WIDTH, subsequent_indent=" " * len(head), break_long_words=False)
    return "\n".join(lines).replace(_GLUE, " ")
