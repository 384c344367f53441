"""The log in ``stagegen tune``: compares its header with topology, catalogue and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from stagegen import __version__
from stagegen.catalogue import Catalogue
from stagegen.errors import InputError
from stagegen.measure.log import VERSION, read_log
from stagegen.measure.timing import IDLE
from stagegen.measure.validity import ROUTINES, changed, last_routines, still_valid
from stagegen.patterns import is_typical
from stagegen.topology import Topology
from stagegen.tune.communicators import find_communicators
from stagegen.tune.scope import Options, pattern_form

LOG = "measurements.jsonl"


def new_header(topology: Topology, catalogue: Catalogue, options: Options) -> dict[str, Any]:
    """Return the first record of a new log."""
    return {
        "kind": "log",
        "version": VERSION,
        "stagegen": __version__,
        "cluster": topology.name,
        "topology_hash": topology.hash,
        "catalogue_hash": catalogue.hash,
        **options.to_json(),
        ROUTINES: dict(catalogue.hashes),
    }


@dataclass(frozen=True)
class Tuning:
    """The valid part of a log.

    Attributes:
        options: those that it was begun with.
        catalogue: the algorithms to search among.
        records: its records of routines that have not changed since.
        restated: records to write before the log goes on: today's hashes, if they changed.
    """

    options: Options
    catalogue: Catalogue
    records: list[dict[str, Any]]
    restated: tuple[dict[str, Any], ...] = ()


def read_tuning(
    path: Path, topology: Topology, catalogue: Catalogue, wished: Options, resume: bool
) -> Tuning:
    """Return the valid part of a log.

    Without ``resume`` the log must be complete: its routines have not changed, and algorithms added
    since are no candidates. With ``resume``, the search will measure what is missing.

    Raises:
        InputError: it is no log, or one of another topology; its routines have changed.
        click.UsageError: options on the command line differ from those of the log.
    """
    header, records = read_log(path)
    if header.get("topology_hash") != topology.hash:
        raise InputError("this log was measured with another topology; measure again", path, 1)
    options = _options(header, topology, catalogue, path)
    catalogue = catalogue.selecting(options.selection)
    _require_as_logged(wished, options, path)
    hashes = last_routines(header, records)
    if hashes is None:
        if header.get("catalogue_hash") != catalogue.hash:
            message = "this log was measured with another catalogue of algorithms; measure again"
            raise InputError(message, path, 1)
        return Tuning(options, catalogue, records)
    valid = still_valid(header, records, catalogue.hashes)
    if resume:
        restated = {"kind": ROUTINES, ROUTINES: dict(catalogue.hashes)}
        is_same = hashes == catalogue.hashes
        return Tuning(options, catalogue, valid, () if is_same else (restated,))
    competing = {a.full_name for a in catalogue.algorithms if catalogue.selection.admits(a)}
    out = set(catalogue.hashes) - competing
    other = (n for n in changed(hashes, catalogue.hashes) if _is_of(options, n) and n not in out)
    if names := ", ".join(sorted(other)):
        message = f"these routines have changed since they were measured: {names}; use --resume"
        raise InputError(message, path, 1)
    return Tuning(options, catalogue.only(hashes), valid)


def scales_of(path: Path | None, scales: tuple[float, ...]) -> tuple[float, ...]:
    """Return the scales that a log was begun with, unless the command line has some.

    Routines for patterns are made for them.
    """
    source = click.get_current_context().get_parameter_source("scales")
    if path is None or source is ParameterSource.COMMANDLINE or not path.exists():
        return scales
    header, _ = read_log(path)
    try:
        return tuple(map(float, header.get("scales", scales)))
    except (TypeError, ValueError):  # whoever reads the whole header says so
        return scales


def _is_of(options: Options, routine: str) -> bool:
    """Whether a routine belongs to a collective that is tuned."""
    return routine.partition("/")[0] in options.collectives


def _options(
    header: Mapping[str, Any], topology: Topology, catalogue: Catalogue, path: Path
) -> Options:
    """Return the options of a log's header.

    Raises:
        InputError: they are damaged, or name unknown collectives or communicators.
    """
    try:
        options = Options.from_json(header)
        find_communicators(topology, options.communicators, options.patterns)
        options.selection.require_known(catalogue.algorithms)
    except InputError as error:
        raise InputError(error.message, path, 1) from error
    unknown = set(options.collectives) - set(catalogue.collectives)
    if unknown:
        problem = f"unknown collective {', '.join(sorted(unknown))}"
        raise InputError(f"{problem}; tune with the parts that it is in", path, 1)
    return options


def _require_as_logged(wished: Options, logged: Options, path: Path) -> None:
    """Refuse options on the command line that differ from the log's."""
    context = click.get_current_context()
    milliseconds = logged.timing.computation_ms
    computes = logged.timing.mechanism not in IDLE  # with another timing nothing is computed
    asked = _named(wished, context.params["computation"] if computes else milliseconds)
    for name, value in _named(logged, milliseconds).items():
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if name == "budget" and context.params[name].is_auto and logged.total is not None:
            continue  # how long that is follows from what the log was begun with
        if given and asked[name] != value:
            option = _OPTIONS.get(name, name.replace("_", "-"))
            raise click.UsageError(
                f"--{option} differs from what {path} was begun with; leave it out, or begin anew"
            )


#: Options whose parameters have other names.
_OPTIONS = {"traces": "for", "pattern_file": "patterns", "has_classes": "classes"}


def _named(options: Options, computation: float) -> dict[str, object]:
    return {
        "collectives": options.collectives,
        "communicators": options.communicators,
        "sizes": options.sizes,
        "timing": (
            options.timing.mechanism,
            options.timing.hash,
            # --seed is compared by itself.
            options.timing.arrivals and options.timing.arrivals.unseeded,
        ),
        "computation": computation,
        "metric": options.timing.metric,
        "iterations": options.timing.iterations,
        "budget": (options.budget, options.total),
        **options.protocol.to_json(),
        "algorithms": options.selection.algorithms,
        "without_algorithms": options.selection.without_algorithms,
        "without_topology": options.selection.without_topology,
        "traces": options.wanted,
        "scales": options.scales,
        "pattern_file": [pattern_form(one) for one in options.patterns if not is_typical(one)],
        "has_classes": [pattern_form(one) for one in options.patterns if is_typical(one)],
    }
