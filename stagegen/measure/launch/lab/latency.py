"""Which links of the lab have their latency, and what gives it to them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stagegen.errors import InputError
from stagegen.topology import Topology, format_latency, parse_latency

VARIABLE = "STAGEGEN_LAB_LATENCY"
LEAST = 1e-3  # seconds: links of this latency and more have a relay by default


@dataclass(frozen=True)
class Delay:
    """What emulates latency in a lab.

    Attributes:
        by: `netem`, a queue discipline of the kernel; `relay`, a program between the two ends of
            a link (``drivers/lab_relay.c``); or `none`.
        least: links of this latency and more are delayed, in seconds.
    """

    by: str
    least: float

    @property
    def means(self) -> str:
        """What is emulated by what, in words."""
        limit = format_latency(self.least) if self.by == "relay" else ""
        return {
            "netem": "emulated on every link (netem)",
            "relay": f"emulated on links of {limit} and more (relay)",
            "none": "not emulated",
        }[self.by]

    def covers(self, latency: float) -> bool:
        """Return whether a link of a latency, in seconds, is delayed."""
        return latency > 0 and latency >= self.least

    def record(self, topology: Topology) -> str:
        """Return what `Environment.latency` says of labs of a topology."""
        if not any(map(self.covers, _latencies(topology))):
            return "none"
        if self.by == "netem":
            return "emulated"
        return "relay" if self.least == LEAST else f"relay:{format_latency(self.least)}"

    def note(self, topology: Topology) -> str:
        """Return a sentence about the latency of a topology's links."""
        count = sum(map(self.covers, _latencies(topology)))
        here = f"; here are {count}" if self.by == "relay" else ""
        return f"latency {self.means}{here}"


NETEM = Delay("netem", 0.0)
RELAY = Delay("relay", LEAST)
NONE = Delay("none", math.inf)


def _latencies(topology: Topology) -> list[float]:
    return [host.latency for host in topology.hosts] + [link.latency for link in topology.links]


def read_delay(text: str) -> Delay:
    """Return what a value of STAGEGEN_LAB_LATENCY asks for.

    Args:
        text: `netem`, `relay`, `none`, or `relay:TIME` for a relay on links of that latency.

    Raises:
        InputError: it is none of these.
    """
    named = {one.by: one for one in (NETEM, RELAY, NONE)}
    name, colon, least = text.partition(":")
    if not colon and name in named:
        return named[name]
    try:
        if name == "relay":
            return Delay(name, parse_latency(least))
    except ValueError as error:
        raise InputError(f"{VARIABLE}={text}: {error}") from error
    raise InputError(f"{VARIABLE}={text}: not netem, relay, relay:TIME (relay:100us) or none")
