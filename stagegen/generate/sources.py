"""The C files of a build: the runtime, the routines, and the drivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from stagegen.catalogue import Catalogue
from stagegen.catalogue.algorithm import STEPS
from stagegen.catalogue.c_tokens import hash_of, hash_of_code
from stagegen.catalogue.source_hash import engines_included
from stagegen.catalogue.templates import SESSION_CLOCKS
from stagegen.data import DRIVERS, ENGINES
from stagegen.errors import GenerateError
from stagegen.generate.build import Build
from stagegen.generate.calls import CallInC
from stagegen.generate.depth_first import depth_first_places, meeting_depths
from stagegen.generate.features import with_features
from stagegen.generate.render import Renderer
from stagegen.generate.routines import routine_files
from stagegen.generate.tables import numbers
from stagegen.generate.timings import Mechanism, timing_sources
from stagegen.topology import Topology

#: Runtime that the library and the measuring session share.
RUNTIME = (
    "coll.h",
    "catalogue.h",
    "applicable.c",
    "call.c",
    "cluster.c",
    "communicator.c",
    "communicator_cache.c",
    "data.c",
    "many.c",
    "formula.h",
    "formulas.c",
    "gpu.c",
    "hosts.c",
    "parts.c",
    "peers.c",
    "persistent.h",
    "reduction.c",
    "routines.c",
    "stamps.c",
    "types.c",
)
CHECK_DRIVERS = (
    "conformance.c",
    "conformance.h",
    "definition.h",
    "expected.h",
    "layouts.h",
    "numbers.h",
    "operands.h",
    "operations.h",
    "sides.h",
    "trials.h",
)
#: The header that names every collective.
CALLS = "calls.h"
SESSION_DRIVERS = (
    "arrivals.c",
    "arrivals.h",
    "block_table.h",
    "calibration.c",
    "calibration.h",
    "compute.c",
    "environment.c",
    "environment.h",
    "json_text.h",
    "members.h",
    "message_time.c",
    "message_time.h",
    "metric.h",
    "request.h",
    "serve.h",
    "session.c",
    "shared_clock.c",
    "shared_clock.h",
    "timing.h",
)


def runtime_sources(
    build: Build, renderer: Renderer, features: Set[str] = frozenset()
) -> dict[str, str]:
    """Return the C files, by name, of the runtime, of a build's routines and of their engines.

    Args:
        build: the routines.
        renderer: of the templates.
        features: of :data:`stagegen.generate.features.FEATURES`, those that the runtime has.

    Raises:
        GenerateError: a template is wrong.
        ScheduleError: a schedule fails its proof.
    """
    values = runtime_values(build)
    files = {
        name: with_features(renderer.made(f"libcoll/{name}", values), features, name)
        for name in RUNTIME
    }
    for one in build.catalogue.described:
        files[f"view_{one.name}.c"] = renderer.unrendered(f"{one.name}/view.c")
    for routine in build.routines:
        described = build.catalogue.collective(routine.collective)
        files |= routine_files(routine.described, renderer, routine.ranks, described)
    return {**files, **_engines(files, renderer)}


def _engines(files: Mapping[str, str], renderer: Renderer) -> dict[str, str]:
    """Return the engines that the files include, and those that these include in turn.

    Raises:
        GenerateError: one of them has the name of a file.
    """
    found: dict[str, str] = {}
    waiting = list(files.values())
    while waiting:
        for name in engines_included(waiting.pop()):
            for file in (f"{name}.h", f"{name}.c"):
                if file not in found and renderer.has(f"{ENGINES}/{file}"):
                    if file in files:
                        problem = f"the engine {file} has the name of another C file"
                        raise GenerateError(f"{problem}; rename the engine")
                    found[file] = renderer.unrendered(f"{ENGINES}/{file}")
                    waiting.append(found[file])
    return found


def build_source(files: Mapping[str, str], renderer: Renderer) -> str:
    """Return ``build.c``, a hash of all other files, by which ranks know that they run the same."""
    compiled = ((name, hash_of_code(text)) for name, text in sorted(files.items()))
    digest = hash_of(chain.from_iterable(compiled))
    return renderer.render("libcoll/build.c.j2", {"build": digest[:16]})


def runtime_values(build: Build) -> Mapping[str, Any]:
    """Return the values for rendering the templates of the runtime."""
    topology, groups = build.topology, build.groups
    host_index = {host.name: index for index, host in enumerate(topology.hosts)}
    parameters = build.catalogue.parameters
    return {
        "topology": topology,
        "collectives": build.catalogue.collectives,
        "calls": calls_of(build.catalogue),
        "parameters": parameters,
        "persistent_steps": tuple(STEPS.values()),
        "parameter_names": ", ".join([*(f'"{p.name}"' for p in parameters), "NULL"]),
        "parameter_fields": ", ".join(f"&parameters->{p.name}" for p in parameters),
        "routines": build.routines,
        "groups": groups,
        "place_of_host": numbers(depth_first_places(topology)),
        "depth_before_place": numbers(meeting_depths(topology)),
        "switch_of_place": numbers(_by_place(topology, topology.switch_numbers)),
        "site_of_place": numbers(_by_place(topology, topology.site_numbers)),
        "first_position": numbers(accumulate((g.topology.rank_count for g in groups), initial=0)),
        "host_of_position": numbers(host_index[n] for g in groups for n in g.topology.ranks),
    }


def _by_place(topology: Topology, of_host: Mapping[str, int]) -> list[int]:
    """Return a number of each host, in the depth-first order of all hosts."""
    places = zip(depth_first_places(topology), topology.hosts, strict=True)
    return [of_host[host.name] for _, host in sorted(places, key=lambda pair: pair[0])]


def check_sources(build: Build, renderer: Renderer) -> dict[str, str]:
    """Return the files, by name, of the conformance check."""
    files = {name: _driver(name) for name in CHECK_DRIVERS}
    return {**files, CALLS: calls_header(build.catalogue, renderer)}


def calls_header(catalogue: Catalogue, renderer: Renderer) -> str:
    """Return ``calls.h``: every collective behind one signature, for programs that call them."""
    return renderer.render(f"libcoll/{CALLS}.j2", {"calls": calls_of(catalogue)})


def calls_of(catalogue: Catalogue) -> list[CallInC]:
    """Return the calls of all collectives, for templates."""
    return [CallInC(one) for one in catalogue.described]


def _driver(name: str) -> str:
    return (DRIVERS / name).read_text(encoding="utf-8")


def measuring_sources(
    build: Build, renderer: Renderer, timings: Sequence[Mechanism] = ()
) -> dict[str, str]:
    """Return all files of the measuring session: its drivers, and a build's routines.

    Args:
        build: the routines.
        renderer: of the templates.
        timings: mechanisms besides those of the drivers.

    Raises:
        GenerateError: a template is wrong.
        ScheduleError: a schedule fails its proof.
    """
    files = {
        **runtime_sources(build, renderer),
        **check_sources(build, renderer),
        **{name: _driver(name) for name in SESSION_DRIVERS},
        **{Path(path).name: renderer.unrendered(path) for path in SESSION_CLOCKS},
        **timing_sources(renderer, timings),
    }
    files["build.c"] = build_source(files, renderer)
    objects = sorted(name for name in files if name.endswith(".c"))
    files["Makefile"] = renderer.render("libcoll/session.mk.j2", {"sources": objects})
    return files
