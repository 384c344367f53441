"""Visits all hosts of a cluster through a launcher, as the jobs of a tuning would."""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from stagegen.data import DRIVERS
from stagegen.errors import GenerateError, StagegenError
from stagegen.generate import Toolchain
from stagegen.measure.doctor.facts import Clocks, Facts, read_clocks, read_facts
from stagegen.measure.launch.base import Job, Launcher, Streams
from stagegen.topology import Topology

#: Longest times in seconds for a job of all hosts, and for one of a single host.
ALL, SINGLE = 90.0, 45.0

#: So many hosts that were silent in the job of all are asked one by one, some at a time.
ASKED_AGAIN, AT_A_TIME = 24, 4


@dataclass(frozen=True)
class Visit:
    """What a visit brought home.

    Attributes:
        token: what the file in the shared folder says.
        facts: of each host that answered.
        silent: why each other host did not, as far as the launcher tells.
        clocks: what the MPI job of all ranks said; None if it failed or was not tried.
        failure: why the MPI job failed; empty if it did not, or was not tried.
    """

    token: str
    facts: Mapping[str, Facts]
    silent: Mapping[str, str] = field(default_factory=dict)
    clocks: Clocks | None = None
    failure: str = ""


def visit(launcher: Launcher, topology: Topology, toolchain: Toolchain, folder: Path) -> Visit:
    """Start jobs on all hosts, and gather what they say.

    Args:
        launcher: starts them.
        topology: the cluster.
        toolchain: builds the MPI program.
        folder: that all hosts should share; nothing is left in it.

    Raises:
        GenerateError: the MPI program does not build.
    """
    hosts = tuple(dict.fromkeys(topology.ranks))
    with _own_folder(folder) as own:
        program = _build(toolchain, own)
        token = secrets.token_hex(8)
        (own / "token").write_text(token, encoding="utf-8")
        script = (DRIVERS / "doctor.sh").read_text(encoding="utf-8")
        words = ("sh", "-c", script, "doctor", str(own / "token"), str(program))

        def ask(some: Sequence[str], patience: float) -> tuple[dict[str, Facts], str]:
            job = Job(words, mpi=toolchain.flavour, hosts=tuple(some))
            output, complaint = run_job(launcher, topology, job, patience)
            return _by_host(some, read_facts(output)), complaint

        facts, complaint = ask(hosts, ALL)
        silent = dict.fromkeys((host for host in hosts if host not in facts), complaint)
        if silent:
            again = [*silent][:ASKED_AGAIN]
            with ThreadPoolExecutor(AT_A_TIME) as pool:
                answers = pool.map(lambda host: ask((host,), SINGLE), again)
                for host, (alone, why) in zip(again, answers, strict=True):
                    facts.update(alone)
                    silent[host] = why
            silent = {host: why for host, why in silent.items() if host not in facts}
        clocks, failure = None, ""
        if not silent and all(one.loads == "yes" for one in facts.values()):
            job = Job((str(program),), mpi=toolchain.flavour)
            output, failure = run_job(launcher, topology, job, ALL)
            clocks = read_clocks(output)
            if clocks and len(clocks.offsets) != topology.rank_count:
                failure = _too_few(len(clocks.offsets), topology.rank_count)
                clocks = None
        return Visit(token, facts, silent, clocks, "" if clocks else failure)


def _too_few(found: int, wanted: int) -> str:
    alone = "each rank is alone in a job of its own" if found == 1 else f"it has {found} ranks"
    return f"{alone} instead of {wanted}: the launcher and the MPI library do not fit"


@contextmanager
def _own_folder(folder: Path) -> Iterator[Path]:
    """Make a folder in this one that all hosts may read; afterwards, this one is as it was."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as own:
            Path(own).chmod(0o755)
            yield Path(own).absolute()
    finally:
        for path in made:
            with suppress(OSError):  # another process uses it by now
                path.rmdir()


def _build(toolchain: Toolchain, folder: Path) -> Path:
    program = folder / "doctor"
    words = ["-O1", "-std=c11", "-D_GNU_SOURCE", "-o", str(program), str(DRIVERS / "doctor.c")]
    built = subprocess.run([toolchain.mpicc, *words], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise GenerateError(f"{toolchain.mpicc} does not build a program: {built.stderr.strip()}")
    return program


def run_job(launcher: Launcher, topology: Topology, job: Job, patience: float) -> tuple[str, str]:
    """Run a job; return its output, and what went wrong in one line."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        # Its input stays open: Hydra passes the end of input on, and dies of SIGPIPE if the host
        # has ended by then.
        streams = Streams(subprocess.PIPE, stdout, stderr)
        why = ""
        try:
            with launcher.start(replace(job, streams=streams), topology) as running:
                status = running.wait(patience)
                why = f"the job ended with status {status}" if status else ""
        except TimeoutError:
            why = f"no answer within {patience:.0f} s"
        except StagegenError as error:
            why = str(error)
        stdout.seek(0)
        stderr.seek(0)
        said = stderr.read().decode(errors="replace").split("\n")
        reason = next((line.strip() for line in said if line.strip(" -*=\t")), "")
        output = stdout.read().decode(errors="replace")
    return output, ": ".join(filter(None, (why, reason)))


def _by_host(hosts: Sequence[str], found: Sequence[Facts]) -> dict[str, Facts]:
    """Return the facts by host: rank r is on the r-th; without a rank, by its own name."""
    facts: dict[str, Facts] = {}
    for one in found:
        if 0 <= one.rank < len(hosts):
            facts[hosts[one.rank]] = one
        elif one.name in hosts:
            facts[one.name] = one
    return facts
