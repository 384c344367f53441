"""``stagegen lab``: MPI programs in an emulated cluster on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stagegen.cli._options import topology_option
from stagegen.errors import InputError, LaunchError
from stagegen.generate import FLAVOURS
from stagegen.measure.launch.base import INHERIT, Job
from stagegen.measure.launch.lab.capacity import SHARE, Capacity, machine_capacity
from stagegen.measure.launch.lab.launcher import LabLauncher
from stagegen.measure.launch.lab.process import lab_delay, why_no_lab
from stagegen.measure.launch.mpi import find_mpi
from stagegen.topology import format_bandwidth, load_topology

_INTERRUPTED = 130  # 128 + SIGINT


@click.group()
def command() -> None:
    """Run MPI programs in the lab: an emulated cluster on this machine."""


@command.command(context_settings={"allow_interspersed_args": False})
@topology_option
@click.option(
    "--mpi",
    type=click.Choice(tuple(FLAVOURS)),
    default="mpich",
    show_default=True,
    help="The MPI library that PROGRAM was built with.",
)
@click.option(
    "--preload",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A library that every rank loads first, such as libcoll.so; may be repeated.",
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def run(topology_file: str, mpi: str, preload: tuple[Path, ...], program: tuple[str, ...]) -> None:
    """Run PROGRAM with one rank per slot; write `--` before it.

    The exit status is the program's; standard input goes to rank 0.
    """
    topology = load_topology(Path(topology_file))
    job = Job(program, preload=preload, mpi=mpi, streams=INHERIT)
    try:
        with LabLauncher().start(job, topology) as running:
            for note in running.environment.notes:
                click.echo(f"lab: {note}", err=True)
            status = running.wait()
    except KeyboardInterrupt:
        status = _INTERRUPTED
    sys.exit(status)


@command.command()
@click.option("--again", is_flag=True, help="Measure the machine's capacity again.")
def check(again: bool) -> None:
    """Say whether the lab works here, what is missing, and how much the machine can forward."""
    if reason := why_no_lab():
        raise LaunchError(f"the lab cannot run here: {reason}")
    click.echo("lab: works here")
    for flavour in FLAVOURS:
        click.echo(f"{flavour}: {_mpi(flavour)}")
    click.echo(f"latency: {lab_delay().means}")
    click.echo(f"capacity: {_capacity(machine_capacity(again))}")


def _mpi(flavour: str) -> str:
    try:
        found = find_mpi(flavour)
    except InputError as error:
        return str(error)
    return f"{found.version}, {found.mpiexec}"


def _capacity(capacity: Capacity) -> str:
    usable = SHARE * capacity.rate
    rate = format_bandwidth(round(usable / 1e6 / 32) * 1_000_000)
    return (
        f"{format_bandwidth(round(capacity.rate / 1e7) * 10_000_000)} times links; "
        f"for example 16 hosts on one switch at up to {rate} each"
    )
