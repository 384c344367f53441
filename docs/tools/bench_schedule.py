"""How long schedules take to make, to prove and to compile: the table of ``docs/theory.md``.

Run by ``make bench-schedule``. Every measurement is a process of its own on a single thread; its
peak memory is that of the process, so it includes Python and the cluster. Making the cluster is
not timed. Exits with 1 if a limit is missed, and with a message if something to be measured does
not exist. Writes ``bench_schedule.json`` and ``bench_schedule.svg`` to ``docs/figures``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagegen.catalogue import load_catalogue
from stagegen.generate import Build, Renderer
from stagegen.generate.sources import runtime_sources
from stagegen.generate.toolchain import Toolchain
from stagegen.schedule import alltoall_schedule, broadcast_tree, logical_ring
from stagegen.schedule.alltoall.schedule import alltoall_phases
from stagegen.schedule.verify import verify
from stagegen.topology import Host, Link, RankMap, Switch, Topology

FIGURES = Path(__file__).parents[1] / "figures"
PROBE = Path(__file__).parents[2] / "tests" / "generate" / "rss.c"
HOSTS_PER_SWITCH = 16
GIGABIT = 10**9
MOST_MEMORY = 4 << 20
"""In KiB."""
ROUTINE = "alltoall_aapc_receiver"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def cluster(parents: list[int], hosts_on: list[int], rate: int = GIGABIT) -> Topology:
    """Return switches with so many hosts, switch i + 1 below `parents[i]`, links of one rate."""
    names = (f"n{number}" for number in range(sum(hosts_on)))
    switches = tuple(
        Switch(f"s{index}", tuple(next(names) for _ in range(count)))
        for index, count in enumerate(hosts_on)
    )
    hosts = tuple(Host(n, switch.name, rate, 5e-5) for switch in switches for n in switch.hosts)
    links = tuple(
        Link((f"s{parent}", f"s{index}"), rate, 5e-5)
        for index, parent in enumerate(parents, start=1)
    )
    ranks = RankMap("block", tuple(host.name for host in hosts))
    return Topology("bench", switches, hosts, links, ranks)


def two_level(hosts: int) -> Topology:
    """Return leaf switches of 16 hosts around a core switch without hosts."""
    leaves = -(-hosts // HOSTS_PER_SWITCH)
    places = [min(HOSTS_PER_SWITCH, hosts - HOSTS_PER_SWITCH * leaf) for leaf in range(leaves)]
    return cluster([0] * leaves, [0, *places])


def random_tree(hosts: int) -> Topology:
    """Return a random tree of switches, each below any of those before it, with 16 hosts each."""
    choice = random.Random(hosts)
    count = -(-hosts // HOSTS_PER_SWITCH)
    places = [min(HOSTS_PER_SWITCH, hosts - HOSTS_PER_SWITCH * index) for index in range(count)]
    return cluster([choice.randrange(index) for index in range(1, count)], places)


def proof_of(topology: Topology) -> Callable[[], Any]:
    """Return the proof of a schedule that is made before the clock starts."""
    schedule = alltoall_schedule(topology, "receiver")
    return lambda: verify(topology, schedule)


def compiled(topology: Topology) -> Callable[[], Any]:
    """Return making, proving, writing and compiling a routine, and reading one rank's rows."""
    catalogue, toolchain = load_catalogue(), Toolchain.find()
    algorithm = next(a for a in catalogue.algorithms if a.routine == ROUTINE)
    renderer = Renderer("make bench-schedule", topology.name, topology.hash, catalogue.hash)

    def run() -> dict[str, int]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            build = Build.of(topology, catalogue, [algorithm])
            for file, text in runtime_sources(build, renderer).items():
                (folder / file).write_text(text, encoding="utf-8")
            command = [toolchain.mpicc, "-O2", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra"]
            command += ["-Werror", "-c", f"{ROUTINE}.c", "-o", "routine.o"]
            subprocess.run(command, cwd=folder, check=True)
            return resident(folder, toolchain)

    return run


def resident(folder: Path, toolchain: Toolchain) -> dict[str, int]:
    """Return the KiB of the tables, and those that a process holds that reads one rank's rows."""
    runtime = sorted(file.name for file in folder.glob("*.c") if file.stem != ROUTINE)
    command = [toolchain.mpicc, "-O1", "-D_GNU_SOURCE", f'-DROUTINE="{ROUTINE}.c"', "-I."]
    command += [str(PROBE), *runtime, "-pthread", "-o", "probe"]
    subprocess.run(command, cwd=folder, check=True)
    held = {}
    for what in ("one", "all"):
        output = subprocess.run(["./probe", what], cwd=folder, check=True, stdout=subprocess.PIPE)
        found = dict(re.findall(r"(\w+): *(\d+)", output.stdout.decode()))
        held[what] = int(found["Referenced"])
    return {"own_kib": held["one"], "tables_kib": held["all"]}


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        name: what is measured.
        shape: makes the cluster.
        prepare: returns, for a cluster, what is timed.
        sizes: numbers of hosts to show the growth with.
        limits: seconds that some numbers of hosts may take.
    """

    name: str
    shape: Callable[[int], Topology]
    prepare: Callable[[Topology], Callable[[], Any]]
    sizes: tuple[int, ...]
    limits: dict[int, float]


SMALL, LARGE = (64, 128, 256, 512, 1024), (1_000, 3_000, 10_000, 30_000, 100_000)
PHASES, SYNCS, PROOF = {1024: 5.0}, {1024: 60.0}, {1024: 60.0}
ROWS = (
    Row("AAPC phases", two_level, lambda t: lambda: alltoall_phases(t), SMALL, PHASES),
    Row("AAPC phases, random tree", random_tree, lambda t: lambda: alltoall_phases(t), SMALL, {}),
    Row(
        "AAPC with minimal synchronisation",
        two_level,
        lambda t: lambda: alltoall_schedule(t, "receiver"),
        SMALL,
        SYNCS,
    ),
    Row(
        "AAPC with minimal synchronisation, random tree",
        random_tree,
        lambda t: lambda: alltoall_schedule(t, "receiver"),
        SMALL,
        SYNCS,
    ),
    Row("proof of AAPC", two_level, proof_of, SMALL, PROOF),
    Row("proof of AAPC, random tree", random_tree, proof_of, SMALL, PROOF),
    Row("AAPC proven, written as C and compiled", two_level, compiled, SMALL[:4], {512: 120.0}),
    Row("LR1", random_tree, lambda t: lambda: logical_ring(t, "lr1"), LARGE, {100_000: 5.0}),
    Row("LR3", random_tree, lambda t: lambda: logical_ring(t, "lr3"), LARGE[:3], {10_000: 10.0}),
    Row(
        "linear tree",
        random_tree,
        lambda t: lambda: broadcast_tree(t, 0, "linear"),
        LARGE,
        {100_000: 5.0},
    ),
    Row(
        "Algorithm 5",
        random_tree,
        lambda t: lambda: broadcast_tree(t, 0, "binary"),
        (256, 512, 1024, 3_000, 10_000),
        {1024: 1.0, 10_000: 20.0},
    ),
)


def measure_here(row: Row, hosts: int) -> dict[str, Any]:
    """Measure in this process."""
    timed = row.prepare(row.shape(hosts))
    begin = time.perf_counter()
    result = timed()
    seconds = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    more = result if isinstance(result, dict) else {}
    return {"hosts": hosts, "seconds": round(seconds, 3), "peak_kib": memory, **more}


def measure(index: int, hosts: int) -> dict[str, Any]:
    """Measure in a process of its own; stop with its message if it fails."""
    command = [sys.executable, __file__, "--one", str(index), str(hosts)]
    done = subprocess.run(
        command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{ROWS[index].name}, {hosts} hosts: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def holds(row: Row, found: dict[str, Any]) -> bool:
    """Tell whether a measurement is within its limits."""
    own = found.get("own_kib", 0) <= max(64, found.get("tables_kib", 0) // 20)
    in_time = found["seconds"] <= row.limits.get(found["hosts"], float("inf"))
    return in_time and found["peak_kib"] <= MOST_MEMORY and own


def line(row: Row, found: dict[str, Any]) -> str:
    """Return a line of the Markdown table."""
    limit = row.limits.get(found["hosts"])
    cells = [
        row.name,
        f"{found['hosts']:,}",
        "" if limit is None else f"{limit:g} s",
        f"{found['seconds']:.2f} s",
        f"{found['peak_kib'] / 1024:.0f} MiB",
        "yes" if holds(row, found) else "**no**",
    ]
    return f"| {' | '.join(cells)} |"


def plot(numbers: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Draw how the times grow, with both axes logarithmic."""
    import matplotlib as mpl  # noqa: PLC0415 - an optional dependency
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency

    mpl.rcParams.update({"svg.hashsalt": "stagegen", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    for number, (name, found) in enumerate(numbers.items()):
        hosts = [each["hosts"] for each in found]
        seconds = [max(each["seconds"], 1e-3) for each in found]
        style = {"marker": "osv^"[number % 4], "linestyle": ("-", "--")["random" in name]}
        colour = mpl.colormaps["tab20"](2 * number % 20 + number // 10)
        axes.loglog(hosts, seconds, markersize=4, linewidth=1, label=name, color=colour, **style)
    axes.loglog([64, 2048], [0.12, 0.12 * 32**2], color="0.6", linewidth=0.8, linestyle=":")
    axes.annotate("quadratic", (2200, 100), color="0.4", fontsize=8)
    axes.set_xlabel("hosts")
    axes.set_ylabel("seconds")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def main() -> int:
    """Measure all rows, print them, write numbers and plot, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, type=int, metavar=("ROW", "HOSTS"), help="measure here")
    parser.add_argument("--only", default="", help="rows whose name contains this; writes nothing")
    arguments = parser.parse_args()
    if arguments.one:
        row, hosts = arguments.one
        print(json.dumps(measure_here(ROWS[row], hosts)))
        return 0
    print("| | hosts | limit | time | peak memory | holds |\n|---|---|---|---|---|---|")
    numbers, well = {}, True
    for index, row in enumerate(ROWS):
        if arguments.only not in row.name:
            continue
        numbers[row.name] = []
        for hosts in row.sizes:
            found = measure(index, hosts)
            numbers[row.name].append(found)
            well = well and holds(row, found)
            if hosts == row.sizes[-1] or hosts in row.limits:
                print(line(row, found), flush=True)
    if not arguments.only:
        text = json.dumps(numbers, indent=1)
        (FIGURES / "bench_schedule.json").write_text(f"{text}\n", encoding="utf-8")
        plot(numbers, FIGURES / "bench_schedule.svg")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
