"""Random clusters whose links have rates of their own."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from stagegen.topology import Topology
from tests.strategies import topologies

RATES = (10**7, 10**8, 3 * 10**8, 10**9, 25 * 10**8)


def with_rates(topology: Topology, hosts: dict[str, int], links: dict[str, int]) -> Topology:
    """The topology with other rates: of hosts by name, of links by the name of their second end."""
    return replace(
        topology,
        hosts=tuple(replace(h, bandwidth=hosts.get(h.name, h.bandwidth)) for h in topology.hosts),
        links=tuple(
            replace(k, bandwidth=links.get(k.ends[1], k.bandwidth)) for k in topology.links
        ),
    )


@st.composite
def rated_topologies(draw, max_hosts: int = 12, max_switches: int = 6, max_ranks: int = 14):
    """Random trees; the rates of all links are drawn from five."""
    topology = draw(topologies(max_hosts, max_switches, max_ranks))
    rate = st.sampled_from(RATES)
    return with_rates(
        topology,
        {host.name: draw(rate) for host in topology.hosts},
        {link.ends[1]: draw(rate) for link in topology.links},
    )
