"""The lab's network as a plan: pure, nothing is run."""

from __future__ import annotations

import pytest

from stagegen.data import TOPOLOGIES
from stagegen.measure.launch.lab.latency import NETEM
from stagegen.measure.launch.lab.network import (
    burst,
    host_address,
    minimal_plan,
    plan_network,
)
from stagegen.topology import load_topology

FRAME = 1514
"""Bytes of a full Ethernet frame."""

MIXED = """\
name: mixed
defaults: {bandwidth: 100Mbit, latency: 50us}
switches:
  s0: {hosts: [fast, slow]}
  s1: {}
links:
  - {ends: [s0, s1], bandwidth: 1Gbit, count: 2}
hosts:
  slow: {bandwidth: 10Mbit}
"""


def by_name(plan):
    return {namespace.name: namespace for namespace in plan.namespaces}


def test_every_switch_host_and_link_has_its_place(cluster):
    plan = plan_network(cluster())
    assert list(by_name(plan)) == ["switch:s0", "switch:s1", "n0", "n1", "n2", "n3", None]
    assert plan.veth_pairs == (
        "link add name eth0 index 10000 netns n0 type veth peer name h0 netns switch:s0",
        "link add name eth0 index 10001 netns n1 type veth peer name h1 netns switch:s0",
        "link add name eth0 index 10002 netns n2 type veth peer name h2 netns switch:s1",
        "link add name eth0 index 10003 netns n3 type veth peer name h3 netns switch:s1",
        "link add name l0 index 10004 netns switch:s0 type veth peer name l0 netns switch:s1",
        "link add name control index 10005 netns switch:s0 type veth peer name control",
    )
    assert "10.77.0.3 n2" in plan.hosts_file.splitlines()


def test_both_ends_of_every_cable_are_limited_but_not_the_control_port(cluster):
    spaces = by_name(plan_network(cluster(MIXED)))
    limit = "limit 524288"
    assert spaces["fast"].tc == (
        f"qdisc add dev eth0 root tbf rate 100000000bit burst 5000 {limit}",
    )
    assert spaces["slow"].tc == (
        f"qdisc add dev eth0 root tbf rate 10000000bit burst 4096 {limit}",
    )
    assert [line.split()[3:8:4] + line.split()[7:8] for line in spaces["switch:s0"].tc] == [
        ["h0", "100000000bit", "100000000bit"],
        ["h1", "10000000bit", "10000000bit"],
        ["l0", "2000000000bit", "2000000000bit"],
    ]
    assert len(spaces["switch:s1"].tc) == 1
    assert spaces[None].tc == ()


def test_rates_are_scaled_alike_or_left_out(cluster):
    scaled = by_name(plan_network(cluster(MIXED), scale=0.5))
    assert "rate 50000000bit" in scaled["fast"].tc[0]
    assert "rate 5000000bit" in scaled["slow"].tc[0]
    assert not any(space.tc for space in plan_network(cluster(MIXED), scale=None).namespaces)


def test_latency_delays_both_ends_of_a_cable(cluster):
    spaces = by_name(plan_network(cluster(), delay=NETEM))
    for name in ("n0", "switch:s0"):
        assert any("netem delay 50us" in line for line in spaces[name].tc)
        assert any("parent 1:1" in line and "tbf rate" in line for line in spaces[name].tc)


def test_names_longer_than_a_device_may_be_do_not_become_devices(cluster):
    name = "node-with-a-name-of-more-than-fifteen-letters"
    plan = plan_network(
        cluster(
            f"name: x\ndefaults: {{bandwidth: 1Gbit, latency: 1us}}\n"
            f"switches: {{a-switch-with-a-long-name: {{hosts: [{name}, b]}}}}\n"
        )
    )
    devices = [word for line in plan.veth_pairs for word in line.split()[3:4]]
    assert max(map(len, devices)) <= 15
    assert by_name(plan)[name].hostname == name


def test_hundreds_of_hosts_have_different_addresses():
    addresses = {host_address(index) for index in range(1000)}
    assert len(addresses) == 1000
    assert {address.rsplit(".", 2)[0] for address in addresses} == {"10.77"}


def overflow(rate: float, pause: float) -> float:
    """Return how many bytes of a second find the bucket full, if frames leave every `pause` s."""
    held = lost = 0.0
    for _ in range(round(1 / pause)):
        held += rate / 8 * pause
        lost += max(0.0, held - burst(rate))
        held = min(held, burst(rate)) % FRAME
    return lost


@pytest.mark.parametrize("rate", [1e5, 1e6, 2e7, 1e8, 1e9, 1e10])
def test_a_bucket_is_deep_enough_for_late_timers_and_no_deeper(rate):
    """Timers are some 100 µs late, so 200 µs must do; what leaves at once is no more than 500."""
    assert overflow(rate, 200e-6) == 0
    assert 2 * FRAME <= burst(rate) <= max(3 * FRAME, rate / 8 * 500e-6)


@pytest.mark.parametrize("file", sorted(TOPOLOGIES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_topology_can_be_planned(file):
    """The outer namespace and one for each switch and host, a limited cable for each link."""
    topology = load_topology(file)
    plan = plan_network(topology)
    names = [space.name for space in plan.namespaces]
    assert len(set(names)) == len(names) == len(topology.switches) + len(topology.hosts) + 1
    links = len(topology.hosts) + len(topology.links)
    assert len(plan.veth_pairs) == links + 1
    assert sum(len(space.tc) for space in plan.namespaces) == 2 * links


def test_the_same_topology_gives_the_same_plan(cluster):
    assert plan_network(cluster()) == plan_network(cluster())


def test_the_least_lab_has_two_hosts_on_a_switch():
    assert list(by_name(minimal_plan())) == ["switch:s", "a", "b", None]
