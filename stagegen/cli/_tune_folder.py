"""Writes the folder of ``stagegen tune``: library, report, and a copy of the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stagegen.adaptive.known import KNOWN, Known
from stagegen.generate import Build
from stagegen.generate.write import write_file
from stagegen.library import write_library
from stagegen.measure.live import environments
from stagegen.measure.log import keep
from stagegen.measure.records import Check, Failure, Measurement
from stagegen.report import render_report
from stagegen.tune.recorded import DECISION
from stagegen.tune.tuner import Tuned

_EVENTS = logging.getLogger(__name__)


def _say_that_it_is_wrong(found: Check | Failure, why: str) -> None:
    """Say that a routine failed its check, at the start or right before it was to be timed."""
    _EVENTS.warning(
        "wrong result, never chosen: %s %s on %s: %s",
        *(found.collective, found.candidate.spec, found.communicator, why),
    )


def _say_what_is_dropped(folder: Path) -> None:
    """Say which rules and times the folder has from elsewhere: tuning makes tables without them."""
    made = [row for row in _rows(folder / DECISION, "rules") if row.get("reconfigured")]
    if made:
        _EVENTS.warning(
            "dropped: rules that `stagegen reconfigure` made, with their trees: %s; run it again "
            "with --library to have them",
            ", ".join(row["algorithm"] for row in made),
        )
    rules = [row["learned"] for row in _rows(folder / DECISION, "rules") if row.get("learned")]
    times = [row["learned"] for row in _rows(folder / KNOWN, "times") if row.get("learned")]
    files = sorted({name for one in (*rules, *times) for name in one["files"]})
    if files:
        _EVENTS.warning(
            "dropped: %d rules and %d known times that `stagegen learn` took from %s; "
            "run it again with these files to have them",
            *(len(rules), len(times), ", ".join(files)),
        )


def _rows(file: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of all tables of a file; nothing if it is none of ours."""
    try:
        tables = json.loads(file.read_text(encoding="utf-8"))["tables"]
        return [row for table in tables for row in table[name]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def copy_log(log: Path, to: Path) -> None:
    """Copy a log, and keep another one that is there."""
    text = log.read_text(encoding="utf-8")
    if to.exists() and to.read_text(encoding="utf-8") != text:
        keep(to)
    write_file(to, text)


def write_folder(
    folder: Path,
    build: Build,
    tuned: Tuned,
    records: Sequence[Mapping[str, Any]],
    adaptive: bool = False,
) -> None:
    """Write library and report, and say what was chosen.

    Args:
        folder: to write.
        build: of all that can run.
        tuned: the decision, and its measurements.
        records: of the log.
        adaptive: whether the library's calls can adapt.
    """
    topology, catalogue = build.topology, build.catalogue
    seen = environments(records)
    measured = (Measurement.from_json(one) for one in records if one["kind"] == "measurement")
    report = render_report(topology, catalogue, tuned, seen, measured)
    known = Known.of(tuned.outcomes) if adaptive else None
    _say_what_is_dropped(folder)
    extra = {"report.html": report}
    write_library(folder, topology, catalogue, tuned.decision, extra, known, everything=build)
    for check in tuned.wrong:
        _say_that_it_is_wrong(check, check.first_wrong)
    for failure in (one for found in (*tuned.outcomes, *tuned.parts) for one in found.failures):
        if failure.in_check:
            _say_that_it_is_wrong(failure, failure.told)
        else:
            _EVENTS.warning(
                "failed when timed, never chosen: %s %s on %s at %d bytes: %s",
                *(failure.collective, failure.candidate.spec, failure.communicator),
                *(failure.size, failure.why),
            )
    if tuned.decision.spending:
        _EVENTS.info("%s", tuned.decision.spending.text)
    if not tuned.decision.representative:
        _EVENTS.warning("not representative: this machine was measured, not the cluster")
    if tuned.decision.mixed:
        _EVENTS.warning("environments are mixed: %s differ", ", ".join(tuned.decision.mixed))
