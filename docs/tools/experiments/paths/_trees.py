"""What the experiments about trees share: clusters, libraries of one tree, Gsum in the lab."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from docs.tools.experiments import lab
from stagegen.generate import Toolchain, run_make
from stagegen.generate.write import write_file
from stagegen.library.tree import Served, write_tree_library
from stagegen.topology import Topology, load_topology
from stagegen.trees import ConfiguredTree, make_tree, shape_of

#: Hosts, and ranks on each: the shapes of Bongo, Anshus and Bjørndalen that two CPUs can carry.
SHAPES = ((4, 8), (8, 4))

FAST, TRACED = "libcoll.so", "libcoll-trace.so"


def topology_text(hosts: int, slots: int) -> str:
    """Return the topology file of one switch."""
    return "\n".join(
        (
            f"name: paths-{hosts}x{slots}",
            "defaults: {bandwidth: 100Mbit, latency: 50us}",
            "launcher: lab",
            f'switches: {{s0: {{hosts: "n[0-{hosts - 1}]"}}}}',
            "hosts:",
            *(f"  n{number}: {{slots: {slots}}}" for number in range(hosts)),
            "",
        )
    )


def cluster(folder: Path, hosts: int, slots: int) -> tuple[Path, Topology]:
    """Write the topology file into a folder; return it and what it says."""
    file = folder / "cluster.yaml"
    write_file(file, topology_text(hosts, slots))
    return file, load_topology(file)


def shaped(topology: Topology, shape: str) -> ConfiguredTree:
    """Return the tree of a shape."""
    return make_tree(topology, shape_of(shape), shape)


def built(folder: Path, topology: Topology, tree: ConfiguredTree, on_host: int) -> Path:
    """Build the allreduce library of a tree, fast and traced; return a folder with copies of both.

    The sources are in a folder that all trees of a cluster share, so little is compiled anew.
    """
    shared = folder.parent / f"library-{topology.name}"
    write_tree_library(shared, topology, "allreduce", [Served(tree, on_host)])
    toolchain = Toolchain.find()
    run_make(shared, toolchain)
    run_make(shared, toolchain, variables=("TRACE=1",))
    made = folder / f"{tree.name}-{on_host}"
    made.mkdir(parents=True, exist_ok=True)
    shutil.copy2(shared / FAST, made / FAST)
    shutil.copy2(shared / TRACED, made / TRACED)
    return made


def gsum(
    topology: Path,
    folder: Path,
    calls: int,
    library: Path | None,
    variables: Mapping[str, str] | None = None,
    size: int = 4,
) -> float:
    """Run Gsum in the lab; return the seconds of a sum.

    Args:
        topology: the cluster's file.
        folder: where the program is built.
        calls: sums.
        library: that is preloaded; None for the MPI library alone.
        variables: of the environment.
        size: bytes of a sum.

    Raises:
        ValueError: it says no time.
    """
    program = lab.compiled(folder.parents[1] / "compiled", "gsum")
    text = lab.run(topology, program, calls, size, preload=library, variables=variables)
    found = re.search(r"^right: .* in ([0-9.]+) s$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"no time in {text!r}")
    return float(found[1]) / calls
