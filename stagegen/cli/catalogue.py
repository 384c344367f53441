"""``stagegen catalogue``: the algorithms of a selection, and which of them a cluster can run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import click

from stagegen.catalogue import Algorithm, Catalogue, groups_of, load_catalogue
from stagegen.catalogue.algorithm import Parameter
from stagegen.catalogue.applicable import why_not
from stagegen.catalogue.values import ValueRange
from stagegen.cli._options import (
    catalogue_selecting,
    collectives_of,
    columns,
    format_option,
    print_json,
    selection_options,
)
from stagegen.cli._parts import own_parts
from stagegen.topology import Topology, load_topology


@dataclass(frozen=True)
class _Row:
    """An algorithm that competes, and why it cannot run on the whole cluster or on a group."""

    algorithm: Algorithm
    file: str
    obstacles: Mapping[str, str | None] | None

    def to_json(self) -> dict[str, Any]:
        one = self.algorithm
        form = {
            "collective": one.collective,
            "algorithm": one.name,
            "summary": one.summary,
            "parameters": [_parameter(parameter) for parameter in one.parameters],
            "needs": one.needs,
            "uses": list(one.uses),
            "parts": [part.collective for part in one.parts],
            "template": one.template.as_posix(),
            "file": self.file,
            "hash": one.hash,
        }
        if self.obstacles is None:
            return form
        runs_on = [name for name, obstacle in self.obstacles.items() if obstacle is None]
        why = {name: obstacle for name, obstacle in self.obstacles.items() if obstacle}
        return {**form, "runs_on": runs_on, "why_not": why}

    def words(self) -> str:
        """Return where it runs, in a few words."""
        if self.obstacles is None:
            return self.algorithm.summary
        obstacles = set(self.obstacles.values())
        if obstacles == {None}:
            return "runs"
        told = (f"not on {name}: {why}" for name, why in self.obstacles.items() if why)
        return f"cannot run: {obstacles.pop()}" if len(obstacles) == 1 else "; ".join(told)


def _parameter(one: Parameter) -> dict[str, Any]:
    """Return a parameter's JSON form; a range of values has its ends and its step."""
    values = one.values
    form = (
        {"from": values.first, "to": values.until.text, "times": values.times}
        if isinstance(values, ValueRange)
        else list(values)
    )
    return {"name": one.name, "meaning": one.meaning, "values": form, "default": one.default}


@click.command()
@click.option(
    "--topology",
    "topology_file",
    metavar="FILE",
    help="The cluster's YAML file: also says which algorithms it can run, and why not.",
)
@click.option("--collectives", metavar="A,B", help="Collectives to list; default: as in tune.")
@selection_options
@format_option
def command(
    topology_file: str | None,
    collectives: str | None,
    algorithms: str | None,
    without_algorithms: str | None,
    without_topology: bool,
    output_format: str,
) -> None:
    """List the algorithms that compete in a tuning with these options."""
    topology = None if topology_file is None else load_topology(topology_file)
    catalogue = catalogue_selecting(
        load_catalogue(added=own_parts(topology_file, topology).roots),
        algorithms,
        without_algorithms,
        without_topology,
    )
    rows = list(_rows(catalogue, topology, collectives))
    if output_format == "json":
        print_json({"algorithms": [row.to_json() for row in rows]})
    else:
        for line in columns((row.algorithm.full_name, row.words()) for row in rows):
            click.echo(line)


def _rows(catalogue: Catalogue, topology: Topology | None, names: str | None) -> Iterator[_Row]:
    """Yield the algorithms that compete, by collective and name."""
    wanted = collectives_of(catalogue, names)
    for algorithm in catalogue.algorithms:
        if algorithm.collective in wanted and catalogue.selection.admits(algorithm):
            file = catalogue.templates.where(algorithm.template.as_posix())
            obstacles = None if topology is None else _obstacles(algorithm, topology)
            yield _Row(algorithm, file, obstacles)


def _obstacles(algorithm: Algorithm, topology: Topology) -> Mapping[str, str | None]:
    """Return why an algorithm cannot run, by the names of the cluster's groups of ranks."""
    return {one.name: why_not(algorithm, one.topology) for one in groups_of(topology)}
