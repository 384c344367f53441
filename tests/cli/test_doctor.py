"""``stagegen doctor``: healthy clusters, and clusters in which something was broken on purpose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stagegen.measure.launch.lab.capacity import VARIABLE
from stagegen.measure.launch.lab.process import why_no_lab

pytestmark = pytest.mark.mpi

REPOSITORY = Path(__file__).parents[2]
TEXT = """\
name: patient
defaults: {bandwidth: 10Mbit, latency: 50us}
switches:
  s0: {hosts: [n0, n1]}
  s1: {hosts: [n2]}
links:
  - {ends: [s0, s1]}
hosts:
  n0: {slots: 2}
"""

#: Stands in for `python -m stagegen`: breaks something in the lab's host n1 before each job.
_FAULTY = """\
import sys
from dataclasses import replace
from stagegen.measure.launch.lab import launcher
whole = launcher.lab_command
def broken(mpi, job, topology):
    return ["sh", "-c", {fault!r} + '; exec "$@"', "sh", *whole(mpi, job, topology)]
launcher.lab_command = broken
from stagegen.cli import main
main()
"""
#: Shell commands of the lab's outer namespace: what is broken in n1, and alone there.
_RENAME = "nsenter --uts=/run/uts/n1 hostname stranger"
_REMOVE = "umount /run/netns/n1; rm /run/netns/n1"
_COVER = """\
mv /run/lab-shell /run/real-shell
cat > /run/lab-shell <<'END'
#!/bin/sh
case " $* " in
    *" n1 "*)
        exec unshare -m sh -c 'mount -t tmpfs x {folder}; exec /run/real-shell "$@"' sh "$@" ;;
esac
exec /run/real-shell "$@"
END
chmod 755 /run/lab-shell
:"""

#: A library that shifts the clock of the programs that it is preloaded into.
_SHIFTED = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    const int status = real(which, now);
    if (which == CLOCK_REALTIME)
        now->tv_sec += 7;
    return status;
}
"""

#: Disturbances of n1 alone: traffic to n2 from outside the job, a governor that saves power, and a
#: clock that is 7 s ahead.
_DISTURB = """\
nsenter --net=/run/netns/n1 {python} -c '
import socket, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 60
while time.monotonic() < end:
    sender.sendto(bytes(1000), ("n2", 9))
    time.sleep(0.005)
' &
mv /run/lab-rank /run/real-rank
cat > /run/lab-rank <<'END'
#!/bin/sh
case $(cat /proc/sys/kernel/hostname) in
    n1)
        exec unshare -m sh -c 'cpu=/sys/devices/system/cpu; mount -t tmpfs x $cpu;
            mkdir -p $cpu/cpu0/cpufreq; echo powersave > $cpu/cpu0/cpufreq/scaling_governor;
            export LAB_PRELOAD={library}; exec /run/real-rank "$@"' sh "$@" ;;
esac
exec /run/real-rank "$@"
END
chmod 755 /run/lab-rank
:"""


@pytest.fixture
def doctor(tmp_path):
    """Ask the doctor; return the exit status, and the checks by their names."""
    file = tmp_path / "t.yaml"
    file.write_text(TEXT)

    def ask(*words: str, program=("-m", "stagegen")) -> tuple[int, dict[str, dict[str, object]]]:
        command = [sys.executable, *program, "doctor", "--topology", str(file)]
        command += ["--output", str(tmp_path / "new" / "output"), "--format", "json", *words]
        environment = {**os.environ, VARIABLE: "1", "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=200, check=False, env=environment
        )
        assert done.stdout, done.stderr
        form = json.loads(done.stdout)
        assert not (tmp_path / "new").exists(), "it left something behind"
        return done.returncode, {check["check"]: check for check in form["checks"]}

    return ask


def status(checks, *but):
    return {name: check["status"] for name, check in checks.items() if name not in but}


def test_on_this_machine_nothing_fails_but_it_is_not_the_cluster(doctor):
    code, checks = doctor("--launcher", "local")
    assert code == 0, checks
    assert checks["hosts"]["what"] == "all 3 answer"
    assert checks["machines"]["status"] == checks["names"]["status"] == "warn"
    assert checks["ranks"]["what"].startswith("all 4 find each other; MPICH")


@pytest.mark.alone
@pytest.mark.lab
def test_a_lab_is_healthy(doctor):
    if reason := why_no_lab():
        pytest.skip(reason)
    code, checks = doctor("--launcher", "lab")
    assert code == 0
    assert set(status(checks, "governor", "traffic").values()) == {"ok"}, checks


def test_a_missing_compiler_and_a_missing_launcher_are_found(doctor, tmp_path):
    code, checks = doctor("--launcher", "local", "--mpicc", str(tmp_path / "mpicc"))
    assert code == 1
    assert status(checks) == {"compiler": "fail"}
    code, checks = doctor("--launcher", "hydra")
    assert code == 1
    assert status(checks) == {"compiler": "ok", "launcher": "fail"}
    assert "no address is known for n0, n1, n2" in checks["launcher"]["what"]


@pytest.mark.alone
@pytest.mark.lab
@pytest.mark.parametrize(
    ("fault", "failed", "untried", "words"),
    [
        (_RENAME, "names", set(), "n1 calls itself stranger"),
        (_REMOVE, "hosts", {"ranks", "clock"}, "no answer from n1"),
        # The program that tries the library is in the folder: nothing is known of the library.
        (_COVER, "folder", {"library", "ranks", "clock"}, "not there, or is another one, on n1"),
    ],
    ids=["wrong name", "no answer", "folder not shared"],
)
def test_what_is_broken_in_a_host_is_found(doctor, tmp_path, fault, failed, untried, words):
    if reason := why_no_lab():
        pytest.skip(reason)
    broken = tmp_path / "broken.py"
    broken.write_text(_FAULTY.format(fault=fault.replace("{folder}", str(tmp_path / "new"))))
    code, checks = doctor("--launcher", "lab", program=(str(broken),))
    found = [check for check in checks.values() if check["status"] == "fail"]
    assert (code, [check["check"] for check in found]) == (1, [failed]), checks
    assert words in found[0]["what"]
    assert found[0]["hosts"] == ["n1"]
    assert found[0]["advice"]
    asked_again = {name for name, check in checks.items() if "ask again" in str(check["advice"])}
    assert asked_again == untried


@pytest.mark.alone
@pytest.mark.lab
def test_what_disturbs_measurements_on_a_host_is_found(doctor, tmp_path):
    """Facts of a real host, not made up: its devices' counters, its files, its clock."""
    if reason := why_no_lab():
        pytest.skip(reason)
    source, library = tmp_path / "shifted.c", tmp_path / "shifted.so"
    source.write_text(_SHIFTED)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    fault = _DISTURB.replace("{python}", sys.executable).replace("{library}", str(library))
    broken = tmp_path / "broken.py"
    broken.write_text(_FAULTY.format(fault=fault))
    code, checks = doctor("--launcher", "lab", program=(str(broken),))
    assert code == 0, checks
    found = {name: checks[name] for name in ("traffic", "governor", "clock")}
    assert status(found) == dict.fromkeys(found, "warn"), found
    assert found["governor"]["hosts"] == found["clock"]["hosts"] == ["n1"]
    assert set(found["traffic"]["hosts"]) >= {"n1", "n2"}, "where it leaves, and where it arrives"
    assert "powersave" in found["governor"]["what"]
    assert "7" in found["clock"]["what"]
    assert all(check["advice"] for check in found.values())
