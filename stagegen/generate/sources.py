"""Which C files a build consists of: the runtime, the routines, and the drivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from stagegen.data import DRIVERS
from stagegen.generate.places import depth_first_places, groups_of
from stagegen.generate.render import Renderer
from stagegen.generate.routines import describe, render_routine
from stagegen.generate.schedules import scheduler_of
from stagegen.generate.tables import numbers
from stagegen.repository import Algorithm, Catalogue
from stagegen.repository.algorithm import NATIVE
from stagegen.topology import Topology

#: Runtime that the library and the measuring session share.
RUNTIME = (
    "coll.h",
    "call.c",
    "cluster.c",
    "communicator.c",
    "data.c",
    "known.c",
    "reduction.c",
    "routines.c",
)
CHECK_DRIVERS = ("conformance.c", "conformance.h", "layouts.h", "operands.h", "trials.h")
SESSION_DRIVERS = ("members.h", "request.h", "serve.h", "session.c", "timing.h")


def with_native(catalogue: Catalogue, chosen: Sequence[Algorithm]) -> tuple[Algorithm, ...]:
    """Return what a library holds, in catalogue order.

    That is the chosen algorithms, and of every collective the native and the deterministic one.
    """
    wanted = {algorithm.routine for algorithm in chosen}
    return tuple(
        a
        for a in catalogue.algorithms
        if a.routine in wanted or a.name == NATIVE or a.deterministic
    )


def applicable(catalogue: Catalogue, topology: Topology) -> tuple[Algorithm, ...]:
    """Return the algorithms that all ranks of the topology together can run.

    Their parameters keep only the values that make a difference on this topology.
    """
    scheduler = scheduler_of(topology)
    return tuple(
        scheduler.narrowed(algorithm)
        for algorithm in catalogue.algorithms
        if algorithm.works_for(topology.rank_count) and scheduler.exists(algorithm)
    )


def runtime_sources(
    topology: Topology, catalogue: Catalogue, algorithms: Sequence[Algorithm], renderer: Renderer
) -> dict[str, str]:
    """Return the C files, by name, of the runtime and of the given algorithms' routines.

    Raises:
        GenerateError: a template is wrong.
        ScheduleError: a schedule fails its proof.
    """
    values = runtime_values(topology, catalogue, algorithms)
    files = {name: renderer.render(f"libcoll/{name}.j2", values) for name in RUNTIME}
    for name in catalogue.collectives:
        files[f"call_{name}.c"] = renderer.render(f"{name}/_call.c.j2", values)
    scheduler = scheduler_of(topology)
    for algorithm in map(scheduler.narrowed, algorithms):
        files[f"{algorithm.routine}.c"] = render_routine(algorithm, renderer, scheduler)
    return files


def runtime_values(
    topology: Topology, catalogue: Catalogue, algorithms: Sequence[Algorithm]
) -> Mapping[str, Any]:
    """Return what the templates of the runtime are rendered with."""
    host_index = {host.name: index for index, host in enumerate(topology.hosts)}
    groups = tuple(groups_of(topology))
    parameters = catalogue.parameters
    narrowed = map(scheduler_of(topology).narrowed, algorithms)
    return {
        "topology": topology,
        "collectives": catalogue.collectives,
        "parameters": parameters,
        "parameter_names": ", ".join(f'"{p.name}"' for p in parameters),
        "parameter_fields": ", ".join(f"&parameters->{p.name}" for p in parameters),
        "routines": [describe(algorithm, index) for index, algorithm in enumerate(narrowed)],
        "groups": groups,
        "place_of_host": numbers(depth_first_places(topology)),
        "first_position": numbers(accumulate((g.topology.rank_count for g in groups), initial=0)),
        "host_of_position": numbers(host_index[n] for g in groups for n in g.topology.ranks),
    }


def check_sources(
    catalogue: Catalogue, renderer: Renderer, values: Mapping[str, Any]
) -> dict[str, str]:
    """Return the files, by name, of the conformance check, with a case for each collective."""
    cases = [f"case_{name}.c" for name in catalogue.collectives]
    files = {name: _driver(name) for name in (*CHECK_DRIVERS, *cases)}
    return {**files, "cases.c": renderer.render("libcoll/cases.c.j2", values)}


def _driver(name: str) -> str:
    return (DRIVERS / name).read_text(encoding="utf-8")


def measuring_sources(
    topology: Topology, catalogue: Catalogue, renderer: Renderer
) -> dict[str, str]:
    """Return all files of the measuring session: all applicable routines and its drivers."""
    algorithms = applicable(catalogue, topology)
    files = {
        **runtime_sources(topology, catalogue, algorithms, renderer),
        **check_sources(catalogue, renderer, runtime_values(topology, catalogue, algorithms)),
        **{name: _driver(name) for name in SESSION_DRIVERS},
    }
    objects = sorted(name for name in files if name.endswith(".c"))
    files["Makefile"] = renderer.render("libcoll/session.mk.j2", {"sources": objects})
    return files
