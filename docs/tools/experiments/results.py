"""Keeps what the points of experiments bring: one JSON file each, beside what made it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from stagegen.generate.write import write_file

_RESULT = "result.json"


def top_of(group: str) -> Path:
    """Return the folder that has the folders of a group's points."""
    return Path("generated") / f"bench-{group}"


def folder_of(experiment: Experiment, point: str, top: Path) -> Path:
    """Return the folder of a point."""
    return top / experiment.name / re.sub(r"[^A-Za-z0-9.=-]+", "-", point)


def is_measured(experiment: Experiment, point: str, top: Path) -> bool:
    """Whether a point's result is there."""
    return (folder_of(experiment, point, top) / _RESULT).exists()


def measure(experiment: Experiment, point: str, top: Path) -> None:
    """Measure a point, and keep its result."""
    folder = folder_of(experiment, point, top)
    folder.mkdir(parents=True, exist_ok=True)
    keep(experiment, point, experiment.points[point](folder), top)


def keep(experiment: Experiment, point: str, result: Any, top: Path) -> None:
    """Keep the result of a point."""
    path = folder_of(experiment, point, top) / _RESULT
    write_file(path, json.dumps(result, ensure_ascii=False) + "\n")


def found(experiment: Experiment, top: Path) -> Found:
    """Return the results of the points that were measured, in the experiment's order."""
    return {
        point: json.loads((folder_of(experiment, point, top) / _RESULT).read_text("utf-8"))
        for point in experiment.points
        if is_measured(experiment, point, top)
    }
