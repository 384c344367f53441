"""What a tuning has left on the disk: its decision table, its log, and the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagegen.errors import InputError, what_is_wrong
from stagegen.measure.launch.base import Environment
from stagegen.measure.live import environments
from stagegen.measure.log import read_log
from stagegen.measure.records import Candidate, Check, Failure, Measurement
from stagegen.topology import WHOLE, Topology, load_topology
from stagegen.tune.decision import DecisionTable
from stagegen.tune.loss import Measured, Times
from stagegen.tune.measured import names_of_tables
from stagegen.tune.scope import Options

DECISION, LOG, TOPOLOGY = "decision.json", "measurements.jsonl", "topology.yaml"


@dataclass(frozen=True)
class Recorded:
    """A tuning, or those parts of it that exist.

    Attributes:
        path: the folder or file that was asked for.
        decision: the table; None if only the log was asked for.
        header: of the log; None if there is no log.
        records: of the log.
        topology: the cluster; None if its file is not there.
    """

    path: Path
    decision: DecisionTable | None
    header: Mapping[str, Any] | None
    records: Sequence[Mapping[str, Any]]
    topology: Topology | None

    @property
    def topology_hash(self) -> str:
        """The hash of the topology that was tuned for; empty in a damaged log."""
        if self.decision is not None:
            return self.decision.topology_hash
        return str((self.header or {}).get("topology_hash", ""))

    @property
    def environments(self) -> list[Environment]:
        """The environments of the log's sessions."""
        return environments(self.records)

    def times(self) -> Times | None:
        """Return the times of all candidates that are right and never failed; None without a log.

        A candidate that was wrong or failed at one size serves at none. The last check of a
        candidate counts: it is made again if an earlier one did not end.
        """
        if self.header is None:
            return None
        checks = [Check.from_json(r) for r in self.records if r["kind"] == "check"]
        last = {(one.collective, one.communicator, one.candidate): one for one in checks}
        out = {(one.collective, one.candidate.algorithm) for one in last.values() if one.wrong}
        failures = (Failure.from_json(r) for r in self.records if r["kind"] == "failure")
        out |= {(one.collective, one.candidate.algorithm) for one in failures}
        return Times(
            Measurement.from_json(left)
            for record in self.records
            if record["kind"] == "measurement" and (left := _without(record, out))
        )

    def measured(self) -> Measured:
        """Return which communicators of the log the tables are made from.

        Raises:
            InputError: the topology is not known, or the log's header is damaged.
        """
        if self.topology is None:
            raise InputError(
                "the cluster's topology is not beside it; name its file with --topology", self.path
            )
        names = (WHOLE,) if self.header is None else Options.from_json(self.header).communicators
        return names_of_tables(self.topology, names)


def _without(record: Mapping[str, Any], out: set[tuple[str, str]]) -> dict[str, Any] | None:
    """Return a measurement without the algorithms that are out; None if nothing is left."""
    seconds = {
        spec: times
        for spec, times in record["seconds"].items()
        if (record["collective"], Candidate.from_spec(spec).algorithm) not in out
    }
    return {**record, "seconds": seconds} if seconds else None


def read_recorded(path: Path, topology_file: Path | None = None) -> Recorded:
    """Read a generated folder, a decision table, or a log (a file that ends in ``.jsonl``).

    Args:
        path: what to read.
        topology_file: the cluster's file, if that is not ``topology.yaml`` beside the others.

    Raises:
        InputError: it is none of these, or is damaged; the topology is another one.
    """
    if not path.exists():
        raise InputError(
            "there is nothing of this name; give a folder of `stagegen tune`, a decision table or "
            "a log",
            path,
        )
    folder = path if path.is_dir() else path.parent
    files = [path]
    if path.is_dir():
        files = [one for name in (DECISION, LOG) if (one := folder / name).is_file()]
        if not files:
            problem = f"not a generated folder: it has no {DECISION} and no {LOG}"
            raise InputError(f"{problem}; give one of `stagegen tune`", path)
    tables = [read_decision(one) for one in files if one.suffix != ".jsonl"]
    logs = [read_log(one) for one in files if one.suffix == ".jsonl"]
    header, records = logs[0] if logs else (None, [])
    found = Recorded(path, tables[0] if tables else None, header, records, None)
    beside = folder / TOPOLOGY
    given = (beside if beside.is_file() else None, topology_file)
    sources = [one for one in given if one is not None]
    for source in sources:
        topology = load_topology(source)
        if topology.hash == found.topology_hash:
            return Recorded(path, found.decision, header, records, topology)
    if topology_file is not None or (path.is_dir() and sources):
        problem = f"{path} was tuned for another topology than this"
        raise InputError(f"{problem}; name the file that it was tuned with", sources[-1])
    return found


_ADVICE = "make it again with `stagegen tune --from-log`"


def read_decision(path: Path) -> DecisionTable:
    """Read ``decision.json``.

    Raises:
        InputError: the file cannot be read, or is no decision table.
    """
    try:
        form = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        problem = f"cannot read the decision table: {what_is_wrong(error)}"
        raise InputError(f"{problem}; {_ADVICE}", path) from error
    if not isinstance(form, dict):
        raise InputError(f"not a decision table: expected {{…}}; {_ADVICE}", path)
    try:
        return DecisionTable.from_json(form)
    except InputError as error:
        raise InputError(error.message, path) from error
