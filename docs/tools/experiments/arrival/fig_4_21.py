"""Faraj 2006, Fig. 4.21: the same as Fig. 4.22, where four processes share a network card."""

from __future__ import annotations

from docs.tools.experiments.arrival._alltoalls import alltoalls

#: 32 ranks, four on each host, as on Lemieux. Its network was Quadrics; here it is a switch, with
#: links that are slow enough for two CPUs.
TOPOLOGY = """\
name: lemieux-32
defaults: {bandwidth: 50Mbit, latency: 50us}
launcher: lab
switches:
  s0: {hosts: "n[0-7]"}
hosts:
""" + "".join(f"  n{host}: {{slots: 4}}\n" for host in range(8))

#: A call of 64 KiB takes 1.2 s at least.
EXPERIMENTS = {"1 B": (32, 10), "64 KiB": (16, 1)}

#: The source says what holds up to 9 and from there up to 129. A call of 64 KiB takes seconds.
FACTORS = (1, 9, 33, 129)

EXPERIMENT = alltoalls(
    "fig_4_21",
    "alltoall algorithms where four ranks share a link, while the imbalance factor grows "
    "(Faraj 2006, Fig. 4.21)",
    TOPOLOGY,
    EXPERIMENTS,
    FACTORS,
)
