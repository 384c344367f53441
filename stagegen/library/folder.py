"""All files of a generated folder, from the topology, the decision table and the log."""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from stagegen import __version__
from stagegen.adaptive.known import KNOWN, Known
from stagegen.catalogue import Catalogue, runnable
from stagegen.catalogue.collective import sizes_in_words
from stagegen.data import DRIVERS
from stagegen.generate import Build, Renderer, library_build, runtime_sources, write_files
from stagegen.generate.features import ADAPTIVE, PATTERNS, with_features
from stagegen.generate.fortran import fortran_function, with_site
from stagegen.generate.links import link_tables
from stagegen.generate.sources import build_source, calls_of, check_sources, runtime_values
from stagegen.generate.tables import numbers
from stagegen.library.adaptive import FORTRAN_SITE, adapting, adaptive_sources
from stagegen.library.manifest import MANIFEST, routines_in
from stagegen.library.rules import c_patterns, c_tables, chosen_algorithms
from stagegen.measure.validity import ROUTINES
from stagegen.parts.find import parts_file
from stagegen.topology import Topology, topology_yaml
from stagegen.tune import DecisionTable

#: How to make a tuned folder again from its own files; quoted in them.
COMMAND = "stagegen tune --topology topology.yaml --from-log measurements.jsonl"

#: Sources of the library besides the runtime that it shares with the measuring session.
_DISPATCHER = (
    "arguments.c",
    "dispatch.h",
    "dispatch.c",
    "handles.h",
    "histogram.c",
    "lifetime.c",
    "native_cache.c",
    "links.c",
    "operations.c",
    "pattern.c",
    "pattern.h",
    "persistent.c",
    "plan_exchange.c",
    "plan_reduced.c",
    "plan_rooted.c",
    "plan_run.c",
    "plan_steps.c",
    "plans.c",
    "plans.h",
    "rules.c",
    "scratch.c",
    "settings.c",
    "trace.c",
)

#: Those of a library that recognises patterns.
_OF_PATTERNS = ("agreement.c", "classes.c", "patterns.c", "recognition.c")

#: Sources of ``make check`` and ``make overhead``, besides the check of the measuring session.
_CHECK_DRIVERS = (
    "check.c",
    "lab_idle.c",
    "leaks.txt",
    "message.h",
    "overhead.c",
    "synchronous.h",
    "variants.h",
)

#: What a library with ``TRACE=1`` has besides; in a folder of its own.
_EVENTS = ("clocks.c", "clocks.h", "events.c", "events.h", "messages.c", "messages.h")

#: Those that make a library or a program of their own, apart from the check program.
_APART = frozenset({"check/lab_idle.c", "check/overhead.c"})


def library_files(
    topology: Topology,
    catalogue: Catalogue,
    decision: DecisionTable,
    adaptive: Known | None = None,
    command: str | None = None,
    everything: Build | None = None,
) -> dict[str, str]:
    """Return the generated folder's files, by path, without log and report.

    Args:
        topology: the cluster.
        catalogue: the algorithms.
        decision: which of them serve.
        adaptive: for a library whose calls can adapt, what tuning measured; else None.
        command: that makes the folder; by default, that of tuning.
        everything: the build of all that can run, if the caller has it already.

    Raises:
        GenerateError: a template is wrong.
        ScheduleError: a schedule fails its proof.
        InputError: the decision names an algorithm that the catalogue lacks.
    """
    command = command or _of_tuning(adaptive)
    renderer = Renderer(command, topology.name, topology.hash, catalogue.hash, catalogue.templates)
    chosen = chosen_algorithms(decision, catalogue)
    features = frozenset[str]() if adaptive is None else frozenset({ADAPTIVE})
    if adaptive is not None:
        can = runnable(catalogue, topology) if everything is None else everything.runnable
        chosen = (*chosen, *adapting(catalogue, can))
    build = library_build(topology, catalogue, chosen, everything)
    links = link_tables(topology)
    groups = [group.name for group in build.groups]
    patterns = c_patterns(decision, build.routines, groups)
    features |= {PATTERNS} if patterns else frozenset()
    values = {
        **runtime_values(build),
        "parent_of_node": numbers(links.parents),
        "rate_of_node": numbers(links.rates),
        "tables": c_tables(decision, build.routines, groups),
        "representative": decision.representative,
        "patterns": patterns,
    }
    runtime = runtime_sources(build, renderer, features)
    files = {f"src/{name}": text for name, text in runtime.items()}
    for name in (*_DISPATCHER, *(_OF_PATTERNS if patterns else ())):
        made = renderer.made(f"libcoll/{name}", values)
        files[f"src/{name}"] = with_features(made, features, name)
    for call in calls_of(build.catalogue):
        made = renderer.render("libcoll/entry.c.j2", {"call": call})
        files[f"src/entry_{call.name}.c"] = with_features(made, features, "entry.c.j2")
        if call.plan is not None:
            files[f"src/init_{call.name}.c"] = renderer.render("libcoll/init.c.j2", {"call": call})
    if adaptive is not None:
        own = adaptive_sources(build, decision, adaptive, renderer)
        files |= {f"src/{name}": text for name, text in own.items()}
    fortran = [fortran_function(one) for one in catalogue.described]
    if adaptive is not None:
        fortran = [with_site(one, FORTRAN_SITE) for one in fortran]
    functions = {"functions": fortran, "starts": True, "adapts": adaptive is not None}
    files["src/fortran.c"] = renderer.render("libcoll/fortran.c.j2", functions)
    files["src/build.c"] = build_source(files, renderer)
    for name in _EVENTS:
        files[f"events/{name}"] = renderer.unrendered(f"events/{name}")
    for name in _CHECK_DRIVERS:
        files[f"check/{name}"] = (DRIVERS / name).read_text(encoding="utf-8")
    for name, text in check_sources(build, renderer).items():
        files[f"check/{name}"] = text
    files["check/variants.c"] = renderer.render("libcoll/variants.c.j2", values)
    about = {"about_choice": _about_choice(catalogue)}
    header = renderer.render("libcoll/libcoll.h.j2", about)
    files["include/libcoll.h"] = with_features(header, features, "libcoll.h.j2")
    files["libcoll.pc.in"] = renderer.verbatim("libcoll/libcoll.pc.in")
    sources = sorted(name for name in files if name.startswith("src/") and name.endswith(".c"))
    events = [f"events/{name}" for name in _EVENTS if name.endswith(".c")]
    makefile = {
        **values,
        "sources": sources,
        "checks": _check_objects(files),
        "events": events,
    }
    files["Makefile"] = renderer.render("libcoll/Makefile.j2", makefile)
    files |= parts_file(catalogue.templates.added)
    files["topology.yaml"] = topology_yaml(topology)
    files["decision.json"] = decision.to_text()
    if adaptive is not None:
        files[KNOWN] = replace(adaptive, selection=catalogue.selection).to_text()
    return files


def _of_tuning(adaptive: Known | None) -> str:
    """Return the command that makes a tuned folder."""
    return COMMAND if adaptive is None else f"{COMMAND} --adaptive"


def _about_choice(catalogue: Catalogue) -> str:
    """Return the comment of ``libcoll_choice`` in C."""
    text = (
        'Which algorithm serves a collective ("alltoall", ...) of so many bytes on a communicator: '
        f"bytes {sizes_in_words(catalogue.described)}. NULL for an unknown collective. Collective "
        "over the communicator at its first use."
    )
    lines = textwrap.fill(text, 100, initial_indent=" * ", subsequent_indent=" * ")
    return f"/*\n{lines}\n */"


def _check_objects(files: Mapping[str, str]) -> list[str]:
    """Return the C files of the check program."""
    return sorted(
        name
        for name in files
        if name.startswith("check/") and name.endswith(".c") and name not in _APART
    )


def write_library(
    folder: Path,
    topology: Topology,
    catalogue: Catalogue,
    decision: DecisionTable,
    extra: Mapping[str, str],
    adaptive: Known | None = None,
    command: str | None = None,
    everything: Build | None = None,
) -> None:
    """Write the generated folder; ``manifest.json`` comes last and lists the files.

    The Makefile is gone while files are replaced, so that a mixture of two versions is not built.

    Args:
        folder: the folder to write.
        topology: the cluster.
        catalogue: the algorithms.
        decision: which of them serve.
        extra: files that are not listed, since they depend on more than topology, catalogue
            and log: the report depends on the library that draws its plots.
        adaptive: for a library whose calls can adapt, what tuning measured; else None.
        command: that makes the folder; by default, that of tuning.
        everything: the build of all that can run, if the caller has it already.
    """
    command = command or _of_tuning(adaptive)
    files = library_files(topology, catalogue, decision, adaptive, command, everything)
    manifest = {
        "stagegen": __version__,
        "command": command,
        "cluster": topology.name,
        "topology_hash": topology.hash,
        "catalogue_hash": catalogue.hash,
        "representative": decision.representative,
        ROUTINES: routines_in(files, catalogue),
        "files": {name: _sha256(text) for name, text in sorted(files.items())},
    }
    makefile = folder / "Makefile"
    if not all(_holds(folder / name, text) for name, text in files.items()):
        makefile.unlink(missing_ok=True)
    _remove_stale(folder, set(files))
    write_files(folder, {n: t for n, t in {**files, **extra}.items() if n != makefile.name})
    write_files(folder, {makefile.name: files[makefile.name]})
    write_files(folder, {MANIFEST: json.dumps(manifest, indent=2) + "\n"})


def _holds(path: Path, text: str) -> bool:
    """Tell whether a file has this text."""
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _remove_stale(folder: Path, names: set[str]) -> None:
    """Remove files that an earlier manifest lists and this one will not; no others are ours."""
    try:
        earlier = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        stale = [folder / name for name in earlier if name not in names]
    except (OSError, ValueError, KeyError, TypeError):
        return  # there is none, or it is not ours
    for path in stale:
        if path.resolve().is_relative_to(folder.resolve()):
            path.unlink(missing_ok=True)
