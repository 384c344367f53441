"""How fast the lab's links may be, so that measurements show the links and not the CPU.

Every frame that passes an emulated link costs CPU time, whatever its path. So the capacity of a
machine is a number of *bit/s times links*: a stream of 10 Mbit/s over four links counts 40
Mbit/s. It is measured, once after every boot, by `capacity_probe` in a lab of eight hosts whose
links are faster than any CPU can serve. A topology asks for the sum of the rates at which its
links can be busy at the same time. If that is more than half of the capacity, all rates are
multiplied by one factor; the other half is for the ranks and for noise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from stagegen.errors import InputError, LaunchError
from stagegen.generate.write import write_whole
from stagegen.measure.launch.base import Streams
from stagegen.measure.launch.cache import cache_folder
from stagegen.measure.launch.lab.latency import NONE, Delay
from stagegen.measure.launch.lab.network import host_address, plan_network
from stagegen.measure.launch.lab.process import lab_delay, start_in_network
from stagegen.topology import Host, Link, RankMap, Switch, Topology, format_bandwidth

SHARE = 0.5  # of the capacity that the links may use
RELAYED = 3  # links without a relay cost as much CPU time as one with a relay
TRIES = 3  # measurements before rates are scaled down: a busy machine looks slow
VARIABLE = "STAGEGEN_LAB_SCALE"

_PROBE = Path(__file__).with_name("capacity_probe.py")
_PROBE_HOSTS = tuple(f"n{index}" for index in range(8))
_PROBE_RATE = 400_000_000  # bit/s; eight such hosts ask for more than 6 Gbit/s times links
_PROBE_LINKS = 2 * (len(_PROBE_HOSTS) - 1) + 1  # that one block crosses
_PROBE_SECONDS = 30.0


@dataclass(frozen=True)
class Capacity:
    """The traffic that one machine can forward.

    Attributes:
        machine: boot identifier, kernel and CPUs that it was measured with.
        rate: in bit/s times links, the best of all tries.
        tries: how often it was measured.
    """

    machine: str
    rate: float
    tries: int


@dataclass(frozen=True)
class Scale:
    """The factor by which a topology's rates are multiplied in the lab.

    Attributes:
        factor: at most 1.
        note: a sentence that says why; None if all rates fit as they are.
    """

    factor: float
    note: str | None = None


def demand(topology: Topology, delay: Delay = NONE) -> float:
    """Return the sum of the rates at which all links can be busy at once.

    A host's link can be busy in both directions. A link between switches carries no more, in
    each direction, than the hosts on either side of it can send or take. A link with a relay
    counts as `RELAYED` links.

    Args:
        topology: the cluster.
        delay: what gives links their latency.

    Returns:
        In bit/s times links.
    """
    used = {host.name for host in topology.hosts if host.name in topology.ranks}
    rates = {host.name: host.bandwidth for host in topology.hosts if host.name in used}
    total = sum(rates.values())
    demanded = sum(
        2.0 * rates[host.name] * _weight(delay, host.latency)
        for host in topology.hosts
        if host.name in used
    )
    for link in topology.links:
        beyond = _switches_beyond(topology, link)
        side = sum(
            rates[host.name]
            for host in topology.hosts
            if host.name in used and host.switch in beyond
        )
        demanded += 2.0 * min(link.rate, side, total - side) * _weight(delay, link.latency)
    return demanded


def _weight(delay: Delay, latency: float) -> int:
    return RELAYED if delay.by == "relay" and delay.covers(latency) else 1


def _switches_beyond(topology: Topology, cut: Link) -> set[str]:
    """Return the switches on the second end's side of a link of the tree."""
    found: set[str] = set()
    waiting = [cut.ends[1]]
    while waiting:
        switch = waiting.pop()
        found.add(switch)
        for link in topology.links:
            if link is not cut and switch in link.ends:
                waiting += [end for end in link.ends if end not in found]
    return found


def lab_scale(topology: Topology) -> Scale:
    """Return the factor for a topology's rates on this machine.

    STAGEGEN_LAB_SCALE, a number above 0 and at most 1, overrides it.

    Raises:
        InputError: STAGEGEN_LAB_SCALE is not such a number.
        LaunchError: the capacity could not be measured.
    """
    if os.environ.get(VARIABLE):
        return _wanted(os.environ[VARIABLE])
    demanded = demand(topology, lab_delay())
    capacity = machine_capacity()
    while SHARE * capacity.rate < demanded and capacity.tries < TRIES:
        capacity = measure_capacity(capacity)
    if SHARE * capacity.rate >= demanded:
        return Scale(1.0)
    factor = float(f"{SHARE * capacity.rate / demanded:.2g}")
    note = (
        f"all rates multiplied by {factor}: the links ask for "
        f"{format_bandwidth(round(demanded))} in all, and this machine forwards "
        f"{format_bandwidth(round(capacity.rate / 1e7) * 10_000_000)}, of which the lab uses half"
    )
    return Scale(factor, note)


def _wanted(text: str) -> Scale:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0.0 < factor <= 1.0:
        raise InputError(f"{VARIABLE}={text}: not a number above 0 and at most 1")
    return Scale(factor, f"all rates multiplied by {factor}: {VARIABLE} says so")


def machine_capacity(again: bool = False) -> Capacity:
    """Return this machine's capacity; measure it if that has not happened since boot.

    Args:
        again: measure in any case, and forget what was measured before.
    """
    known = None if again else _remembered()
    return known or measure_capacity()


def measure_capacity(before: Capacity | None = None) -> Capacity:
    """Measure the capacity, in about a second, and remember the better of it and `before`."""
    rate = max(_probe(), before.rate if before else 0.0)
    capacity = Capacity(_machine(), rate, before.tries + 1 if before else 1)
    write_whole(_file(), [json.dumps(asdict(capacity)).encode()])
    return capacity


def _probe() -> float:
    """Run the probe; return bit/s times links."""
    topology = _probe_topology()
    words = [f"{host.name}={host_address(i)}" for i, host in enumerate(topology.hosts)]
    command = [sys.executable, "-I", "-S", str(_PROBE), *words]
    streams = Streams(subprocess.DEVNULL, subprocess.PIPE)
    child = start_in_network(plan_network(topology), command, {}, streams)
    try:
        output, _ = child.popen.communicate(timeout=_PROBE_SECONDS)
        return float(output) * _PROBE_LINKS
    except (ValueError, subprocess.TimeoutExpired) as error:
        raise LaunchError(
            "the probe of this machine's capacity gave no answer; try again on a quieter machine, "
            f"or set {VARIABLE} to the factor of all rates, at most 1"
        ) from error
    finally:
        child.stop()


def _probe_topology() -> Topology:
    half = len(_PROBE_HOSTS) // 2
    parts = {"s0": _PROBE_HOSTS[:half], "s1": _PROBE_HOSTS[half:]}
    return Topology(
        name="probe",
        switches=tuple(Switch(name, hosts) for name, hosts in parts.items()),
        hosts=tuple(
            Host(host, name, _PROBE_RATE, 0.0) for name, hosts in parts.items() for host in hosts
        ),
        links=(Link(("s0", "s1"), _PROBE_RATE, 0.0),),
        rank_map=RankMap("block", _PROBE_HOSTS),
    )


def _file() -> Path:
    return cache_folder() / "lab-capacity.json"


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = "unknown"
    return f"{boot} {os.uname().release} {len(os.sched_getaffinity(0))}"


def _remembered() -> Capacity | None:
    try:
        capacity = Capacity(**json.loads(_file().read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return capacity if capacity.machine == _machine() else None
