"""Which launcher is used, and why."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from stagegen.errors import InputError
from stagegen.measure.launch import registry
from stagegen.measure.launch.lab import process
from stagegen.measure.launch.lab.process import why_no_lab
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.launch.registry import (
    choose_launcher,
    launcher_names,
    make_launcher,
    register,
    with_mpi_of,
)
from stagegen.measure.launch.ssh import why_unresolved

TEXT = """\
name: two
defaults: {bandwidth: 10Mbit, latency: 50us}
switches:
  s0: {hosts: [one.invalid, two.invalid]}
"""
ADDRESSES = "hosts:\n  one.invalid: {address: 192.0.2.1}\n  two.invalid: {address: 192.0.2.2}\n"


@pytest.mark.parametrize(
    ("asked", "more", "name", "because"),
    [
        ("local", "launcher: lab\n", "local", "asked for"),
        (None, "launcher: local\n", "local", "the topology's own"),
        (None, ADDRESSES, "hydra", "all hosts of the topology have an address"),
        (None, "", "lab", "no address is known for one.invalid and 1 more"),
    ],
)
def test_the_first_reason_that_holds_decides(cluster, asked, more, name, because):
    launcher, sentence = choose_launcher(cluster(TEXT + more), asked)
    assert launcher.name == name
    assert sentence == f"launcher {name}: {because}"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("root@127.0.0.1", None),
        ("localhost", None),
        ("a..b", "no address is known for a..b; "),
        (64 * "a" + ".b", f"no address is known for {64 * 'a'}.b; "),
        ("::1", "mpiexec takes what follows the colon of ::1 for a number of ranks; "),
    ],
)
def test_an_address_may_have_a_user_and_no_colon(cluster, address, why):
    hosts = f"hosts: {{one.invalid: {{address: '{address}'}}}}\n"
    found = why_unresolved(cluster(TEXT.replace(", two.invalid", "") + hosts))
    assert found is None if why is None else found.startswith(why)


@pytest.mark.parametrize(
    ("nodes", "name"),
    [("one.invalid,two.invalid,three", "slurm"), ("one.invalid", "lab"), (None, "lab")],
)
def test_an_allocation_with_all_hosts_goes_before_ssh(cluster, monkeypatch, nodes, name):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    if nodes:
        monkeypatch.setenv("SLURM_JOB_NODELIST", nodes)
    assert choose_launcher(cluster(TEXT))[0].name == name


@pytest.mark.parametrize("name", ["smpi", "nonsense"])
def test_a_launcher_that_is_not_there_is_an_input_error(cluster, name):
    with pytest.raises(InputError, match=rf"'{name}' does not exist .* lab, hydra, openmpi, slurm"):
        choose_launcher(cluster(), name)


def test_a_topology_that_names_an_unknown_launcher_is_wrong_at_that_line(cluster, tmp_path):
    topology = cluster(TEXT + "launcher: smpi\n")
    with pytest.raises(InputError, match=r"cluster\.yaml:5: launcher 'smpi' does not exist"):
        choose_launcher(topology, file=tmp_path / "cluster.yaml")


@pytest.mark.parametrize("word", ["Slurm", "-x", "a b"])
def test_a_launchers_name_in_a_topology_is_a_plain_word(cluster, word):
    with pytest.raises(InputError, match=r"cluster\.yaml:5: launcher '.*' must consist of"):
        cluster(TEXT + f"launcher: '{word}'\n")


@pytest.fixture
def own_launcher(tmp_path, monkeypatch):
    """A package of a user's with a launcher, as pip installs it."""
    (tmp_path / "pigeons.py").write_text(
        "from stagegen.measure.launch.local import LocalLauncher\n"
        "def make(mpiexec):\n    return LocalLauncher(mpiexec, name='pigeons')\n"
    )
    told = tmp_path / "pigeons-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Name: pigeons\nVersion: 1\n")
    (told / "entry_points.txt").write_text("[stagegen.launchers]\npigeons = pigeons:make\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package of a user's with a launcher named pigeons."""

    def install(source: str) -> None:
        (tmp_path / "coop.py").write_text(source)
        told = tmp_path / "coop-1.dist-info"
        told.mkdir()
        (told / "METADATA").write_text("Name: coop\nVersion: 1\n")
        (told / "entry_points.txt").write_text("[stagegen.launchers]\npigeons = coop:make\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "coop", raising=False)

    return install


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import nowhere_at_all\n", "No module named 'nowhere_at_all'"),
        ("def make():\n    pass\n", "takes 0 positional arguments"),
        ("def make(mpiexec):\n    return None\n", "has no attribute 'name'"),
    ],
)
def test_a_users_launcher_that_cannot_be_made_is_an_input_error(package, source, why):
    package(source)
    with pytest.raises(InputError, match=f"the launcher pigeons .*{why}"):
        make_launcher("pigeons")


OTHER_FIELDS = """\
from dataclasses import dataclass
from pathlib import Path

@dataclass(frozen=True)
class Pigeons:
    path: Path | None
    name: str = "pigeons"

def make(mpiexec):
    return Pigeons(mpiexec)
"""


def test_a_users_launcher_need_not_keep_the_mpiexec_in_a_field_of_that_name(
    package, monkeypatch, tmp_path
):
    package(OTHER_FIELDS)
    monkeypatch.setattr(registry, "mpiexec_beside", lambda toolchain: tmp_path / "mpiexec")
    made = with_mpi_of(make_launcher("pigeons"), SimpleNamespace())
    assert made.path == tmp_path / "mpiexec"


def test_a_launcher_that_has_to_be_made_anew_is_found_by_its_name(package, monkeypatch, tmp_path):
    package(OTHER_FIELDS.replace('"pigeons"', '"doves"'))
    monkeypatch.setattr(registry, "mpiexec_beside", lambda toolchain: tmp_path / "mpiexec")
    with pytest.raises(InputError, match="'doves' is known by another name"):
        with_mpi_of(make_launcher("pigeons"), SimpleNamespace())


@pytest.mark.usefixtures("own_launcher")
def test_a_package_adds_a_launcher_by_an_entry_point(cluster):
    assert launcher_names()[-1] == "pigeons"
    launcher, sentence = choose_launcher(cluster(TEXT + "launcher: pigeons\n"))
    assert launcher.name == "pigeons"
    assert sentence == "launcher pigeons: the topology's own"


def test_a_registered_launcher_does_not_take_anothers_name():
    with pytest.raises(InputError, match="already a launcher named lab"):
        register("lab", LocalLauncher)


@pytest.mark.parametrize("name", launcher_names())
def test_every_launcher_knows_its_name(name):
    assert make_launcher(name).name == name


@pytest.mark.parametrize("name", ["hydra", "openmpi"])
def test_without_an_ssh_client_a_launcher_says_what_to_install(cluster, monkeypatch, name):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    module = sys.modules[f"stagegen.measure.launch.{name}"]
    monkeypatch.setattr(module, "find_mpi", lambda *of: None)
    monkeypatch.setattr(module.shutil, "which", lambda tool: None)
    launcher = make_launcher(name)
    why = launcher.why_unavailable(cluster(TEXT + ADDRESSES), launcher.flavours[0])
    assert why == "ssh was not found; install an ssh client (Debian: openssh-client)"


def test_without_its_tools_the_lab_says_what_to_install(monkeypatch):
    there = {"unshare", "ip"}
    monkeypatch.setattr(process.shutil, "which", lambda tool, path: tool if tool in there else None)
    # Not what is remembered of this machine.
    assert why_no_lab.__wrapped__() == "nsenter, tc not found: install iproute2, util-linux"
