"""The Fortran functions of the library, derived from the descriptions of the collectives.

The function for Fortran programs differs from the C function only in how arguments are passed,
which follows from their roles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagegen.catalogue import Collective
from stagegen.catalogue.collective import ARGUMENTS
from stagegen.generate.calls import hanging

#: By the role of an argument: how Fortran passes it, and how it is given to the C function.
_PASSING = {
    "output": ("void *{}", "address({})"),
    "input": ("const void *{}", "address({})"),
    "count": ("const MPI_Fint *{}", "(int)*{}"),
    "root": ("const MPI_Fint *{}", "(int)*{}"),
    "counts": ("const MPI_Fint {}[]", "{}"),
    "displacements": ("const MPI_Fint {}[]", "{}"),
    "type": ("const MPI_Fint *{}", "datatype_of(*{})"),
    "operation": ("const MPI_Fint *{}", "operation_of(*{})"),
    "communicator": ("const MPI_Fint *{}", "communicator_of(*{})"),
}

#: What Fortran compilers make of a name.
_SPELLINGS = ("{0}", "{0}_", "{0}__")


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


def fortran_function(collective: Collective) -> FortranFunction:
    """Return the Fortran function of a collective."""
    passing = [(_PASSING[ARGUMENTS[name].role], name) for name in collective.arguments]
    parameters = [how[0].format(name) for how, name in passing]
    values = [how[1].format(name) for how, name in passing]
    function = collective.function
    return FortranFunction(
        lower=function.lower(),
        upper=function.upper(),
        has_buffers=collective.has_data,
        c_head=hanging(
            f"static void {function.lower()}(", [*parameters, "MPI_Fint *ierror"], ") {"
        ),
        c_call=hanging(f"    answer(ierror, MPI_{function}(", values, "));"),
    )


def with_site(function: FortranFunction, variable: str) -> FortranFunction:
    """Return a function that keeps in a variable, while it calls, where the program calls it."""
    note = f"    {variable} = __builtin_return_address(0);"
    return replace(function, c_call=f"{note}\n{function.c_call}\n    {variable} = NULL;")


@dataclass(frozen=True)
class Noted:
    """A function of MPICH for Fortran, whose calls' sites are noted.

    Attributes:
        names: its symbols.
        arguments: how many it has.
    """

    names: tuple[str, ...]
    arguments: int


def noted(name: str, arguments: int, has_data: bool) -> Noted:
    """Return the symbols of a function for Fortran.

    Args:
        name: without ``MPI_``, in lower case.
        arguments: how many the C function has.
        has_data: whether it takes the application's data. If not, that of mpi_f08 calls no
            function of C, and is none of these symbols.
    """
    lower = f"mpi_{name}"
    names = [spelling.format(lower) for spelling in _SPELLINGS] + [lower.upper()]
    if has_data:
        names += [f"{lower}_f08ts_", f"{lower}_f08ts_large_"]
    return Noted(tuple(names), arguments + 1)
