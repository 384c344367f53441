"""When and by how much rates are scaled down."""

from __future__ import annotations

import pytest

from stagegen.data import TOPOLOGIES
from stagegen.errors import InputError
from stagegen.measure.launch.lab import capacity as lab_capacity
from stagegen.measure.launch.lab.capacity import Capacity, demand, lab_scale, machine_capacity
from stagegen.measure.launch.lab.latency import NETEM, RELAY
from stagegen.measure.launch.lab.process import why_no_lab
from stagegen.topology import load_topology


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Let the probe answer from a list; return the list."""
    answers: list[float] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(lab_capacity.VARIABLE, raising=False)
    monkeypatch.setattr(lab_capacity, "_probe", lambda: answers.pop(0))
    return answers


def test_a_link_carries_no_more_than_the_hosts_beside_it(cluster):
    text = (
        "name: x\ndefaults: {bandwidth: 10Mbit, latency: 50us}\n"
        "switches: {s0: {hosts: [a, b, c]}, s1: {hosts: [d]}, s2: {}}\n"
        "links: [{ends: [s0, s1], bandwidth: 1Gbit}, {ends: [s1, s2]}]\n"
    )
    assert demand(cluster(text)) == 2 * 40e6 + 2 * 10e6


@pytest.mark.parametrize(("hosts", "link"), [("50us", "50us"), ("50us", "5ms"), ("5ms", "50us")])
def test_a_link_with_a_relay_counts_as_several(cluster, hosts, link):
    text = (
        (
            f"name: x\ndefaults: {{bandwidth: 10Mbit, latency: {hosts}}}\n"
            f"switches: {{s0: [a], s1: [b]}}\nlinks: [{{ends: [s0, s1], latency: {link}}}]\n"
        )
        .replace("[a]", "{hosts: [a]}")
        .replace("[b]", "{hosts: [b]}")
    )
    weights = [lab_capacity.RELAYED if latency == "5ms" else 1 for latency in (hosts, hosts, link)]
    assert demand(cluster(text), RELAY) == 2 * 10e6 * sum(weights)
    assert demand(cluster(text), NETEM) == demand(cluster(text)) == 2 * 10e6 * 3


def test_the_benchmark_cluster_asks_for_its_38_link_directions():
    assert demand(load_topology(TOPOLOGIES / "chain-4x4-cyclic.yaml")) == 38 * 20e6


def test_a_fast_machine_is_asked_once_and_remembered(cluster, measured):
    measured[:] = [10e9]
    assert lab_scale(cluster()).factor == 1.0
    assert lab_scale(cluster()).note is None
    assert measured == []


def test_a_slow_machine_is_asked_again_before_rates_are_scaled(cluster, measured):
    measured[:] = [20e6, 100e6, 50e6]
    scale = lab_scale(cluster())
    assert scale.factor == 0.5  # of 100 Mbit/s times links, half is used, and 100 are asked for
    assert "multiplied by 0.5" in scale.note
    assert lab_scale(cluster()) == scale
    assert measured == []


def test_another_boot_is_another_machine(cluster, measured, monkeypatch):
    measured[:] = [10e9, 20e9]
    machine_capacity()
    monkeypatch.setattr(lab_capacity, "_machine", lambda: "another")
    assert machine_capacity() == Capacity("another", 20e9, 1)


def test_what_the_user_sets_is_the_scale_or_is_refused(cluster, measured, monkeypatch):
    monkeypatch.setenv(lab_capacity.VARIABLE, "0.25")
    assert lab_scale(cluster()).factor == 0.25
    for wrong in ("0", "1.5", "-1", "nan", "half"):
        monkeypatch.setenv(lab_capacity.VARIABLE, wrong)
        with pytest.raises(InputError, match=f"{lab_capacity.VARIABLE}={wrong}"):
            lab_scale(cluster())


@pytest.mark.alone
@pytest.mark.lab
def test_the_probe_finds_a_believable_capacity(tmp_path, monkeypatch):
    if reason := why_no_lab():
        pytest.skip(reason)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert 1e7 < machine_capacity(again=True).rate < 1e12
