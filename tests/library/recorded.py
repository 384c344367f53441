"""A log as a tuning run leaves it, made from a cost model in place of a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from stagegen import __version__
from stagegen.catalogue import load_catalogue
from stagegen.measure.records import Candidate, Timing
from stagegen.topology import Topology, load_topology
from stagegen.tune.scope import Options
from stagegen.tune.tuner import Tuned, tune
from tests.measure.fakes import ENVIRONMENT, Model
from tests.tune.recorder import Recorder

SIZES = (1, 1024, 16384, 65536)


def cost(candidate: Candidate, size: int) -> float:
    """Topology-specific routines are slow to start and cheap per byte."""
    specific = any(word in candidate.algorithm for word in ("aapc", "logical", "topology"))
    spread = len(candidate.spec) % 7
    latency, per_byte = (4e-3, 1e-7) if specific else (1e-3, 6e-7)
    return latency * (1 + spread / 10) + size * per_byte * (1 + spread / 10)


def record(
    topology_file: Path,
    log: Path,
    wrong: frozenset[str] = frozenset(),
    options: Options | None = None,
) -> tuple[Topology, Tuned]:
    """Write a log for a topology, and return what was decided while it was made."""
    topology, catalogue = load_topology(topology_file), load_catalogue()
    options = options or Options(catalogue.collectives, SIZES, Timing("barrier"), 20.0)
    catalogue = catalogue.selecting(options.selection)
    header: Mapping[str, object] = {
        "kind": "log",
        "version": 1,
        "stagegen": __version__,
        "cluster": topology.name,
        "topology_hash": topology.hash,
        "catalogue_hash": catalogue.hash,
        **options.to_json(),
        "routines": dict(catalogue.hashes),
    }
    records: list = [
        header,
        {"kind": "session", "environment": ENVIRONMENT.to_json(), "mpi": "a model"},
    ]
    source = Recorder(Model(cost, noise=0.01, wrong=wrong), records)
    tuned = tune(topology, catalogue, options, source, lambda: True)
    log.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return topology, tuned
