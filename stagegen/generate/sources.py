"""The C files of a build: the runtime, the routines, and the drivers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, chain
from typing import Any

from stagegen.catalogue.source_hash import hash_of, tokens
from stagegen.data import DRIVERS
from stagegen.generate.build import Build
from stagegen.generate.depth_first import depth_first_places, meeting_depths
from stagegen.generate.render import Renderer
from stagegen.generate.routines import render_routine
from stagegen.generate.tables import numbers

#: Runtime that the library and the measuring session share.
RUNTIME = (
    "coll.h",
    "call.c",
    "cluster.c",
    "communicator.c",
    "communicator_cache.c",
    "data.c",
    "formula.h",
    "gpu.c",
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


def runtime_sources(build: Build, renderer: Renderer) -> dict[str, str]:
    """Return the C files, by name, of the runtime and of a build's routines.

    Raises:
        GenerateError: a template is wrong.
        ScheduleError: a schedule fails its proof.
    """
    values = runtime_values(build)
    files = {name: renderer.render(f"libcoll/{name}.j2", values) for name in RUNTIME}
    for name in build.catalogue.collectives:
        files[f"call_{name}.c"] = renderer.render(f"{name}/_call.c.j2", values)
    for routine in build.routines:
        text = render_routine(routine.described, renderer, routine.ranks)
        files[f"{routine.function}.c"] = text
    return files


def build_source(files: Mapping[str, str], renderer: Renderer) -> str:
    """Return ``build.c``, a hash of all other files, by which ranks know that they run the same."""
    compiled = ((name, hash_of(tokens(text))) for name, text in sorted(files.items()))
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
        "parameters": parameters,
        "parameter_names": ", ".join([*(f'"{p.name}"' for p in parameters), "NULL"]),
        "parameter_fields": ", ".join(f"&parameters->{p.name}" for p in parameters),
        "routines": build.routines,
        "groups": groups,
        "place_of_host": numbers(depth_first_places(topology)),
        "depth_before_place": numbers(meeting_depths(topology)),
        "first_position": numbers(accumulate((g.topology.rank_count for g in groups), initial=0)),
        "host_of_position": numbers(host_index[n] for g in groups for n in g.topology.ranks),
    }


def check_sources(build: Build, renderer: Renderer) -> dict[str, str]:
    """Return the files, by name, of the conformance check, with a case for each collective."""
    cases = [f"case_{name}.c" for name in build.catalogue.collectives]
    files = {name: _driver(name) for name in (*CHECK_DRIVERS, *cases)}
    return {**files, "cases.c": renderer.render("libcoll/cases.c.j2", runtime_values(build))}


def _driver(name: str) -> str:
    return (DRIVERS / name).read_text(encoding="utf-8")


def measuring_sources(build: Build, renderer: Renderer) -> dict[str, str]:
    """Return all files of the measuring session: its drivers, and a build's routines.

    Raises:
        GenerateError: a template is wrong.
        ScheduleError: a schedule fails its proof.
    """
    files = {
        **runtime_sources(build, renderer),
        **check_sources(build, renderer),
        **{name: _driver(name) for name in SESSION_DRIVERS},
    }
    files["build.c"] = build_source(files, renderer)
    objects = sorted(name for name in files if name.endswith(".c"))
    files["Makefile"] = renderer.render("libcoll/session.mk.j2", {"sources": objects})
    return files
