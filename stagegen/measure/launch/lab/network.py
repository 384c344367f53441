"""The lab's network as a plan: a topology becomes lists of ``ip`` and ``tc`` commands.

Pure: nothing runs here; `stagegen.measure.launch.lab.init_process` carries the plan out.

A switch is a network namespace ``switch:NAME`` with a bridge. A host is a network
namespace ``NAME`` with one device ``eth0``, whose other end is a port of its switch's bridge. A
link is a pair of ports of two bridges. Both ends of every pair have a token bucket, which
limits each direction of each cable on its own (full duplex). One more port, without a limit,
leads to the lab's outer namespace, where ``mpiexec`` runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from stagegen.topology import Host, RankMap, Switch, Topology

SUBNET = IPv4Network("10.77.0.0/16")
BRIDGE = "bridge"
HOST_DEVICE = "eth0"
CONTROL_DEVICE = "control"
CONTROL_ADDRESS = str(SUBNET.broadcast_address - 1)
OUTER_HOSTNAME = "stagegen-lab"

BURST_BYTES = 4096
QUEUE_BYTES = 512 * 1024  # what one port of a switch can hold back before it drops

# Kernel defaults, repeated because a new namespace inherits the machine's own settings.
_HOST_SYSCTLS = (
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    ("net/ipv4/tcp_rmem", "4096 131072 6291456"),
    ("net/ipv4/tcp_wmem", "4096 16384 4194304"),
)
_SWITCH_SYSCTLS = _HOST_SYSCTLS[:2]
_FIRST_INDEX = 10000  # PRRTE keeps an index in 16 bits
_NETEM_PACKETS = 10000  # more than a delay of 10 ms holds at 10 Gbit/s


@dataclass(frozen=True)
class NamespacePlan:
    """What to do inside one network namespace.

    Attributes:
        name: of the network namespace; None is the lab's outer one.
        hostname: the answer of ``gethostname()`` there; None if nothing asks.
        sysctls: paths below ``/proc/sys`` and their values.
        plain_devices: devices whose segmentation offloads are turned off.
        ip: lines for ``ip -batch``.
        tc: lines for ``tc -batch``.
    """

    name: str | None
    hostname: str | None
    sysctls: tuple[tuple[str, str], ...]
    plain_devices: tuple[str, ...]
    ip: tuple[str, ...]
    tc: tuple[str, ...]


@dataclass(frozen=True)
class NetworkPlan:
    """A whole lab network.

    Attributes:
        hostname: of the outer namespace.
        cables: lines for ``ip -batch``, run in the outer namespace: all veth pairs.
        namespaces: all namespaces, the outer one last.
        hosts_file: what ``/etc/hosts`` says inside the lab.
    """

    hostname: str
    cables: tuple[str, ...]
    namespaces: tuple[NamespacePlan, ...]
    hosts_file: str


@dataclass(frozen=True)
class _Cable:
    """One veth pair: its two ends as (namespace, device), rate in bit/s, latency in seconds."""

    ends: tuple[tuple[str | None, str], tuple[str | None, str]]
    rate: float | None
    latency: float

    def line(self, number: int) -> str:
        """Return the ``ip`` line that makes the pair.

        No near end has the index of a far end: if both ends of a pair have the same index, Linux
        may take a second to notice that the cable is plugged in.
        """
        (near, port), (far, peer) = self.ends
        near_part = f" netns {near}" if near else ""
        far_part = f" netns {far}" if far else ""
        index = _FIRST_INDEX + number
        return f"link add name {port} index {index}{near_part} type veth peer name {peer}{far_part}"


def host_address(index: int) -> str:
    """Return the lab address of the host at a position of `Topology.hosts`, counted from 0."""
    return str(IPv4Address(int(SUBNET.network_address) + 1 + index))


def switch_namespace(switch: str) -> str:
    """Return the name of a switch's namespace; hosts use their own names, so none clash."""
    return f"switch:{switch}"


def _cables(topology: Topology, scale: float | None) -> list[_Cable]:
    """List all veth pairs: hosts in file order, then links, then the control port."""

    def rate(bandwidth: float) -> float | None:
        return None if scale is None else bandwidth * scale

    hosts = [
        _Cable(
            ((host.name, HOST_DEVICE), (switch_namespace(host.switch), f"h{index}")),
            rate(host.bandwidth),
            host.latency,
        )
        for index, host in enumerate(topology.hosts)
    ]
    links = []
    for index, link in enumerate(topology.links):
        near, far = (switch_namespace(end) for end in link.ends)
        capacity = rate(link.rate)
        links.append(_Cable(((near, f"l{index}"), (far, f"l{index}")), capacity, link.latency))
    control = _Cable(
        ((switch_namespace(topology.switches[0].name), "control"), (None, CONTROL_DEVICE)),
        None,
        0.0,
    )
    return [*hosts, *links, control]


def _shaping(device: str, cable: _Cable, emulate_latency: bool) -> list[str]:
    """Return the ``tc`` lines of one end of a cable: rate, and delay where asked for."""
    if cable.rate is None:
        return []
    tbf = f"tbf rate {round(cable.rate)}bit burst {burst(cable.rate)} limit {QUEUE_BYTES}"
    if not emulate_latency or cable.latency <= 0:
        return [f"qdisc add dev {device} root {tbf}"]
    microseconds = round(cable.latency * 1e6)
    return [
        f"qdisc add dev {device} root handle 1: netem delay {microseconds}us "
        f"limit {_NETEM_PACKETS}",
        f"qdisc add dev {device} parent 1:1 handle 10: {tbf}",
    ]


def burst(rate: float) -> int:
    """Return the depth of a token bucket in bytes for a rate in bit/s.

    4 KB hold two full frames, so a queue is paced packet by packet. Above 100 Mbit/s, more than
    that passes while a timer is late (some 100 µs), and the link would not reach its rate: there
    the bucket holds the data of 400 µs.
    """
    return max(BURST_BYTES, round(rate * 400e-6 / 8))


def _switch_plan(switch: str, ports: list[tuple[str, _Cable]], latency: bool) -> NamespacePlan:
    ip = [
        f"link add name {BRIDGE} type bridge stp_state 0 mcast_snooping 0",
        f"link set dev {BRIDGE} up",
    ]
    for port, _ in ports:
        ip += [f"link set dev {port} master {BRIDGE}", f"link set dev {port} up"]
    tc = [line for port, cable in ports for line in _shaping(port, cable, latency)]
    name = switch_namespace(switch)
    return NamespacePlan(name, None, _SWITCH_SYSCTLS, (), tuple(ip), tuple(tc))


def _host_plan(
    name: str, address: str, cable: _Cable, latency: bool, congestion: str | None
) -> NamespacePlan:
    control = f" congctl {congestion}" if congestion else ""
    ip = (
        "link set dev lo up",
        f"address add {address}/{SUBNET.prefixlen} dev {HOST_DEVICE} noprefixroute",
        f"link set dev {HOST_DEVICE} up",
        f"route add {SUBNET} dev {HOST_DEVICE} src {address}{control}",
    )
    tc = tuple(_shaping(HOST_DEVICE, cable, latency))
    return NamespacePlan(name, name, _HOST_SYSCTLS, (HOST_DEVICE,), ip, tc)


def _outer_plan() -> NamespacePlan:
    ip = (
        "link set dev lo up",
        f"address add {CONTROL_ADDRESS}/{SUBNET.prefixlen} dev {CONTROL_DEVICE}",
        f"link set dev {CONTROL_DEVICE} up",
    )
    return NamespacePlan(None, None, _HOST_SYSCTLS, (CONTROL_DEVICE,), ip, ())


def _hosts_file(topology: Topology) -> str:
    lines = ["127.0.0.1 localhost", f"{CONTROL_ADDRESS} {OUTER_HOSTNAME}"]
    lines += [f"{host_address(i)} {host.name}" for i, host in enumerate(topology.hosts)]
    return "\n".join(lines) + "\n"


def plan_network(
    topology: Topology,
    scale: float | None = 1.0,
    emulate_latency: bool = False,
    congestion: str | None = None,
) -> NetworkPlan:
    """Plan the lab of a topology.

    Args:
        topology: the cluster.
        scale: every link's rate is multiplied by it; None leaves all links without a limit.
        emulate_latency: delay packets on both ends of every cable (the kernel needs netem).
        congestion: the hosts' TCP congestion control; None is the machine's own.

    Returns:
        The plan; the same for the same arguments.
    """
    cables = _cables(topology, scale)
    ports: dict[str | None, list[tuple[str, _Cable]]] = {}
    for cable in cables:
        for namespace, device in cable.ends:
            ports.setdefault(namespace, []).append((device, cable))
    switches = [
        _switch_plan(switch.name, ports.get(switch_namespace(switch.name), []), emulate_latency)
        for switch in topology.switches
    ]
    hosts = [
        _host_plan(host.name, host_address(index), cables[index], emulate_latency, congestion)
        for index, host in enumerate(topology.hosts)
    ]
    return NetworkPlan(
        hostname=OUTER_HOSTNAME,
        cables=tuple(cable.line(number) for number, cable in enumerate(cables)),
        namespaces=(*switches, *hosts, _outer_plan()),
        hosts_file=_hosts_file(topology),
    )


def minimal_plan(emulate_latency: bool = False) -> NetworkPlan:
    """Return a lab of two hosts on one switch, to find out whether labs are possible at all."""
    names = ("a", "b")
    hosts = tuple(Host(name, "s", 10_000_000, 1e-4) for name in names)
    topology = Topology("minimal", (Switch("s", names),), hosts, (), RankMap("block", names))
    return plan_network(topology, emulate_latency=emulate_latency)
