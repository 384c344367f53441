"""Which C files a build consists of: the runtime, the routines, and the drivers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from stagegen.data import DRIVERS
from stagegen.errors import GenerateError
from stagegen.generate.places import RankGroup, depth_first_places, groups_of, meeting_depths
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
    "formula.h",
    "gpu.c",
    "known.c",
    "parts.c",
    "peers.c",
    "reduction.c",
    "routines.c",
    "stamps.c",
    "types.c",
)
CHECK_DRIVERS = (
    "conformance.c",
    "conformance.h",
    "definition.h",
    "layouts.h",
    "numbers.h",
    "operands.h",
    "operations.h",
    "sides.h",
    "trials.h",
)
SESSION_DRIVERS = ("members.h", "request.h", "serve.h", "session.c", "timing.h")


def with_native(catalogue: Catalogue, chosen: Sequence[Algorithm]) -> tuple[Algorithm, ...]:
    """Return what a library holds, in catalogue order.

    That is the chosen algorithms, of every collective the native and the deterministic one, and
    what these use.
    """
    wanted = {algorithm.routine for algorithm in chosen}
    kept = [
        a
        for a in catalogue.algorithms
        if a.routine in wanted or a.name == NATIVE or a.deterministic
    ]
    wanted = {a.routine for own in kept for a in (own, *catalogue.used_by(own))}
    return tuple(a for a in catalogue.algorithms if a.routine in wanted)


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


def runnable(catalogue: Catalogue, topology: Topology) -> tuple[Algorithm, ...]:
    """Return the algorithms that all ranks of the topology, or of a group, can run together."""
    names = {
        algorithm.routine
        for group in groups_of(topology)
        for algorithm in applicable(catalogue, group.topology)
    }
    return tuple(algorithm for algorithm in catalogue.algorithms if algorithm.routine in names)


def _routines(
    topology: Topology, algorithms: Sequence[Algorithm]
) -> Iterator[tuple[Algorithm, RankGroup]]:
    """Yield the routines of a build: each algorithm, narrowed to the ranks it is made for.

    One with tables has a routine for all ranks, and for each group, that have its schedule.
    """
    whole, *groups = groups_of(topology)
    for algorithm in algorithms:
        own = [
            group
            for group in (whole, *groups)
            if algorithm.has_tables
            and algorithm.works_for(group.topology.rank_count)
            and scheduler_of(group.topology).exists(algorithm)
        ]
        for group in own or [whole]:
            yield scheduler_of(group.topology).narrowed(algorithm), group


def runtime_sources(
    topology: Topology, catalogue: Catalogue, algorithms: Sequence[Algorithm], renderer: Renderer
) -> dict[str, str]:
    """Return the C files, by name, of the runtime and of the given algorithms' routines.

    Raises:
        GenerateError: a template is wrong, or uses what this build lacks.
        ScheduleError: a schedule fails its proof.
    """
    _require_used(algorithms)
    values = runtime_values(topology, catalogue, algorithms)
    files = {name: renderer.render(f"libcoll/{name}.j2", values) for name in RUNTIME}
    for name in catalogue.collectives:
        files[f"call_{name}.c"] = renderer.render(f"{name}/_call.c.j2", values)
    for algorithm, group in _routines(topology, algorithms):
        files[f"{algorithm.routine}{group.suffix}.c"] = render_routine(algorithm, renderer, group)
    return files


def _require_used(algorithms: Sequence[Algorithm]) -> None:
    present = {f"{algorithm.collective}/{algorithm.name}" for algorithm in algorithms}
    for algorithm in algorithms:
        missing = [name for name in algorithm.uses if name not in present]
        if missing:
            raise GenerateError(f"{algorithm.routine} uses {', '.join(missing)}: not in this build")


def build_source(files: Mapping[str, str], renderer: Renderer) -> str:
    """Return ``build.c``, by which ranks know that they have the same of all other files."""
    digest = hashlib.sha256()
    for name, text in sorted(files.items()):
        digest.update(f"{name}\0{text}\0".encode())
    return renderer.render("libcoll/build.c.j2", {"build": digest.hexdigest()[:16]})


def runtime_values(
    topology: Topology, catalogue: Catalogue, algorithms: Sequence[Algorithm]
) -> Mapping[str, Any]:
    """Return what the templates of the runtime are rendered with."""
    host_index = {host.name: index for index, host in enumerate(topology.hosts)}
    groups = groups_of(topology)
    parameters = catalogue.parameters
    routines = enumerate(_routines(topology, algorithms))
    return {
        "topology": topology,
        "collectives": catalogue.collectives,
        "parameters": parameters,
        "parameter_names": ", ".join([*(f'"{p.name}"' for p in parameters), "NULL"]),
        "parameter_fields": ", ".join(f"&parameters->{p.name}" for p in parameters),
        "routines": [describe(algorithm, group, index) for index, (algorithm, group) in routines],
        "groups": groups,
        "place_of_host": numbers(depth_first_places(topology)),
        "depth_before_place": numbers(meeting_depths(topology)),
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
    topology: Topology,
    catalogue: Catalogue,
    renderer: Renderer,
    collectives: Sequence[str] | None = None,
) -> dict[str, str]:
    """Return all files of the measuring session: its drivers, and all routines that can run.

    Args:
        topology: the cluster.
        catalogue: all algorithms.
        renderer: of the templates.
        collectives: those to be measured, all if None; the others are there as far as these use
            them.
    """
    wanted = catalogue.collectives if collectives is None else collectives
    can = runnable(catalogue, topology)
    kept = with_native(catalogue, [a for a in can if a.collective in wanted])
    algorithms = tuple(a for a in can if a in kept)
    files = {
        **runtime_sources(topology, catalogue, algorithms, renderer),
        **check_sources(catalogue, renderer, runtime_values(topology, catalogue, algorithms)),
        **{name: _driver(name) for name in SESSION_DRIVERS},
    }
    files["build.c"] = build_source(files, renderer)
    objects = sorted(name for name in files if name.endswith(".c"))
    files["Makefile"] = renderer.render("libcoll/session.mk.j2", {"sources": objects})
    return files
