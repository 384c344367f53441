"""The log's part of ``stagegen tune``: its header against the topology, catalogue and options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from stagegen import __version__
from stagegen.errors import InputError
from stagegen.measure.log import VERSION, read_log
from stagegen.repository import Catalogue
from stagegen.topology import Topology
from stagegen.tune.communicators import find_communicators
from stagegen.tune.options import Options

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
    }


def read_tuning(
    path: Path, topology: Topology, catalogue: Catalogue, wished: Options
) -> tuple[Options, list[dict[str, Any]]]:
    """Return the options that a log was begun with, and its records.

    Raises:
        InputError: it is no log, or one of another topology or of other algorithms.
        click.UsageError: the command line asks for something else than the log was begun with.
    """
    header, records = read_log(path)
    _require_same(header, topology, catalogue, path)
    try:
        options = Options.from_json(header)
        find_communicators(topology, options.communicators)
    except InputError as error:
        raise InputError(error.message, path, 1) from error
    unknown = set(options.collectives) - set(catalogue.collectives)
    if unknown:
        raise InputError(f"unknown collective {', '.join(sorted(unknown))}", path, 1)
    _require_as_logged(wished, options, path)
    return options, records


def _require_same(
    header: Mapping[str, Any], topology: Topology, catalogue: Catalogue, path: Path
) -> None:
    """Refuse a log of another topology or of other algorithms."""
    for what, key, value in (
        ("topology", "topology_hash", topology.hash),
        ("catalogue of algorithms", "catalogue_hash", catalogue.hash),
    ):
        if header.get(key) != value:
            raise InputError(f"this log was measured with another {what}; measure anew", path, 1)


def _require_as_logged(wished: Options, logged: Options, path: Path) -> None:
    """Refuse options that were given on the command line and are not those of the log."""
    context = click.get_current_context()
    counts = logged.timing.mechanism == "computation"  # with another timing nothing is computed
    asked = _named(wished, context.params["computation"] if counts else logged.timing.computation)
    for name, value in _named(logged, logged.timing.computation).items():
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and asked[name] != value:
            raise click.UsageError(
                f"--{name} differs from what {path} was begun with; leave it out, or measure anew"
            )


def _named(options: Options, computation: int) -> dict[str, object]:
    return {
        "collectives": options.collectives,
        "communicators": options.communicators,
        "sizes": options.sizes,
        "timing": options.timing.mechanism,
        "computation": computation,
        "budget": options.budget,
    }
