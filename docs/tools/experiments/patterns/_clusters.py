"""The clusters of these experiments: hosts dealt to four switches in turn; a random tree."""

from __future__ import annotations

from pathlib import Path

from docs.tools.bench.plan import CLUSTERS as BENCH
from docs.tools.bench.plan import FIXED, SEEDS

#: By name; the random one has four switches too, in a tree, and its ranks are in any order.
CLUSTERS = {name: BENCH[name] for name in (FIXED.name, f"random-{SEEDS[-1]}")}


def topology_file(name: str, folder: Path) -> Path:
    """Return the topology file of a cluster; a random one is written into a folder."""
    return CLUSTERS[name].file(folder)
