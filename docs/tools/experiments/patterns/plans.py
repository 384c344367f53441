"""Persistent collectives other than alltoall: their plans against the MPI library's own forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments import lab
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import table
from docs.tools.experiments.patterns._clusters import CLUSTERS, topology_file
from docs.tools.experiments.patterns.persistent import rows_in
from docs.tools.experiments.patterns.tuned import CONGESTION
from docs.tools.target import Target
from stagegen.catalogue import load_catalogue
from stagegen.generate import Toolchain, run_make
from stagegen.library import write_library
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE
from stagegen.topology import load_topology
from stagegen.tune.candidates import default_candidate
from stagegen.tune.decision import CLUSTER, DecisionTable, Rule, Table

PAIRS = 9

#: Long and short messages, in bytes: of the whole message, or what a rank sends.
WHOLE, OWN, SHORT = 1 << 20, 64 << 10, 8

#: What is planned: a routine whose steps the plan has, by collective, and the size.
PLANS: Sequence[tuple[str, str, int]] = (
    ("allgather", "logical_ring_lr1", OWN),
    ("allgather", "simple", SHORT),
    ("allgatherv", "logical_ring_lr1", WHOLE),
    ("allreduce", "logical_ring_lr1", WHOLE),
    ("allreduce", "recursive_doubling", SHORT),
    ("barrier", "dissemination", 0),
    ("barrier", "binomial", 0),
    ("bcast", "topology_linear", WHOLE),
    ("bcast", "binomial", SHORT),
    ("gather", "linear", OWN),
    ("reduce", "topology_linear", WHOLE),
    ("reduce", "binomial", SHORT),
    ("reduce_scatter", "logical_ring", WHOLE),
    ("reduce_scatter_block", "logical_ring", OWN),
    ("scatter", "linear", OWN),
)


def _library(topology_file: Path, folder: Path) -> Path:
    """Return a library with these routines; the program's call is forced to one of them."""
    if not (folder / "libcoll.so").exists():
        catalogue, topology = load_catalogue(), load_topology(topology_file)
        ranks, hosts = topology.rank_count, len(topology.hosts)
        tables = []
        for collective in sorted({collective for collective, _, _ in PLANS}):
            routines = [routine for name, routine, _ in PLANS if name == collective]
            first, *others = (
                default_candidate(catalogue.find(collective, routine)) for routine in routines
            )
            rule = Rule(0, first, alternatives=tuple(others))
            tables.append(Table.exactly(collective, CLUSTER, ranks, hosts, (rule,)))
        decision = DecisionTable(topology.name, topology.hash, catalogue.hash, False, tuple(tables))
        write_library(folder, topology, catalogue, decision, {})
        run_make(folder, Toolchain.find(), "libcoll.so")
    return folder


def _measure(cluster: str, congestion: str, plan: tuple[str, str, int], folder: Path) -> Any:
    """Return the medians, the least and the most of a job."""
    collective, routine, size = plan
    top = folder.parents[1]
    topology = topology_file(cluster, folder)
    library = _library(topology, top / "plans-libraries" / cluster)
    program = lab.compiled(top / "compiled", "persistent")
    variables = {CONGESTION_VARIABLE: congestion, "LIBCOLL_FORCE": f"{collective}={routine}"}
    words = (size, PAIRS, collective)
    text = lab.run(topology, program, *words, library=library, variables=variables)
    return rows_in(text)


#: What each point is of, by its name.
POINTS: Mapping[str, tuple[str, str, tuple[str, str, int]]] = {
    f"{cluster} {congestion} {plan[0]}/{plan[1]}": (cluster, congestion, plan)
    for cluster in CLUSTERS
    for congestion in CONGESTION
    for plan in PLANS
}


def _report(found: Found) -> str:
    where = [f"{cluster} {congestion}" for cluster in CLUSTERS for congestion in CONGESTION]
    rows = [
        [
            f"{collective}, `{routine}`",
            str(size),
            *(_cell(found.get(f"{place} {collective}/{routine}")) for place in where),
        ]
        for collective, routine, size in PLANS
    ]
    places = [f"`{place.split()[0]}`, {place.split()[1]}" for place in where]
    return table(["collective, routine", "bytes", *places], rows)


def _cell(job: Any) -> str:
    """Return the medians in ms, and the median of the ratios; nothing if it was not measured."""
    if job is None:
        return ""
    return f"{job['planned'][0]:.4g}, {job['native'][0]:.4g}: {job['ratio'][0]:.2f}"


def _targets(found: Found) -> Sequence[Target]:
    """Return that no plan for long messages is slower than native: short calls are noise here."""
    ratios = {point: job["ratio"][0] for point, job in found.items() if POINTS[point][2][2] >= OWN}
    return [Target.at_least(0.97, ratios, "native over a plan of another persistent collective")]


EXPERIMENT = Experiment(
    name="plans",
    what="persistent collectives with plans, and the MPI library's own persistent forms",
    points={name: partial(_measure, *one) for name, one in POINTS.items()},
    report=_report,
    page=Path("docs/persistent.md"),
    targets=_targets,
    congestion={name: congestion for name, (_, congestion, _) in POINTS.items()},
)
