"""Keeps what the points of experiments bring: docs/results/, one file for each experiment.

What made a result, such as logs and libraries, is in the point's folder below `generated/`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docs.tools import kept
from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.stagegen import environment
from stagegen.generate.write import write_file
from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE

#: What is kept of a point. One that was taken over from the page is *carried*: its log was lost.
_RESULT, _CARRIED = "result", "carried"

#: All that a point returned, in its folder.
_FILE = "result.json"


def top_of(group: str) -> Path:
    """Return the folder that has the folders of a group's points."""
    return Path("generated") / f"bench-{group}"


def folder_of(experiment: Experiment, point: str, top: Path) -> Path:
    """Return the folder of a point."""
    return top / experiment.name / re.sub(r"[^A-Za-z0-9.=-]+", "-", point)


def file_of(experiment: Experiment, top: Path) -> Path:
    """Return the file that keeps the results of an experiment of a group."""
    return kept.FOLDER / top.name.removeprefix("bench-") / f"{experiment.name}.json"


def is_measured(experiment: Experiment, point: str, top: Path) -> bool:
    """Whether a point was measured, here or elsewhere; a result that was carried does not count."""
    known = _points(experiment, top).get(point)
    return known is not None and _CARRIED not in known


def measure(experiment: Experiment, point: str, top: Path) -> None:
    """Measure a point, and keep its result."""
    folder = folder_of(experiment, point, top)
    folder.mkdir(parents=True, exist_ok=True)
    result = experiment.points[point](folder)
    write_file(folder / _FILE, json.dumps(result, ensure_ascii=False) + "\n")
    keep(experiment, point, result, top)


def keep(experiment: Experiment, point: str, result: Any, top: Path) -> None:
    """Keep what the report needs of a point's result; other results stay as they are."""
    told = result.get("environment") if isinstance(result, dict) else None
    own = experiment.congestion
    congestion = own[point] if point in own else environment({})[CONGESTION_VARIABLE]
    setting = {"congestion_control": congestion, **kept.facts(told)}
    one = {"environment": setting, _RESULT: experiment.summary(result)}
    every = {**_points(experiment, top), point: one}
    kept.write(file_of(experiment, top), {name: every[name] for name in sorted(every)})


def found(experiment: Experiment, top: Path) -> Found:
    """Return the results of the points that are kept, in the experiment's order."""
    known = _points(experiment, top)
    return {point: known[point][_RESULT] for point in experiment.points if point in known}


def _points(experiment: Experiment, top: Path) -> dict[str, Any]:
    return kept.read(file_of(experiment, top)) or {}
