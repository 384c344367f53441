"""Which launcher is used, and why."""

from __future__ import annotations

import pytest

from stagegen.errors import InputError
from stagegen.measure.launch.registry import LAUNCHERS, choose_launcher, make_launcher

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


@pytest.mark.parametrize("name", ["slurm", "openmpi", "smpi", "nonsense"])
def test_a_launcher_that_is_not_there_is_an_input_error(cluster, name):
    with pytest.raises(InputError, match=rf"'{name}' does not exist .* lab, hydra, local"):
        choose_launcher(cluster(), name)


def test_a_topology_may_name_a_launcher_that_is_not_there(cluster):
    with pytest.raises(InputError, match="slurm"):
        choose_launcher(cluster(TEXT + "launcher: slurm\n"))


@pytest.mark.parametrize("name", LAUNCHERS)
def test_every_launcher_knows_its_name(name):
    assert make_launcher(name).name == name
