"""The lab's network as a plan: pure, nothing is run."""

from __future__ import annotations

import pytest

from stagegen.measure.launch.lab_network import (
    BURST_BYTES,
    burst,
    host_address,
    minimal_plan,
    plan_network,
)

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
    assert plan.cables == (
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
    spaces = by_name(plan_network(cluster(), emulate_latency=True))
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
    devices = [word for line in plan.cables for word in line.split()[3:4]]
    assert max(map(len, devices)) <= 15
    assert by_name(plan)[name].hostname == name


def test_hundreds_of_hosts_have_different_addresses():
    addresses = {host_address(index) for index in range(1000)}
    assert len(addresses) == 1000
    assert {address.rsplit(".", 2)[0] for address in addresses} == {"10.77"}


@pytest.mark.parametrize("rate", [1e5, 1e6, 2e7, 1e8, 1e9, 1e10])
def test_a_bucket_holds_a_frame_and_what_a_late_timer_misses(rate):
    assert burst(rate) >= BURST_BYTES > 1514
    assert burst(rate) >= round(rate * 400e-6 / 8)


def test_the_same_topology_gives_the_same_plan(cluster):
    assert plan_network(cluster()) == plan_network(cluster())
    assert len(minimal_plan().namespaces) == 4
