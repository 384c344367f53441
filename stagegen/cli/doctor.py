"""``stagegen doctor``: what is wrong with a cluster, before a night is spent on measuring it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from stagegen.cli._options import (
    columns,
    format_option,
    launcher_option,
    mpicc_option,
    print_json,
    topology_option,
)
from stagegen.cli._parts import register_launchers
from stagegen.errors import GenerateError
from stagegen.generate import FLAVOURS, Toolchain
from stagegen.measure.doctor.judge import FAIL, OK, Case, Finding, judge
from stagegen.measure.doctor.visit import visit
from stagegen.measure.launch.base import Launcher
from stagegen.measure.launch.registry import choose_launcher, with_mpi_of
from stagegen.topology import Topology, load_topology


@click.command()
@topology_option
@launcher_option
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder that the hosts must share; default: generated/NAME, as in tune.",
)
@mpicc_option
@format_option
def command(
    topology_file: str,
    launcher: str | None,
    output: Path | None,
    mpicc: str | None,
    output_format: str,
) -> None:
    """Check launcher, hosts, names, folder, library, clocks and load before a long tuning.

    The exit status is 1 if something would make the tuning fail or its library useless.
    """
    topology = load_topology(topology_file)
    register_launchers(topology_file)
    chosen, why = choose_launcher(topology, launcher, file=topology_file)
    folder = output or Path("generated") / topology.name
    findings = list(_findings(chosen, why, topology, folder, mpicc))
    if output_format == "json":
        checks = [finding.to_json() for finding in findings]
        print_json({"topology": topology.name, "launcher": chosen.name, "checks": checks})
    else:
        for line in columns([_row(finding) for finding in findings]):
            click.echo(line)
    sys.exit(any(finding.status == FAIL for finding in findings))


def _findings(
    launcher: Launcher, why: str, topology: Topology, folder: Path, mpicc: str | None
) -> Iterator[Finding]:
    """Yield the findings, up to one that makes further checks impossible."""
    try:
        toolchain = Toolchain.find(mpicc, launcher.flavours)
        launcher = with_mpi_of(launcher, toolchain)
    except GenerateError as error:
        yield Finding("compiler", FAIL, str(error))
        return
    compiler = Finding("compiler", OK, f"{toolchain.mpicc}, {FLAVOURS[toolchain.flavour]}")
    if reason := launcher.why_unavailable(topology, toolchain.flavour):
        yield compiler
        yield Finding("launcher", FAIL, f"{launcher.name}: {reason}")
        return
    environment = launcher.environment(topology, toolchain.flavour)
    version = f"{FLAVOURS[environment.mpi]} {environment.mpi_version}"
    starts = Finding("launcher", OK, f"{why.removeprefix('launcher ')}; {version}")
    try:
        seen = visit(launcher, topology, toolchain, folder)
    except GenerateError as error:
        yield Finding("compiler", FAIL, str(error), "install the MPI library's headers")
        yield starts
        return
    except OSError as error:
        yield from (compiler, starts)
        problem = f"{error.filename or folder}: {error.strerror}"
        yield Finding("folder", FAIL, problem, "choose another one with --output")
        return
    yield from (compiler, starts)
    yield from judge(Case(topology, environment, launcher.emulates, seen))


def _row(finding: Finding) -> tuple[str, str, str]:
    text = finding.what if finding.advice is None else f"{finding.what}: {finding.advice}"
    return (finding.status, finding.check, " ".join(text.split()))
