"""What a tuned folder says: what serves, and the times behind it."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from stagegen.catalogue.algorithm import NATIVE


@dataclass(frozen=True)
class Tuned:
    """What serves one collective at one size, and the times of the candidates.

    Attributes:
        chosen: what serves by the first rule, as ``NAME:parameter=value``.
        seconds: the median time of each candidate: in the launches that decide, where candidates
            took turns, or in scouting, if none of these launches timed it.
        is_decided: whether what serves and the native routine were in those launches.
    """

    chosen: str
    seconds: dict[str, float]
    is_decided: bool


def read_tuned(folder: Path) -> Tuned:
    """Read the decision and the log of a folder that was tuned for one collective at one size.

    The log has smaller sizes, too, if the calls are long, and other collectives: of parts, and the
    allreduce by which ranks recognise a pattern.
    """
    decision = json.loads((folder / "decision.json").read_text(encoding="utf-8"))
    (table, *_) = decision["tables"]
    rule = table["rules"][0]
    own = [f"{name}={value}" for name, value in sorted(rule["parameters"].items())]
    chosen = ":".join([rule["algorithm"], *own])
    scouted: dict[str, list[float]] = defaultdict(list)
    raced: dict[str, list[float]] = defaultdict(list)
    log = (folder / "measurements.jsonl").read_text(encoding="utf-8").splitlines()
    records = [
        record
        for record in map(json.loads, log)
        if record["kind"] == "measurement" and record["collective"] == table["collective"]
    ]
    size = max(record["size"] for record in records)
    for record in records:
        if record["size"] == size:
            for spec, times in record["seconds"].items():
                (raced if record["launch"] else scouted)[spec] += times
    seconds = {spec: median(times) for spec, times in sorted({**scouted, **raced}.items())}
    return Tuned(chosen, seconds, chosen in raced and NATIVE in raced)
