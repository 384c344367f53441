"""One algorithm's template and schedule become one routine in C."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stagegen.catalogue import Algorithm, Collective, Part, RankGroup
from stagegen.catalogue.algorithm import CONSTRAINTS, PLACES, RANKS_SERVED, STEPS
from stagegen.catalogue.references import Work, with_numbers
from stagegen.catalogue.source_hash import TABLES_TEMPLATE
from stagegen.generate.calls import CallInC, hanging
from stagegen.generate.render import Renderer, c_comment, unbroken
from stagegen.generate.schedules import table_maker_of
from stagegen.generate.trees import arities_of

#: How the name of a routine's file of tables ends, after the name of its function.
TABLES = ".tables.h"

#: Ranges of numbers of bytes are checked up to a message of so many: that is about the longest of
#: the check (drivers/trials.h). With more, its messages are not cut.
CHECKED_BYTES = 16 * 1024


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
        c_steps: C constant of the steps of its persistent form.
        c_variants: the same, with other values of every parameter in turn.
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
    c_steps: str
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
    if algorithm.has_tables and not algorithm.serves_other_hosts:
        flags.append("COLL_NEEDS_CLUSTER")
    if algorithm.needs in PLACES:
        flags.append(PLACES[algorithm.needs])
    if algorithm.serves_other_hosts:
        flags.append(PLACES["leaders"])
    if algorithm.parts:
        flags.append("COLL_OF_PARTS")
    if algorithm.deterministic:
        flags.append("COLL_FIXED_ORDER")
    if algorithm.arrivals:
        flags.append("COLL_WATCHES_ARRIVALS")
    return Routine(
        algorithm=algorithm.name,
        collective=algorithm.collective,
        function=algorithm.routine + group.suffix,
        group=group.number,
        index=index,
        c_constraints=" | ".join(flags) or "COLL_ANY",
        c_defaults=c_parameters(_defaults(algorithm)),
        c_steps=STEPS[algorithm.persistent][0],
        c_variants=tuple(_variants(algorithm, group.topology.rank_count)),
        min_bytes=algorithm.min_bytes,
        c_max_bytes="INT_MAX" if algorithm.max_bytes is None else str(algorithm.max_bytes),
        c_scratch=algorithm.scratch.to_c(),
        parts=algorithm.parts,
        described=algorithm,
        ranks=group,
    )


def _defaults(algorithm: Algorithm) -> dict[str, int]:
    return {parameter.name: parameter.default for parameter in algorithm.parameters}


def _variants(algorithm: Algorithm, ranks: int) -> Iterator[str]:
    """Yield the parameters of a routine with one of them not at its default."""
    for parameter in algorithm.parameters:
        for value in parameter.sample_at(CHECKED_BYTES, ranks):
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


def routine_files(
    algorithm: Algorithm, renderer: Renderer, group: RankGroup, collective: Collective
) -> dict[str, str]:
    """Return the C file of one algorithm for some ranks, and the file of its tables, by name.

    There is a file of tables if the C file includes it, or has `{% tables %}`.

    Args:
        algorithm: the algorithm.
        renderer: renders its templates.
        group: the ranks.
        collective: what the algorithm does; the template of native routines asks for it.

    Raises:
        GenerateError: a template is wrong.
        ScheduleError: the schedule fails its proof.
    """
    values = _values(algorithm, renderer, group)
    values["call"] = CallInC(collective)
    values["contract"] = c_comment([_contract(algorithm, collective)])
    function = values["function"]
    tables = f"{function}{TABLES}"
    code, own = renderer.render_apart(algorithm.template.as_posix(), values, tables)
    files = {f"{function}.c": code}
    if own is not None:
        title = f"{tables}: the schedule of {function} as tables."
        files[tables] = "\n".join((renderer.header(title), *_stated(algorithm), own))
    elif f'#include "{tables}"' in code.splitlines():
        files[tables] = renderer.render(f"{algorithm.collective}/{TABLES_TEMPLATE}", values)
    return files


def _stated(algorithm: Algorithm) -> Iterator[str]:
    """Yield the constant that says what the tables of a ring or of trees are."""
    if algorithm.needs == "ring":
        number = (algorithm.construction or "").removeprefix("lr")
        yield f"/* The logical ring LR{number}. */\nenum {{ LOGICAL_RING = {number} }};\n"
    elif algorithm.needs == "tree":
        most = max(arities_of(algorithm))
        yield f"/* The most children in the trees. */\nenum {{ CHILDREN_MOST = {most} }};\n"


def _values(algorithm: Algorithm, renderer: Renderer, group: RankGroup) -> dict[str, Any]:
    """Return the values for rendering an algorithm's template."""
    function = algorithm.routine + group.suffix
    values: dict[str, Any] = {
        "algorithm": algorithm,
        "traits": dict(algorithm.traits),
        "function": function,
        "group_number": group.number,
        "signature": _signature(function),
    }
    proven: tuple[str, ...] = ()
    if algorithm.needs is not None:
        values["schedule"], proven = table_maker_of(group.topology).make(algorithm)
    about = (*_about(algorithm, group, renderer.works), *proven)
    values["banner"] = renderer.header(f"{function}: {algorithm.summary}", about)
    return values


def _contract(algorithm: Algorithm, collective: Collective) -> str:
    """Return what a routine finds in its call, for the comment above its function."""
    is_of_parts = bool(algorithm.parts) and collective.reduces
    if is_of_parts or "unprepared" in algorithm.constraints:
        return "No view: the call has what the application passed, MPI_IN_PLACE included."
    dense = " All data is plain bytes (MPI_PACKED)." if "dense" in algorithm.constraints else ""
    return f"View: {collective.view}{dense}"


def _about(algorithm: Algorithm, group: RankGroup, works: Mapping[str, Work]) -> Iterator[str]:
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
    yield f"Reference: {with_numbers(algorithm.reference, works)}."


def _signature(function: str) -> str:
    arguments = (
        "const struct coll_call *call",
        "const struct coll_comm *cc",
        "const struct coll_parameters *parameters",
    )
    return hanging(f"int {function}(", arguments, ") {").removesuffix(" {")
