"""Links of the lab that have a latency: what the relay does to frames, and how it ends."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from stagegen.errors import InputError
from stagegen.measure.launch.base import Streams
from stagegen.measure.launch.lab.latency import LEAST, NETEM, NONE, RELAY, VARIABLE, read_delay
from stagegen.measure.launch.lab.network import plan_network
from stagegen.measure.launch.lab.process import lab_delay, netem_possible
from tests.launch.test_lab_endings import wait_until

LATENCY = 0.015  # seconds
RATE = 20e6  # bit/s
LATE_MS = 1.5  # by which a round trip may be late: the stated error, and the way without latency
ATTEMPTS = 8
SITES = f"""\
name: sites
defaults: {{bandwidth: {RATE / 1e6:.0f}Mbit, latency: 50us}}
switches:
  s0: {{hosts: [n0, n1]}}
  s1: {{hosts: [n2]}}
  s2: {{hosts: [n3]}}
links:
  - {{ends: [s0, s1], latency: {LATENCY * 1e3:.0f}ms}}
  - {{ends: [s1, s2]}}
hosts:
  n3: {{latency: 2ms}}
"""
LINK = str(Path(__file__).with_name("long_link.py"))


@pytest.mark.parametrize(
    ("text", "by", "least"),
    [
        ("netem", "netem", 0),
        ("relay", "relay", LEAST),
        ("relay:50us", "relay", 5e-5),
        ("none", "none", float("inf")),
    ],
)
def test_what_the_user_sets_is_read(text, by, least):
    assert (read_delay(text).by, read_delay(text).least) == (by, least)


@pytest.mark.parametrize("text", ["relays", "relay:", "relay:5", "netem:1ms", "none:1ms", "1ms"])
def test_what_is_no_setting_is_refused(text):
    with pytest.raises(InputError, match=f"{VARIABLE}={text}: "):
        read_delay(text)


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        (NETEM, "emulated"),
        (RELAY, "relay"),
        (read_delay("relay:10ms"), "relay:10ms"),
        (read_delay("relay:20ms"), "none"),
        (NONE, "none"),
    ],
)
def test_the_record_says_what_delays_the_links_of_a_topology(cluster, delay, expected):
    assert delay.record(cluster(SITES)) == expected


@pytest.mark.parametrize(
    ("delay", "relayed"),
    [
        (RELAY, {"s0 - s1", "n3 - s2"}),
        (read_delay("relay:10ms"), {"s0 - s1"}),
        (
            read_delay("relay:0"),
            {"s0 - s1", "s1 - s2", *(f"n{i} - s{max(0, i - 1)}" for i in range(4))},
        ),
        (NETEM, set()),
        (NONE, set()),
    ],
)
def test_long_links_lead_through_a_relay_and_keep_their_rates(cluster, delay, relayed):
    topology = cluster(SITES)
    plan, plain = plan_network(topology, delay=delay), plan_network(topology)
    assert {relay.link for relay in plan.relays} == relayed
    assert len(plan.veth_pairs) == len(plain.veth_pairs) + len(relayed)
    rates = {space.name: [line for line in space.tc if "tbf" in line] for space in plan.namespaces}
    for space in plain.namespaces:
        assert len(rates[space.name]) == len(space.tc)
    for relay in plan.relays:
        assert rates[relay.namespace] == []
        assert sum(f"netns {relay.namespace}" in line for line in plan.veth_pairs) == 2


def test_a_relay_gets_the_latency_and_the_scaled_rate(cluster):
    (relay,) = plan_network(cluster(SITES), 0.5, read_delay("relay:10ms")).relays
    assert relay.words[2:4] == (str(round(LATENCY * 1e9)), str(round(RATE / 2)))


@pytest.fixture
def relays(monkeypatch):
    monkeypatch.setenv(VARIABLE, "relay")


@pytest.fixture
def seen(run, relays):
    """Use the long link until the best attempt is as good as it gets; return all attempts."""

    def attempts(good) -> list[dict[str, list[str]]]:
        found: list[dict[str, list[str]]] = []
        while len(found) < ATTEMPTS and not (found and good(found[-1])):
            words = (sys.executable, LINK, "n2", "n0")
            status, lines = run(*words, text=SITES, hosts=("n0", "n2"))
            assert status == 0
            found.append({line.split()[0]: line.split()[1:] for line in lines})
        return found

    return attempts


@pytest.mark.alone
@pytest.mark.lab
@pytest.mark.mpi
def test_frames_arrive_late_by_the_latency_in_order_and_at_the_links_rate(seen):
    """Other work on the machine delays frames, and never hastens one."""

    def trip(attempt) -> float:
        return min(map(float, attempt["trips"]))

    def rate(attempt) -> float:
        return float(attempt["stream"][0])

    found = seen(lambda one: trip(one) < 2e3 * LATENCY + LATE_MS and rate(one) > 0.7 * RATE)
    for attempt in found:
        assert trip(attempt) >= 2e3 * LATENCY
        assert rate(attempt) < RATE
        assert attempt["stream"][1] == "True"
        for way in ("there", "back"):
            assert attempt[way] == [str(number) for number in range(80)]
    assert min(map(trip, found)) < 2e3 * LATENCY + LATE_MS
    assert max(map(rate, found)) > 0.7 * RATE


def own_relays(before: set[int]) -> set[int]:
    return relay_processes() - before


def relay_processes() -> set[int]:
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"lab-relay" in (folder / "cmdline").read_bytes().split(b"\0")[0]:
                found.add(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.lab
@pytest.mark.mpi
def test_a_killed_relay_ends_the_job_and_says_so(start, relays, tmp_path):
    before = relay_processes()
    with (tmp_path / "errors").open("w+") as errors:
        streams = Streams(stdin=-3, stdout=-3, stderr=errors)
        with start("sleep", "1000", text=SITES, streams=streams) as job:
            mine = own_relays(before)
            assert len(mine) == 2
            os.kill(max(mine), signal.SIGKILL)
            assert job.wait(20) == 125
        errors.seek(0)
        assert "lab: the relay of the link s0 - s1 ended (signal 9)" in errors.read()
    assert wait_until(lambda: not own_relays(before))


@pytest.mark.lab
@pytest.mark.mpi
def test_relays_end_with_the_lab(start, relays):
    before = relay_processes()
    with start("sleep", "1000", text=SITES) as job:
        assert len(own_relays(before)) == 2
        assert job.environment.latency == "relay"
    assert wait_until(lambda: not own_relays(before))


@pytest.mark.lab
def test_netem_is_refused_where_the_kernel_has_none(monkeypatch, run):
    monkeypatch.setenv(VARIABLE, "netem")
    if netem_possible():
        assert lab_delay() == NETEM
    else:
        with pytest.raises(InputError, match="the kernel has no netem"):
            lab_delay()
