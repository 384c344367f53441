"""The lab's network as a plan: a topology becomes lists of ``ip`` and ``tc`` commands.

Pure: nothing runs here; `stagegen.measure.launch.lab.init_process` carries the plan out.

A switch is a network namespace ``switch:NAME`` with a bridge. A host is a network
namespace ``NAME`` with one device ``eth0``, whose other end is a port of its switch's bridge. A
link is a pair of ports of two bridges. Both ends of every pair have a token bucket, which
limits each direction of each cable on its own (full duplex). One more port, without a limit,
leads to the lab's outer namespace, where ``mpiexec`` runs. A long link is two pairs, with a
namespace between them in which a relay holds every frame for the link's latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import TypeAlias

from stagegen.measure.launch.lab.latency import NONE, Delay
from stagegen.topology import Host, RankMap, Switch, Topology

SUBNET = IPv4Network("10.77.0.0/16")
MULTICAST = IPv4Network("224.0.0.0/4")
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
# Where bridges pass frames to iptables, a frame no longer counts for its sender's socket once it is
# in a switch. Otherwise, TCP would hold back what waits in the switches' queues, and hardly fill
# them (TCP Small Queues); no real switch tells senders.
_SWITCH_SYSCTLS = (*_HOST_SYSCTLS[:2], ("net/bridge/bridge-nf-call-iptables", "1"))
_FIRST_INDEX = 10000  # PRRTE keeps an index in 16 bits
_NETEM_PACKETS = 10000  # more than a delay of 10 ms holds at 10 Gbit/s
_RELAY_ENDS = ("near", "far")
_SWITCH = "switch:"
_UNLIMITED = 10_000_000_000  # bit/s: what bounds a relay's memory if links have no limit


#: The end of a cable: the name of a namespace, None for the outer one, and of a device.
_End: TypeAlias = tuple[str | None, str]


@dataclass(frozen=True)
class NamespacePlan:
    """What to do inside one network namespace.

    Attributes:
        name: of the network namespace; None is the lab's outer one.
        hostname: the answer of ``gethostname()`` there; None if nothing asks.
        sysctls: paths below ``/proc/sys`` and their values.
        device: the one through which it talks to hosts; None if it talks to none. Its segmentation
            offloads are turned off, and it knows all neighbours.
        ip: lines for ``ip -batch``.
        tc: lines for ``tc -batch``.
    """

    name: str | None
    hostname: str | None
    sysctls: tuple[tuple[str, str], ...]
    device: str | None
    ip: tuple[str, ...]
    tc: tuple[str, ...]


@dataclass(frozen=True)
class RelayPlan:
    """The relay of a long link.

    Attributes:
        namespace: of the two devices between which it carries frames.
        link: the link's two ends, for people.
        words: the arguments of ``lab_relay.c``.
    """

    namespace: str
    link: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class NetworkPlan:
    """A whole lab network.

    Attributes:
        hostname: of the outer namespace.
        veth_pairs: lines for ``ip -batch``, run in the outer namespace: all veth pairs.
        namespaces: all namespaces, the outer one last.
        hosts_file: what ``/etc/hosts`` says inside the lab.
        neighbours: lines for ``ip -batch``, each without the device's name at its end. They tell
            the Ethernet address of each lab address. All namespaces of a machine share one table of
            what ARP found out. It has room for 1024 entries, and all pairs of 32 hosts need as
            many. Permanent entries do not count.
        relays: those of the long links.
    """

    hostname: str
    veth_pairs: tuple[str, ...]
    namespaces: tuple[NamespacePlan, ...]
    hosts_file: str
    neighbours: tuple[str, ...] = ()
    relays: tuple[RelayPlan, ...] = ()


@dataclass(frozen=True)
class _Cable:
    """One cable: its two ends as (namespace, device), rate in bit/s, latency in seconds.

    It is a veth pair or, with a relay, one from either end to the relay's namespace.
    """

    ends: tuple[_End, _End]
    rate: float | None
    latency: float
    relayed: bool = False

    @property
    def relay_namespace(self) -> str:
        """The namespace of its relay, if it has one."""
        return f"relay:{self.ends[1][1]}"

    def pairs(self) -> tuple[tuple[_End, _End], ...]:
        """Return the ends of its veth pairs."""
        if not self.relayed:
            return (self.ends,)
        middle = ((self.relay_namespace, device) for device in _RELAY_ENDS)
        return tuple(zip(self.ends, middle, strict=True))

    def relay(self) -> RelayPlan:
        """Return what its relay is to do."""
        rate = _UNLIMITED if self.rate is None else round(self.rate)
        numbers = (round(self.latency * 1e9), rate, QUEUE_BYTES)
        ends = (str(namespace).removeprefix(_SWITCH) for namespace, _ in self.ends)
        words = (*_RELAY_ENDS, *map(str, numbers))
        return RelayPlan(self.relay_namespace, " - ".join(ends), words)


def _pair_line(number: int, ends: tuple[_End, _End]) -> str:
    """Return the ``ip`` line that makes a veth pair.

    No near end has the index of a far end: if both ends of a pair have the same index, Linux
    may take a second to notice that the cable is plugged in.
    """
    (near, port), (far, peer) = ends
    near_part = f" netns {near}" if near else ""
    far_part = f" netns {far}" if far else ""
    index = _FIRST_INDEX + number
    return f"link add name {port} index {index}{near_part} type veth peer name {peer}{far_part}"


def host_address(index: int) -> str:
    """Return the lab address of the host at a position of `Topology.hosts`, counted from 0."""
    return str(IPv4Address(int(SUBNET.network_address) + 1 + index))


def _ethernet_address(address: str) -> str:
    """Return the Ethernet address, locally administered, of what has a lab address."""
    high, low = IPv4Address(address).packed[2:]
    return f"02:00:00:00:{high:02x}:{low:02x}"


def _up(device: str, address: str, more: str = "") -> list[str]:
    """Return the ``ip`` lines that bring up a device with a lab address."""
    return [
        f"link set dev {device} address {_ethernet_address(address)}",
        "link set dev lo up",
        f"address add {address}/{SUBNET.prefixlen} dev {device}{more}",
        f"link set dev {device} up",
    ]


def _neighbours(hosts: int) -> tuple[str, ...]:
    """Return the lines that tell the Ethernet addresses of hosts and of the outer namespace."""
    addresses = (*map(host_address, range(hosts)), CONTROL_ADDRESS)
    return tuple(
        f"neigh add {one} lladdr {_ethernet_address(one)} nud permanent dev" for one in addresses
    )


def switch_namespace(switch: str) -> str:
    """Return the name of a switch's namespace; hosts use their own names, so none clash."""
    return f"{_SWITCH}{switch}"


def _cables(topology: Topology, scale: float | None, delay: Delay) -> list[_Cable]:
    """List all cables: hosts in file order, then links, then the control port."""

    def rate(bandwidth: float) -> float | None:
        return None if scale is None else bandwidth * scale

    def relayed(latency: float) -> bool:
        return delay.by == "relay" and delay.covers(latency)

    hosts = [
        _Cable(
            ((host.name, HOST_DEVICE), (switch_namespace(host.switch), f"h{index}")),
            rate(host.bandwidth),
            host.latency,
            relayed(host.latency),
        )
        for index, host in enumerate(topology.hosts)
    ]
    links = []
    for index, link in enumerate(topology.links):
        near, far = (switch_namespace(end) for end in link.ends)
        ends = ((near, f"l{index}"), (far, f"l{index}"))
        links.append(_Cable(ends, rate(link.rate), link.latency, relayed(link.latency)))
    control = _Cable(
        ((switch_namespace(topology.switches[0].name), "control"), (None, CONTROL_DEVICE)),
        None,
        0.0,
    )
    return [*hosts, *links, control]


def _shaping(device: str, cable: _Cable, netem: bool) -> list[str]:
    """Return the ``tc`` lines of one end of a cable: rate, and delay by netem if asked for."""
    if cable.rate is None:
        return []
    tbf = f"tbf rate {round(cable.rate)}bit burst {burst(cable.rate)} limit {QUEUE_BYTES}"
    if not netem or cable.latency <= 0:
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


def _switch_plan(switch: str, ports: list[tuple[str, _Cable]], netem: bool) -> NamespacePlan:
    ip = [
        f"link add name {BRIDGE} type bridge stp_state 0 mcast_snooping 0",
        f"link set dev {BRIDGE} up",
    ]
    for port, _ in ports:
        ip += [f"link set dev {port} master {BRIDGE}", f"link set dev {port} up"]
    tc = [line for port, cable in ports for line in _shaping(port, cable, netem)]
    name = switch_namespace(switch)
    return NamespacePlan(name, None, _SWITCH_SYSCTLS, None, tuple(ip), tuple(tc))


def _host_plan(
    name: str, address: str, cable: _Cable, netem: bool, congestion: str | None
) -> NamespacePlan:
    control = f" congctl {congestion}" if congestion else ""
    ip = (
        *_up(HOST_DEVICE, address, " noprefixroute"),
        f"route add {SUBNET} dev {HOST_DEVICE} src {address}{control}",
        f"route add {MULTICAST} dev {HOST_DEVICE} src {address}",
    )
    tc = tuple(_shaping(HOST_DEVICE, cable, netem))
    return NamespacePlan(name, name, _HOST_SYSCTLS, HOST_DEVICE, ip, tc)


def _relay_space(relay: RelayPlan) -> NamespacePlan:
    ip = tuple(f"link set dev {device} up" for device in _RELAY_ENDS)
    return NamespacePlan(relay.namespace, None, _SWITCH_SYSCTLS, None, ip, ())


def _outer_plan() -> NamespacePlan:
    ip = tuple(_up(CONTROL_DEVICE, CONTROL_ADDRESS))
    return NamespacePlan(None, None, _HOST_SYSCTLS, CONTROL_DEVICE, ip, ())


def _hosts_file(topology: Topology) -> str:
    lines = ["127.0.0.1 localhost", f"{CONTROL_ADDRESS} {OUTER_HOSTNAME}"]
    lines += [f"{host_address(i)} {host.name}" for i, host in enumerate(topology.hosts)]
    return "\n".join(lines) + "\n"


def plan_network(
    topology: Topology,
    scale: float | None = 1.0,
    delay: Delay = NONE,
    congestion: str | None = None,
) -> NetworkPlan:
    """Plan the lab of a topology.

    Args:
        topology: the cluster.
        scale: every link's rate is multiplied by it; None leaves all links without a limit.
        delay: what gives links their latency.
        congestion: the hosts' TCP congestion control; None is the machine's own.

    Returns:
        The plan; the same for the same arguments.
    """
    cables = _cables(topology, scale, delay)
    netem = delay.by == "netem"
    relays = tuple(cable.relay() for cable in cables if cable.relayed)
    pairs = [ends for cable in cables for ends in cable.pairs()]
    ports: dict[str | None, list[tuple[str, _Cable]]] = {}
    for cable in cables:
        for namespace, device in cable.ends:
            ports.setdefault(namespace, []).append((device, cable))
    switches = [
        _switch_plan(switch.name, ports.get(switch_namespace(switch.name), []), netem)
        for switch in topology.switches
    ]
    hosts = [
        _host_plan(host.name, host_address(index), cables[index], netem, congestion)
        for index, host in enumerate(topology.hosts)
    ]
    return NetworkPlan(
        hostname=OUTER_HOSTNAME,
        veth_pairs=tuple(_pair_line(number, ends) for number, ends in enumerate(pairs)),
        namespaces=(*switches, *hosts, *map(_relay_space, relays), _outer_plan()),
        hosts_file=_hosts_file(topology),
        neighbours=_neighbours(len(topology.hosts)),
        relays=relays,
    )


def minimal_plan(delay: Delay = NONE) -> NetworkPlan:
    """Return a lab of two hosts on one switch, to find out whether labs are possible at all."""
    names = ("a", "b")
    hosts = tuple(Host(name, "s", 10_000_000, 1e-4) for name in names)
    topology = Topology("minimal", (Switch("s", names),), hosts, (), RankMap("block", names))
    return plan_network(topology, delay=delay)
