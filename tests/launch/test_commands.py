"""Command lines of the MPI libraries' launchers, and how the end of a job is read."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from stagegen.errors import InputError, LaunchError
from stagegen.measure.launch import openmpi
from stagegen.measure.launch.base import Environment, Job
from stagegen.measure.launch.command_lines import HANDED_OVER, hydra_command
from stagegen.measure.launch.hydra import HydraLauncher
from stagegen.measure.launch.lab import init_process as lab_init
from stagegen.measure.launch.lab.launcher import lab_command
from stagegen.measure.launch.local import LocalLauncher, local_command
from stagegen.measure.launch.mpi import VARIABLE, Mpi, find_mpi
from stagegen.measure.launch.openmpi import OpenMpiLauncher

MPICH = Mpi("mpich", "4.3.2", Path("/opt/mpich/bin/mpiexec"))
OPENMPI = Mpi("openmpi", "5.0.10", Path("/opt/openmpi/bin/mpiexec"))
SLOTS = """\
name: slots
defaults: {bandwidth: 10Mbit, latency: 50us}
switches:
  s0: {hosts: [a, b]}
hosts:
  a: {slots: 2}
ranks: [a, b, a]
"""


def after(words, option):
    return words[words.index(option) + 1]


def test_hydra_lists_one_host_per_rank():
    words = hydra_command(MPICH, ["prog", "-x"], ["b", "a", "b"], variables={"V": "1"})
    expected = "-launcher ssh -hosts b,a,b -n 3 -genv V 1 prog -x"
    assert words == ["/opt/mpich/bin/mpiexec", *expected.split()]


@pytest.mark.parametrize("mpi", [MPICH, OPENMPI])
def test_the_lab_is_the_same_command_with_a_shell_of_its_own(cluster, mpi):
    job = Job(("prog",), environment={"V": "1"}, preload=(Path("/lib/x.so"),), mpi=mpi.flavour)
    words = lab_command(mpi, job, cluster(SLOTS))
    assert words[-2:] == ["/run/lab-rank", "prog"]
    assert "/run/lab-shell" in words
    assert any(word.endswith(":/lib/x.so") and "LD_PRELOAD" not in word for word in words)
    if mpi is MPICH:
        assert after(words, "-hosts") == "a,b,a"
        assert after(words, "UCX_TLS") == "tcp,self"
    else:
        assert after(words, "--host") == "a:1,b:1,a:1"
        assert "V=1" in words


def test_what_the_user_has_set_wins_over_the_lab(cluster, monkeypatch):
    monkeypatch.setenv("UCX_TLS", "tcp")
    assert after(lab_command(MPICH, Job(("prog",)), cluster()), "UCX_TLS") == "tcp"


def test_what_open_mpi_is_asked_to_hand_over_goes_another_way(cluster, monkeypatch):
    """Its mpirun refuses the list beside -x, which the lab needs; a recorder sets the list."""
    monkeypatch.setenv(HANDED_OVER, "NAMED;GIVEN=a=b;MISSING;LD_PRELOAD;")
    monkeypatch.setenv("NAMED", "value")
    monkeypatch.setenv("LD_PRELOAD", "/lib/recorder.so")
    words = lab_command(OPENMPI, Job(("prog",), mpi="openmpi"), cluster())
    assert words[:4] == ["env", "-u", HANDED_OVER, str(OPENMPI.mpiexec)]
    given = [then for word, then in pairwise(words) if word == "-x"]
    assert {"NAMED=value", "GIVEN=a=b"} <= set(given)
    assert not [word for word in given if word.startswith("MISSING")]
    (preloaded,) = (word for word in given if word.startswith("LD_PRELOAD="))
    assert preloaded.removeprefix("LD_PRELOAD=").split(":")[-1] == "/lib/recorder.so"


def test_local_ranks_of_open_mpi_get_what_is_to_be_handed_over(monkeypatch):
    monkeypatch.setenv(HANDED_OVER, "GIVEN=a=b;MISSING")
    words = local_command(OPENMPI, Job(("prog",), mpi="openmpi"), 3)
    given = [then for word, then in pairwise(words) if word == "-x"]
    assert "GIVEN=a=b" in given
    assert not [word for word in given if word.startswith("MISSING")]


@pytest.mark.parametrize("launcher", [OpenMpiLauncher, LocalLauncher])
def test_mpirun_does_not_see_the_list_that_it_refuses_beside_x(cluster, monkeypatch, launcher):
    monkeypatch.setenv(HANDED_OVER, "GIVEN=1")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    started = []
    module = sys.modules[launcher.__module__]
    monkeypatch.setattr(module, "find_mpi", lambda *_: OPENMPI)
    monkeypatch.setattr(
        module, "start_mpiexec", lambda *words, **more: started.append((words, more))
    )
    launcher().start(Job(("prog",), mpi="openmpi"), cluster(SLOTS))
    ((words, more),) = started
    assert after(words[0], "-x").startswith("GIVEN=1")
    assert more == {"without": {HANDED_OVER}}


def test_in_an_allocation_mpirun_of_open_mpi_is_given_the_names_of_nodes(cluster, monkeypatch):
    text = SLOTS.replace(
        "  a: {slots: 2}", "  a: {slots: 2, address: 10.0.0.3}\n  b: {address: me@n7}"
    )
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "a,n7")
    started = []
    monkeypatch.setattr(openmpi, "find_mpi", lambda *_: OPENMPI)
    monkeypatch.setattr(openmpi, "start_mpiexec", lambda *words, **_: started.append(words[0]))
    launcher, topology = OpenMpiLauncher(), cluster(text)
    assert launcher.why_unavailable(topology) is None
    launcher.start(Job(("prog",), mpi="openmpi"), topology)
    assert after(started[0], "--host") == "a:1,n7:1,a:1"
    monkeypatch.setenv("SLURM_JOB_NODELIST", "a")
    assert "not in this allocation: b" in str(launcher.why_unavailable(topology))


def test_a_recorder_comes_before_what_the_program_preloads(cluster, monkeypatch):
    """It sees no call of a library before it. Without one, the program's own library is first."""
    job = Job(("prog",), preload=(Path("/lib/x.so"),))
    monkeypatch.setenv("LD_PRELOAD", "/lib/recorder.so:/lib/y.so /lib/z.so")
    assert job.preload_variable() == "/lib/x.so:/lib/recorder.so:/lib/y.so:/lib/z.so"
    monkeypatch.setenv("STAGEGEN_RECORD", "/out")
    assert job.preload_variable() == "/lib/recorder.so:/lib/x.so:/lib/y.so:/lib/z.so"


@pytest.mark.parametrize("folder", ["/my lib", "/a:b"])
def test_a_path_that_the_linker_would_cut_is_refused(folder):
    with pytest.raises(LaunchError, match="has a space or a colon"):
        Job(("prog",), preload=(Path(folder, "x.so"),)).preload_variable()


def test_only_shared_hosts_shorten_the_sleep(cluster):
    assert "LAB_IDLE_LONGEST_US" in lab_command(MPICH, Job(("prog",)), cluster(SLOTS))
    assert "LAB_IDLE_LONGEST_US" not in lab_command(MPICH, Job(("prog",)), cluster())


def test_a_job_may_use_some_of_the_hosts_only(cluster):
    words = lab_command(MPICH, Job(("prog",), hosts=("n3", "n0")), cluster())
    assert after(words, "-hosts") == "n3,n0"
    with pytest.raises(InputError, match="no host named n9"):
        lab_command(MPICH, Job(("prog",), hosts=("n9",)), cluster())


def test_local_ranks_use_no_shared_memory():
    words = local_command(MPICH, Job(("prog",)), 3)
    assert after(words, "-launcher") == "fork"
    assert after(words, "MPIR_CVAR_NOLOCAL") == "1"


def test_hydra_refuses_another_library(cluster):
    reason = HydraLauncher().why_unavailable(cluster(), "openmpi")
    assert reason is not None
    assert "cannot start programs of openmpi" in reason


def test_an_environment_survives_its_json_form():
    environment = Environment("lab", True, 0.5, "none", "mpich", "4.3.2", "6.1", 2, ("a", "b"))
    assert Environment.from_json(environment.to_json()) == environment


@pytest.mark.parametrize(("launcher", "emulated"), [("lab", True), ("hydra", False)])
def test_old_records_of_the_lab_alone_are_of_an_emulated_network(launcher, emulated):
    form = Environment(launcher, True, 1.0, "none", "mpich", "4.3.2", "6.1", 2).to_json()
    del form["emulated"]
    assert Environment.from_json(form).emulated == emulated


def test_a_record_says_itself_whether_the_network_is_emulated():
    mine = Environment("mine", True, 1.0, "none", "mpich", "4.3.2", "6.1", 2, emulated=True)
    assert Environment.from_json(mine.to_json()).emulated


@pytest.mark.parametrize(
    ("code", "failures", "status"),
    [
        (0, [], 0),
        (0, [3], 0),
        (7, [7, 7], 7),
        (3, [1, 2], 1),
        (255, [139, 137, 143], 139),
        (255, [137, 139], 139),
        (5, [137, 137], 5),
        (255, [137], 137),
        (-9, [], 137),
        (255, [], 255),
    ],
)
def test_the_exit_status_is_that_of_the_rank_that_failed_first(code, failures, status):
    assert lab_init.exit_status(code, failures) == status


def fake_mpiexec(folder: Path, text: str) -> Path:
    program = folder / "mpiexec"
    program.write_text(f"#!/bin/sh\necho '{text}'\n")
    program.chmod(0o755)
    return program


HYDRA = "HYDRA build details:\n    Version:       4.2"


def test_the_flavour_of_an_mpiexec_is_recognised_by_its_output(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(fake_mpiexec(tmp_path, HYDRA)))
    assert find_mpi("mpich").version == "4.2"
    with pytest.raises(InputError, match=r"belongs to MPICH 4\.2"):
        find_mpi("openmpi")


@pytest.mark.parametrize("said", ["mpiexec (OpenRTE) 4.1.4", "mpirun (Open MPI) 5.0.10"])
def test_open_mpi_is_recognised_by_either_name(tmp_path, said):
    assert find_mpi("openmpi", fake_mpiexec(tmp_path, said)).flavour == "openmpi"


def test_an_mpiexec_of_another_flavour_is_an_input_error(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="not an mpiexec"):
        find_mpi("mpich", fake_mpiexec(tmp_path, "slurm"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(InputError, match="pip install mpich"):
        find_mpi("mpich")


def test_an_unknown_library_is_an_input_error():
    with pytest.raises(InputError, match="expected mpich or openmpi"):
        find_mpi("lam")
