"""From a schedule to the bytes of its picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stagegen.errors import InputError
from stagegen.report.pictures.alltoall import phase_chart
from stagegen.report.pictures.canvas import Canvas
from stagegen.report.pictures.configured import configured_picture
from stagegen.report.pictures.ring import pipeline_picture, ring_picture
from stagegen.report.pictures.tree import tree_picture
from stagegen.schedule import PhaseSchedule, Ring, RingPipeline, Tree
from stagegen.topology import Topology
from stagegen.trees import ConfiguredTree

FORMATS = ("svg", "png")
_PICTURES: dict[type, Callable[[Topology, Any], Canvas]] = {
    PhaseSchedule: phase_chart,
    Ring: ring_picture,
    RingPipeline: pipeline_picture,
    Tree: tree_picture,
    ConfiguredTree: configured_picture,
}


def draw(topology: Topology, schedule: object, output_format: str) -> bytes:
    """Return the picture of a schedule as a file.

    The same schedule gives the same bytes, with the same version of Matplotlib.

    Args:
        topology: the cluster of the schedule.
        schedule: phases, a ring or a tree.
        output_format: one of `FORMATS`.

    Raises:
        StagegenError: Matplotlib is not installed.
        InputError: there is no picture of such a schedule.
    """
    for model, picture in _PICTURES.items():
        if isinstance(schedule, model):
            return picture(topology, schedule).save(output_format)
    raise InputError(
        "there is no picture of this schedule; there are pictures of phases of an alltoall, of "
        "rings and of trees"
    )
