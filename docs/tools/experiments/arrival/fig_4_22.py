"""Faraj 2006, Fig. 4.22: alltoall algorithms while the imbalance factor grows."""

from __future__ import annotations

from docs.tools.experiments.arrival._alltoalls import alltoalls

#: One switch with 16 hosts, as the source's Beowulf cluster; 20 Mbit/s, which two CPUs can emulate.
TOPOLOGY = """\
name: beowulf-16
defaults: {bandwidth: 20Mbit, latency: 50us}
launcher: lab
switches:
  s0: {hosts: "n[0-15]"}
"""

#: A call of 64 KiB takes a second here.
EXPERIMENTS = {"1 B": (32, 10), "64 KiB": (16, 1)}

EXPERIMENT = alltoalls(
    "fig_4_22",
    "alltoall algorithms while the imbalance factor grows (Faraj 2006, Fig. 4.22)",
    TOPOLOGY,
    EXPERIMENTS,
)
