"""``stagegen record``: run a program, and keep which collectives it calls and when."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import click

from stagegen.cli._alone import this_process
from stagegen.errors import InputError
from stagegen.generate import Toolchain
from stagegen.generate.lock import HeldError, take
from stagegen.measure.launch.base import RECORDING
from stagegen.measure.launch.cache import cache_folder
from stagegen.measure.launch.command_lines import HANDED_OVER
from stagegen.measure.launch.preload import preload_list
from stagegen.recording.build import OVERHEAD, RECORDER, built
from stagegen.recording.container import RecordingError, is_recording, write_recording
from stagegen.recording.model import Recording
from stagegen.recording.read import PART, PARTS, WRITING, recordings_of

#: Seconds that processes which ended early get to write what they did.
PATIENCE = 20.0

#: MiB that a rank's memory may take.
LIMIT = 64

#: MiB for the benchmark, which makes more calls than programs do.
_MANY = 512


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default="program.recording",
    show_default=True,
    metavar="FILE",
    help="The recording.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1, max=1 << 20),
    default=LIMIT,
    show_default=True,
    metavar="MIB",
    help="Memory of each rank for what is recorded; calls beyond it are counted only.",
)
@click.option("--mpicc", metavar="PROGRAM", help="MPI compiler; default: the one beside mpiexec.")
@click.option("--overhead", is_flag=True, help="Measure what the recorder adds to a call, instead.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    output: Path, limit: int, mpicc: str | None, overhead: bool, command: tuple[str, ...]
) -> None:
    """Run COMMAND, such as `mpiexec -n 4 PROGRAM`, and record its collective calls.

    Write `--` before it. The exit status is the command's.
    """
    if not output.name:
        raise click.UsageError("--output is no file name")
    if not command:
        example = "mpiexec -n 1" if overhead else "mpiexec -n 4 PROGRAM"
        raise click.UsageError(f"write the command behind `--`, such as -- {example}")
    toolchain = toolchain_of(command, mpicc)
    library = built(RECORDER, cache_folder(), toolchain)
    if overhead:
        command = (*command, str(built(OVERHEAD, cache_folder(), toolchain)))
        limit = _MANY
    with _alone(output):
        parts = _fresh_folder(output)
        status = _run(command, _variables(output, library, limit, toolchain))
        are_written = _wait_for(parts)
        if not overhead:
            _keep(output, parts, toolchain, are_written=are_written)
        if are_written:
            shutil.rmtree(parts, ignore_errors=True)
    sys.exit(status)


@contextmanager
def _alone(output: Path) -> Iterator[None]:
    """Keep other recordings to this file out: they would take each other's parts.

    Raises:
        RecordingError: another one is running, or the lock cannot be made.
    """
    path = output.with_name(f"{output.name}{PARTS}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = take(path, this_process(), wait=False)
    except HeldError as error:
        problem = f"{output}: {error.strerror} records to this file"
        raise RecordingError(f"{problem}; wait for it, or choose another --output") from error
    except OSError as error:
        raise RecordingError(f"cannot write {path}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def toolchain_of(command: Sequence[str], mpicc: str | None) -> Toolchain:
    """Return the toolchain of a command's MPI library: with the compiler beside its `mpiexec`.

    Raises:
        GenerateError: there is no compiler.
    """
    if mpicc is None and not os.environ.get("MPICC"):
        mpicc = next(_beside(command[0]), None)
    return Toolchain.find(mpicc)


def _beside(program: str) -> Iterator[str]:
    """Yield the compilers that may belong to `mpiexec`, `mpirun`, `mpiexec.openmpi`, …."""
    found = shutil.which(program)
    name, _, suffix = Path(program).name.partition(".")
    if found is None or name not in ("mpiexec", "mpirun"):
        return
    suffixes = [".mpich" if suffix == "hydra" else f".{suffix}"] if suffix else []
    for candidate in (Path(found).with_name(f"mpicc{end}") for end in (*suffixes, "")):
        if candidate.exists():
            yield str(candidate)


def _fresh_folder(output: Path) -> Path:
    """Return the folder for the parts of the ranks, empty.

    Raises:
        RecordingError: it cannot be made.
    """
    folder = output.with_name(output.name + PARTS)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for pattern in (f"*{PART}", f"*{WRITING}"):
            for path in folder.glob(pattern):
                path.unlink()
    except OSError as error:
        raise RecordingError(f"cannot write {folder}: {error.strerror}") from error
    return folder


def _variables(output: Path, library: Path, limit: int, toolchain: Toolchain) -> dict[str, str]:
    own = {
        RECORDING: str(output.absolute()),
        f"{RECORDING}_LIMIT": str(limit),
        "LD_PRELOAD": preload_list([library], os.environ.get("LD_PRELOAD", "")),
    }
    if toolchain.flavour == "openmpi":  # its mpiexec hands over only what it is told to
        own[HANDED_OVER] = ";".join(filter(None, [os.environ.get(HANDED_OVER, ""), *own]))
    return {**os.environ, **own}


def _run(command: Sequence[str], variables: dict[str, str]) -> int:
    """Run the command to its end; signals that ask this process to end are handed to it."""
    try:
        process = subprocess.Popen(command, env=variables)
    except OSError as error:
        raise InputError(f"cannot start {command[0]}: {error.strerror}") from error
    with _handing_on(process):
        status = process.wait()
    return status if status >= 0 else 128 - status


@contextmanager
def _handing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Hand SIGTERM and SIGHUP on; SIGINT of a terminal reaches the command without that."""

    def hand_on(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    def leave(_number: int, _frame: FrameType | None) -> None:
        pass

    handlers = {signal.SIGTERM: hand_on, signal.SIGHUP: hand_on, signal.SIGINT: leave}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_for(parts: Path, patience: float = PATIENCE) -> bool:
    """Wait until processes that ended without MPI_Finalize have been written.

    Returns:
        Whether all have; else no file grew for so many seconds.
    """
    before: dict[str, int] = {}
    deadline = time.monotonic() + patience
    while sizes := _sizes(parts):
        if sizes != before:
            before, deadline = sizes, time.monotonic() + patience
        if time.monotonic() >= deadline:
            click.echo(
                f"{parts} stays: not all that was recorded is written; processes that still write: "
                f"{len(sizes)}; the commands for recordings read that folder, too",
                err=True,
            )
            return False
        time.sleep(0.02)
    return True


def _sizes(parts: Path) -> dict[str, int]:
    """Return the bytes of each file that is being written; one that is renamed may be missing."""
    found = {}
    for path in parts.glob(f"*{WRITING}"):
        with suppress(FileNotFoundError):
            found[path.name] = path.stat().st_size
    return found


def _keep(output: Path, parts: Path, toolchain: Toolchain, *, are_written: bool) -> None:
    """Write a recording for each `MPI_COMM_WORLD`: FILE, FILE.2, …; remove those beyond."""
    if not any(parts.glob(f"*{PART}")):
        if not are_written:
            raise RecordingError("nothing is recorded yet: no process has written its part")
        shutil.rmtree(parts, ignore_errors=True)
        raise RecordingError(
            "nothing was recorded: the program did not call MPI_Init, or uses another MPI library "
            f"than that of {toolchain.mpicc} (see --mpicc)"
        )
    number = 0
    for number, recording in enumerate(recordings_of(parts), start=1):
        path = _path_of(output, number)
        write_recording(path, recording)
        click.echo(f"{path}: {_summary(recording)}", err=True)
    while (path := _path_of(output, number := number + 1)).is_file() and is_recording(path):
        path.unlink()  # of an earlier run


def _path_of(output: Path, number: int) -> Path:
    """Return the file of the number-th `MPI_COMM_WORLD`, from 1."""
    return output if number == 1 else output.with_name(f"{output.name}.{number}")


def _summary(recording: Recording) -> str:
    calls = sum(len(rank.events) for rank in recording.ranks)
    facts = [f"{calls} calls of {len(recording.ranks)} ranks"]
    if recording.missing:
        facts.append(f"nothing of rank {', '.join(map(str, recording.missing))}")
    if not recording.finished:
        facts.append("the program did not come to MPI_Finalize on all ranks")
    if recording.dropped:
        facts.append(
            f"{recording.dropped} calls left out for lack of room: see --limit, or there were more "
            "communicators than a rank has places for"
        )
    return "; ".join(facts)
