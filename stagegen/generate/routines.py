"""One algorithm's template and schedule become one routine in C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stagegen.catalogue import Algorithm, Part, RankGroup
from stagegen.catalogue.algorithm import CONSTRAINTS, PLACES, RANKS_SERVED
from stagegen.catalogue.references import load_works, with_numbers
from stagegen.generate.render import Renderer, c_comment, unbroken
from stagegen.generate.schedules import table_maker_of


@dataclass(frozen=True)
class Routine:
    """A generated routine, as the C templates name it.

    Attributes:
        algorithm: name of the algorithm.
        collective: its collective.
        function: name of the C function.
        group: the ranks whose tables it has: 0 for all (or no tables), k for the k-th group.
        index: its place in ``coll_routines[]``.
        c_constraints: C expression of its constraints.
        c_defaults: C initialiser of its default parameters.
        c_variants: the same, with every other value of every parameter in turn.
        min_bytes: the smallest message that it can do.
        c_max_bytes: C expression of the largest.
        c_scratch: C expression of the most bytes that it allocates.
        parts: of a composition, the calls that it makes.
        described: the algorithm itself, narrowed to the ranks.
        ranks: the ranks that it is made for.
    """

    algorithm: str
    collective: str
    function: str
    group: int
    index: int
    c_constraints: str
    c_defaults: str
    c_variants: tuple[str, ...]
    min_bytes: int
    c_max_bytes: str
    c_scratch: str
    parts: tuple[Part, ...]
    described: Algorithm
    ranks: RankGroup


def describe(algorithm: Algorithm, group: RankGroup, index: int) -> Routine:
    """Return the description of a routine for some ranks, as the C tables need it."""
    flags = [CONSTRAINTS[name] for name in algorithm.constraints]
    if algorithm.has_tables:
        flags.append("COLL_NEEDS_CLUSTER")
    if algorithm.needs in PLACES:
        flags.append(PLACES[algorithm.needs])
    if algorithm.parts:
        flags.append("COLL_OF_PARTS")
    if algorithm.deterministic:
        flags.append("COLL_FIXED_ORDER")
    return Routine(
        algorithm=algorithm.name,
        collective=algorithm.collective,
        function=algorithm.routine + group.suffix,
        group=group.number,
        index=index,
        c_constraints=" | ".join(flags) or "COLL_ANY",
        c_defaults=c_parameters(_defaults(algorithm)),
        c_variants=tuple(_variants(algorithm)),
        min_bytes=algorithm.min_bytes,
        c_max_bytes="INT_MAX" if algorithm.max_bytes is None else str(algorithm.max_bytes),
        c_scratch=algorithm.scratch.to_c(),
        parts=algorithm.parts,
        described=algorithm,
        ranks=group,
    )


def _defaults(algorithm: Algorithm) -> dict[str, int]:
    return {parameter.name: parameter.default for parameter in algorithm.parameters}


def _variants(algorithm: Algorithm) -> Iterator[str]:
    """Yield the parameters of a routine with one of them not at its default."""
    for parameter in algorithm.parameters:
        for value in parameter.values:
            if value != parameter.default:
                yield c_parameters({**_defaults(algorithm), parameter.name: value})


def c_parameters(values: dict[str, int], parts: Sequence[str] = ()) -> str:
    """Return the C initialiser of a ``struct coll_parameters``.

    Args:
        values: of the parameters.
        parts: initialisers of ``struct coll_part``, for a composition whose parts are bound.
    """
    members = [f".{name} = {value}" for name, value in sorted(values.items())]
    if parts:
        members.append(f".parts = (const struct coll_part[]){{{', '.join(parts)}}}")
    return "{" + ", ".join(members) + "}" if members else "{0}"


def render_routine(algorithm: Algorithm, renderer: Renderer, group: RankGroup) -> str:
    """Return the C file of one algorithm, with the tables of some ranks where it has tables.

    Raises:
        GenerateError: the template is wrong.
        ScheduleError: the schedule fails its proof.
    """
    function = algorithm.routine + group.suffix
    values: dict[str, Any] = {
        "algorithm": algorithm,
        "function": function,
        "signature": _signature(function),
        "contract": c_comment(["Returns MPI_SUCCESS or an MPI error code."]),
    }
    proven: tuple[str, ...] = ()
    if algorithm.needs is not None:
        values["schedule"], proven = table_maker_of(group.topology).make(algorithm)
    about = (*_about(algorithm, group), *proven)
    values["banner"] = renderer.header(f"{function}: {algorithm.summary}", about)
    return renderer.render(algorithm.template.as_posix(), values)


def _about(algorithm: Algorithm, group: RankGroup) -> Iterator[str]:
    """Yield what a reader of a routine wants to know first, a paragraph for each fact."""
    asks = [name.replace("_", " ") for name in algorithm.constraints if name != "unprepared"]
    if algorithm.topology_specific:
        whose = f"group {group.name}" if group.number else "cluster"
        of_all = f"all ranks of the {whose}, in any order"
        asks.append(RANKS_SERVED.get(algorithm.needs or "", of_all))
    if algorithm.wins:
        yield f"Wins: {algorithm.wins}"
    yield f"Cost: {unbroken(algorithm.cost)}."
    yield f"Asks for: {', '.join(asks) or 'nothing'}."
    yield from (f"Parameter {p.name}: {p.meaning}." for p in algorithm.parameters)
    if algorithm.example:
        yield "\n".join(["Example:", *(f"  {line}" for line in algorithm.example.splitlines())])
    yield f"Reference: {with_numbers(algorithm.reference, load_works())}."


def _signature(function: str) -> str:
    start = f"int {function}("
    arguments = (
        "const struct coll_call *call",
        "const struct coll_comm *cc",
        "const struct coll_parameters *parameters",
    )
    lines = [start + arguments[0]]
    for argument in arguments[1:]:
        if len(lines[-1]) + len(f", {argument},") <= 100:
            lines[-1] += f", {argument}"
        else:
            lines.append(" " * len(start) + argument)
    return ",\n".join(lines) + ")"
