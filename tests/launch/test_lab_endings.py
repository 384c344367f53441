"""However a lab ends, nothing of it is left: no process, no device, no namespace, no file."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from stagegen.measure.launch.lab.capacity import VARIABLE
from stagegen.measure.launch.mpi import find_mpi
from stagegen.topology import topology_yaml

pytestmark = [pytest.mark.alone, pytest.mark.lab, pytest.mark.mpi]

REPOSITORY = Path(__file__).parents[2]
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
PATIENCE = 20.0  # seconds


def processes(marker: str) -> list[str]:
    """Return the processes with a marker in their command lines, wherever they are."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if marker in words:
            found.append(words)
    return found


def wait_until(condition) -> bool:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def outside() -> set[str]:
    """Return what a lab could leave behind outside of itself."""
    patterns = {
        "/sys/class/net": ("*",),
        "/run/netns": ("*",),
        "/dev/shm": ("mpich*", "*ucx*"),
        tempfile.gettempdir(): ("stagegen-lab*", "ompi.*", "prte.*"),
    }
    return {
        str(found)
        for place, names in patterns.items()
        for name in names
        for found in Path(place).glob(name)
    }


@pytest.fixture
def lab_run(run, cluster, tmp_path):
    """Start `stagegen lab run` on a program whose processes carry a marker."""
    cluster()
    marker = f"marker-{uuid.uuid4().hex}"
    started = []

    def begin(script: str, *ignored: signal.Signals) -> tuple[subprocess.Popen[bytes], str]:
        """Start it, with these signals ignored and no others, whatever this process ignores."""

        def prepare():
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

        command = [sys.executable, "-m", "stagegen", "lab", "run"]
        command += ["--topology", str(tmp_path / "cluster.yaml"), "--"]
        command += ["sh", "-c", script, marker]
        quiet = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # Only code between fork and exec can ignore a signal for the child alone.
        started.append(
            subprocess.Popen(command, cwd=REPOSITORY, preexec_fn=prepare, **quiet)  # noqa: PLW1509
        )
        return started[-1], marker

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("status", [0, 3])
def test_nothing_is_left_after_success_and_failure(lab_run, status):
    before = outside()
    process, marker = lab_run(f"exit {status}")
    assert process.wait(PATIENCE) == status
    assert wait_until(lambda: not processes(marker))
    assert outside() == before


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGHUP, -signal.SIGHUP),
        (signal.SIGINT, 130),
        (signal.SIGTERM, -signal.SIGTERM),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_nothing_is_left_after_a_signal(lab_run, number, status):
    before = outside()
    process, marker = lab_run("trap '' INT TERM; sleep 1000; sleep 1000")
    ranks = 4
    assert wait_until(lambda: len(processes(f"1000 {marker}")) >= ranks)
    process.send_signal(number)
    assert process.wait(PATIENCE) == status
    assert wait_until(lambda: not processes(marker))
    assert outside() == before


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_job_outlives_a_signal_that_was_ignored_at_its_start(lab_run, number):
    """Under ``nohup``, or in the background of a script, a job outlives its terminal."""
    process, marker = lab_run("sleep 1000; sleep 1000", number)
    assert wait_until(lambda: len(processes(f"1000 {marker}")) >= 1)
    process.send_signal(number)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    assert processes(marker)
    process.terminate()
    assert process.wait(PATIENCE) == -signal.SIGTERM
    assert wait_until(lambda: not processes(marker))


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_with_closed_streams_the_status_is_the_programs(cluster, tmp_path, closed):
    cluster()
    words = [sys.executable, "-m", "stagegen", "lab", "run", "--topology"]
    words += [str(tmp_path / "cluster.yaml"), "--", "sh", "-c", "exit 3"]
    script = ["sh", "-c", f'exec "$@" {closed}', "sh", *words]
    result = subprocess.run(
        script, cwd=REPOSITORY, stderr=subprocess.DEVNULL, check=False, timeout=60
    )
    assert result.returncode == 3


def test_nothing_is_left_after_an_exception(start):
    marker = f"marker-{uuid.uuid4().hex}"

    def fail():
        with start("sh", "-c", "sleep 1000; :", marker):
            assert wait_until(lambda: processes(marker))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not processes(marker)


def nobody(python: str) -> list[str]:
    """Return the words that run a Python as a user without any rights."""
    site = [path for path in sys.path if path.endswith("site-packages")]
    variables = {
        "HOME": "/nonexistent",
        "PATH": os.environ["PATH"],
        "PYTHONPATH": ":".join([str(REPOSITORY), *site]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "STAGEGEN_MPIEXEC": str(find_mpi().mpiexec),
        VARIABLE: "1",
    }
    words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env", "-i"]
    return [*words, *(f"{name}={value}" for name, value in variables.items()), python]


def test_an_unprivileged_user_has_a_lab_too(run, cluster):
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become somebody else; the other tests ran unprivileged")
    for python in (sys.executable, "/usr/bin/python3"):
        words = nobody(python)
        check = [*words, "-m", "stagegen", "lab", "check"]
        answer = subprocess.run(check, cwd="/", capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            break
    else:
        pytest.skip(f"not as an unprivileged user: {answer.stderr.strip().splitlines()[-1:]}")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        Path(file.name).chmod(0o644)
        file.write(topology_yaml(cluster()))
        file.flush()
        command = [*words, "-m", "stagegen", "lab", "run", "--topology", file.name, "--"]
        command += ["sh", "-c", 'hostname; [ "$PMI_RANK" != 1 ] || exit 5']
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert sorted(done.stdout.split()) == ["n0", "n1", "n2", "n3"]
    assert done.returncode == 5
