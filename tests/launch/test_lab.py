"""Jobs in the lab: which rank runs where, what goes in and out, how they end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from stagegen.data import TOPOLOGIES
from stagegen.errors import LaunchError
from stagegen.measure.launch.base import PIPES, Streams
from stagegen.measure.launch.lab import process as lab_process
from stagegen.measure.launch.lab.init_process import IDLE_DRIVER, LATENCY_LIMIT, is_virtual
from stagegen.measure.launch.lab.network import minimal_plan
from stagegen.topology import topology_yaml

pytestmark = [pytest.mark.lab, pytest.mark.mpi]

WHERE = ("sh", "-c", 'echo "$PMI_RANK" "$(hostname)"')
SILENT = Streams(stdin=-3, stdout=-3, stderr=-3)
SHOUT = """
import os, sys
if os.environ["PMI_RANK"] == "0":
    for line in sys.stdin:
        print(line.upper(), end="", flush=True)
"""
ORDERS = {
    "block": "ranks: block\n",
    "cyclic": "ranks: cyclic\n",
    "list": "ranks: [n3, n0, n2, n1]\n",
    "slots": "hosts:\n  n1: {slots: 2}\n  n3: {slots: 3}\nranks: [n3, n1, n0, n3, n1, n3]\n",
}


@pytest.mark.parametrize("order", ORDERS)
def test_rank_r_runs_on_the_host_that_the_topology_says(run, cluster, order):
    text = TOPOLOGIES.joinpath("chain-4x4-cyclic.yaml").read_text()
    if order != "cyclic":
        text = topology_yaml(cluster()).replace("ranks: block\n", "") + ORDERS[order]
    status, lines = run(*WHERE, text=text)
    assert status == 0
    assert lines == sorted(f"{r} {host}" for r, host in enumerate(cluster(text).ranks))


def test_a_job_on_some_hosts_has_its_ranks_there(run):
    assert run(*WHERE, hosts=("n2", "n0")) == (0, ["0 n2", "1 n0"])


def test_names_resolve_and_the_network_is_the_only_one(run):
    program = "import socket as s; print(s.gethostbyname('n2'), [n for _, n in s.if_nameindex()])"
    status, lines = run(sys.executable, "-c", program, hosts=("n0",))
    assert (status, lines) == (0, ["10.77.0.3 ['lo', 'eth0']"])


def test_no_pair_of_many_hosts_needs_an_entry_of_arps_table(run):
    """All namespaces share the table, which has room for 1024; permanent entries do not count."""
    text = (
        "name: many\ndefaults: {bandwidth: 1Gbit, latency: 1us}\n"
        'switches: {s0: {hosts: "n[0-47]"}}\n'
    )
    known = "ip neigh show nud permanent | wc -l; ip neigh show nud all | wc -l"
    status, lines = run("sh", "-c", known, text=text, hosts=("n0", "n47"))
    assert (status, lines) == (0, ["49"] * 4)


CPUS_THAT_SLEEP = """
import glob, time
def sleeps():
    files = glob.glob("/sys/devices/system/cpu/cpu*/cpuidle/state[1-9]*/usage")
    return sum(int(open(file).read()) for file in files)
before = sleeps()
time.sleep(0.5)
print(sleeps() - before)
"""

IDLE_CLASS = """
import os, time
from pathlib import Path
from stagegen.measure.launch.lab import init_process as lab
lab.LATENCY_LIMIT = Path("/nowhere")
lab._keep_awake()
kept, end = set(), time.monotonic() + 5
while len(kept) < os.cpu_count() and time.monotonic() < end:
    for name in filter(str.isdigit, os.listdir("/proc")):
        if os.sched_getscheduler(int(name)) == os.SCHED_IDLE:
            kept |= os.sched_getaffinity(int(name))
print(*sorted(kept))
"""


VIRTUAL = is_virtual(Path("/proc/cpuinfo").read_text(encoding="utf-8"))


# Without a driver the kernel counts no sleep; without root the next test is the one that holds.
@pytest.mark.skipif(
    not (VIRTUAL and os.access(LATENCY_LIMIT, os.W_OK) and IDLE_DRIVER.exists()),
    reason="needs a virtual machine whose kernel has a driver for idle CPUs, and root",
)
def test_no_cpu_of_a_virtual_machine_sleeps(run):
    assert run(sys.executable, "-c", CPUS_THAT_SLEEP, hosts=("n0",)) == (0, ["0"])


def test_without_the_kernels_help_a_process_keeps_each_cpu_awake(run):
    """The process is found by its class, which gives way to everything else."""
    status, lines = run(sys.executable, "-c", IDLE_CLASS, hosts=("n0",))
    assert status == 0
    cpus = os.sched_getaffinity(0) if VIRTUAL else ()
    assert lines == [" ".join(map(str, sorted(cpus)))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model name: hypervisor\nflags\t\t: fpu vme\n", False),
        ("processor: 0\nflags\t\t: fpu hypervisor vme\n", True),
        ("", False),
    ],
)
def test_a_virtual_machine_is_recognised_by_the_flags_of_its_cpus(text, expected):
    assert is_virtual(text) == expected


def test_variables_and_preloads_reach_the_ranks_only(run, tmp_path):
    status, lines = run(
        "sh",
        "-c",
        'echo "$V,$LD_PRELOAD"',
        hosts=("n0",),
        environment={"V": "a b"},
        preload=(tmp_path / "x.so",),
    )
    assert status == 0
    assert lines[0].startswith("a b,")
    assert lines[0].endswith("x.so")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ('[ "$PMI_RANK" != 2 ] || exit 9', 9),
        ('[ "$PMI_RANK" = 2 ] && kill -SEGV $$; sleep 2', 139),
        ("kill -KILL $$", 137),
        ("exec no-such-program", 127),
    ],
)
def test_the_exit_status_is_the_programs(run, command, expected):
    assert run("sh", "-c", command, streams=SILENT)[0] == expected


def test_standard_input_goes_to_rank_0_and_answers_come_back(start):
    with start(sys.executable, "-c", SHOUT, streams=PIPES) as job:
        for word in (b"one\n", b"two\n"):
            job.stdin.write(word)
            job.stdin.flush()
            assert job.stdout.readline() == word.upper()
        with pytest.raises(TimeoutError):
            job.wait(0.1)
        assert job.poll() is None
        job.stdin.close()
        assert job.wait(20) == 0


def test_the_record_says_what_the_lab_was(start):
    with start("true") as job:
        environment = job.environment
    assert (environment.launcher, environment.representative) == ("lab", True)
    assert environment.scale == 1.0
    assert environment.latency in ("emulated", "none")
    assert (environment.latency == "none") == any("latency" in note for note in environment.notes)


def test_two_labs_at_the_same_time_do_not_meet(start):
    with start(*WHERE, streams=PIPES) as one, start(*WHERE, streams=PIPES) as other:
        lines = [sorted(job.stdout.read().split(b"\n")) for job in (one, other)]
        assert lines[0] == lines[1]
        assert len(lines[0]) == 5
        assert one.wait(20) == other.wait(20) == 0


def test_sixteen_ranks_start_and_end(run):
    text = TOPOLOGIES.joinpath("chain-4x4-cyclic.yaml").read_text()
    assert run("true", text=text)[0] == 0


def test_a_missing_part_of_the_kernel_is_named(monkeypatch):
    if reason := lab_process.why_no_lab():
        pytest.skip(reason)
    broken = minimal_plan()
    namespaces = broken.namespaces
    wrong = type(namespaces[0])("switch:s", None, (), (), (), ("qdisc add dev h0 root tfb rate 1",))
    answer = lab_process.try_plan(
        type(broken)("x", broken.veth_pairs, (wrong, *namespaces[1:]), "")
    )
    assert answer is not None
    assert "tfb" in answer
    monkeypatch.setattr(lab_process, "_setting", lambda path: "0" if "max_user" in path else None)
    monkeypatch.setattr(lab_process, "_unshare", lambda: ["false"])
    with pytest.raises(LaunchError, match=r"user\.max_user_namespaces"):
        lab_process.start_in_network(broken, ["true"], {}, PIPES)
