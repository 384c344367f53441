"""What ``stagegen tune`` leaves in its folder: library, report, and a copy of the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stagegen.catalogue import Catalogue
from stagegen.generate.write import write_file
from stagegen.library import write_library
from stagegen.measure.live import environments
from stagegen.measure.log import keep
from stagegen.measure.records import Measurement
from stagegen.report import render_report
from stagegen.topology import Topology
from stagegen.tune.tuner import Tuned

_EVENTS = logging.getLogger(__name__)


def copy_log(log: Path, to: Path) -> None:
    """Copy a log, and keep another one that is there."""
    text = log.read_text(encoding="utf-8")
    if to.exists() and to.read_text(encoding="utf-8") != text:
        keep(to)
    write_file(to, text)


def write_folder(
    folder: Path,
    topology: Topology,
    catalogue: Catalogue,
    tuned: Tuned,
    records: Sequence[Mapping[str, Any]],
) -> None:
    """Write library and report, and say what was chosen."""
    seen = environments(records)
    measured = (Measurement.from_json(one) for one in records if one["kind"] == "measurement")
    report = render_report(topology, catalogue, tuned, seen, measured)
    write_library(folder, topology, catalogue, tuned.decision, {"report.html": report})
    for check in tuned.wrong:
        _EVENTS.warning(
            "wrong result, never chosen: %s %s on %s: %s",
            *(check.collective, check.candidate.spec, check.communicator, check.first_wrong),
        )
    for failure in (failure for outcome in tuned.outcomes for failure in outcome.failures):
        _EVENTS.warning(
            "failed when timed, never chosen: %s %s on %s at %d bytes: %s",
            *(failure.collective, failure.candidate.spec, failure.communicator),
            *(failure.size, failure.why),
        )
    if not tuned.decision.representative:
        _EVENTS.warning("not representative: this machine was measured, not the cluster")
    if tuned.decision.mixed:
        _EVENTS.warning("environments are mixed: %s differ", ", ".join(tuned.decision.mixed))
