"""What an experiment is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docs.tools.target import Target

#: What is kept of points, as JSON, by their names; those that were not measured yet are missing.
Found = Mapping[str, Any]


def _whole(result: Any) -> Any:
    return result


def _no_targets(_found: Found) -> Sequence[Target]:
    return ()


def _no_pictures(_found: Found) -> Mapping[Path, str]:
    return {}


@dataclass(frozen=True)
class Experiment:
    """An experiment: its points are measured one by one, and each is kept.

    Attributes:
        name: that of its file, of its folder and of its place on its page.
        what: a line about it.
        points: by name, what measures each. It gets a folder of its own for what it makes, and
            returns JSON. A point takes minutes at the most, so that little is lost by a stop.
        report: Markdown of what was found; not called before there is a point.
        page: where the report stands.
        targets: what was promised.
        summary: returns what is kept of a point's result: what report and targets need.
        pictures: SVG that the report shows, by its file.
        congestion: the congestion control of points that have their own; others have that of the
            environment.
    """

    name: str
    what: str
    points: Mapping[str, Callable[[Path], Any]]
    report: Callable[[Found], str]
    page: Path
    targets: Callable[[Found], Sequence[Target]] = _no_targets
    summary: Callable[[Any], Any] = _whole
    pictures: Callable[[Found], Mapping[Path, str]] = _no_pictures
    congestion: Mapping[str, str] = field(default_factory=dict)
