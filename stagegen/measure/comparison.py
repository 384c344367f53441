"""Native against tuned, paired in one job (drivers/bench.c with the library preloaded)."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stagegen.catalogue import load_catalogue
from stagegen.data import DRIVERS
from stagegen.errors import GenerateError, InputError, MeasurementError
from stagegen.generate import Renderer, Toolchain, run_make, write_files
from stagegen.generate.sources import CALLS, calls_header
from stagegen.measure.launch.base import Environment, Launcher
from stagegen.measure.live import as_seen, start_session
from stagegen.parts import templates_beside
from stagegen.topology import Topology

#: The sources of the benchmark driver.
SOURCES = ("bench.c", "environment.c")

#: Seconds that a comparison may take beyond a hundred times its lower bound.
PATIENCE = 120.0

#: A repetition has enough calls to last this many seconds, but at most CALLS_MOST.
REPETITION_SECONDS = 0.05
CALLS_MOST = 10


#: If a call takes longer than LONG_SECONDS, LONG_REPETITIONS are enough; if its bound is that long,
#: no untimed call comes before each repetition, as it would double the time.
LONG_SECONDS = 2.0
LONG_REPETITIONS = 5

#: If a call takes less than SHORT_SECONDS, it gets SHORT_FACTOR times as many repetitions: the
#: operating system disturbs it by more than a few percent.
SHORT_SECONDS = 5e-3
SHORT_FACTOR = 20

#: Looks at calls that may be short: the least time counts, as one look may meet a disturbance.
SCOUTS = 3


@dataclass(frozen=True)
class Comparison:
    """Native and tuned times of one collective and size.

    Attributes:
        collective: which one.
        size: in bytes, as for :class:`stagegen.schedule.Bound`.
        routine: the algorithm that served the tuned calls.
        native: seconds of each repetition, maximum over the ranks.
        tuned: the same for tuned calls, in turn with the native ones.
    """

    collective: str
    size: int
    routine: str
    native: tuple[float, ...]
    tuned: tuple[float, ...]


def repetitions_for(seconds: float, asked: int) -> int:
    """Return how many repetitions to make of calls that take ``seconds``."""
    if seconds < SHORT_SECONDS:
        return SHORT_FACTOR * asked
    return min(asked, LONG_REPETITIONS) if seconds > LONG_SECONDS else asked


def build_bench(library: Path, topology: Topology, toolchain: Toolchain) -> Path:
    """Compile the benchmark driver for a generated folder and return the program.

    The folder may have collectives of a user's own.

    Raises:
        GenerateError: it does not compile.
    """
    catalogue = load_catalogue(added=templates_beside(library))
    hashes = (topology.hash, catalogue.hash)
    renderer = Renderer("stagegen bench", topology.name, *hashes, catalogue.templates)
    folder = library / "build"
    write_files(folder, {CALLS: calls_header(catalogue, renderer)})
    program = folder / "bench"
    command = [toolchain.mpicc, "-O2", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    sources = [str(DRIVERS / name) for name in SOURCES]
    command += [f"-I{folder}", "-o", str(program), *sources, "-ldl"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise GenerateError(f"building the benchmark failed:\n{result.stderr}")
    return program


def library_of(folder: Path, toolchain: Toolchain, *, traced: bool = False) -> Path:
    """Return the built library of a generated folder, building it where needed.

    Args:
        folder: the generated folder.
        toolchain: builds it.
        traced: whether it is to keep events.

    Raises:
        InputError: it is not a generated folder.
        GenerateError: it does not build.
    """
    if not (folder / "decision.json").is_file():
        raise InputError(
            "not a generated folder: it has no decision.json; give one of `stagegen tune`", folder
        )
    run_make(folder, toolchain, variables=("TRACE=1",) if traced else ())
    return folder / ("libcoll-trace.so" if traced else "libcoll.so")


class Bench:
    """A running comparison session.

    Attributes:
        environment: where it runs, as its ranks see it.

    Args:
        launcher: starts it.
        topology: the cluster.
        library: the generated folder.
        toolchain: builds driver and library.
        variables: of the ranks' environment, beyond those of every session.
        traced: whether the library is to keep events.
    """

    def __init__(
        self,
        launcher: Launcher,
        topology: Topology,
        library: Path,
        toolchain: Toolchain,
        variables: Mapping[str, str] | None = None,
        traced: bool = False,
    ):
        preload = library_of(library, toolchain, traced=traced)
        folder = library / "build"
        program = build_bench(library, topology, toolchain)
        self._session, environment = start_session(
            launcher, topology, program, folder, (preload,), variables, toolchain.flavour
        )
        try:
            self.environment = self._greet(environment, preload)
        except BaseException:  # interrupts, too: nothing else knows of this job yet
            self._session.close()
            raise

    def _greet(self, environment: Environment, preload: Path) -> Environment:
        """Return the environment, as the ranks see it, of a job that has the library."""
        hello = self._session.hello()
        if not hello["preloaded"]:
            raise MeasurementError(
                f"{preload} could not be preloaded into the ranks; see that every host has the "
                "folder, and that the program is linked dynamically"
            )
        files = {name: (DRIVERS / name).read_text(encoding="utf-8") for name in SOURCES}
        machines = self._session.environment()
        return as_seen(environment, machines, hello["mpi"], files)

    def compare(self, collective: str, size: int, repetitions: int, bound: float) -> Comparison:
        """Time native and tuned in turn, with enough calls in each repetition.

        Args:
            collective: which one.
            size: in bytes.
            repetitions: of each; fewer if a call takes seconds, more if milliseconds.
            bound: lower bound in seconds, for the time-out.

        Raises:
            MeasurementError: the job failed.
        """
        timeout = PATIENCE + 100 * 2 * repetitions * CALLS_MOST * bound
        settle = bound <= LONG_SECONDS
        looks = 1 if bound > SHORT_SECONDS else SCOUTS
        scout = self._session.compare(collective, size, 1, looks, timeout, settle=settle)
        longest = max(min(scout["native"]), min(scout["tuned"]), 1e-9)
        calls = max(1, min(CALLS_MOST, math.ceil(REPETITION_SECONDS / longest)))
        times = repetitions_for(longest, repetitions)
        answer = self._session.compare(collective, size, calls, times, timeout, settle=settle)
        return Comparison(
            collective, size, answer["routine"], tuple(answer["native"]), tuple(answer["tuned"])
        )

    def call(self, collective: str, size: int, calls: int, bound: float) -> None:
        """Call a collective so often behind the MPI library's names, and as often natively.

        Raises:
            MeasurementError: the job failed.
        """
        timeout = PATIENCE + 100 * 2 * calls * bound
        self._session.compare(collective, size, calls, 1, timeout, settle=False)

    def close(self) -> None:
        """End the job."""
        self._session.close()
