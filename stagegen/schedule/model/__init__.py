"""Schedules as plain data: what the schedulers make and the checker proves."""

from stagegen.schedule.model.alltoall import Message, PhaseSchedule, Sync, SyncGraph
from stagegen.schedule.model.pattern import PATTERN_CONSTRUCTIONS, PatternSchedule, Piece, Wait
from stagegen.schedule.model.ring import RING_CONSTRUCTIONS, Ring, RingPipeline, Transfer
from stagegen.schedule.model.tree import TREE_CONSTRUCTIONS, SharedEdge, Tree, least_height

__all__ = [
    "PATTERN_CONSTRUCTIONS",
    "RING_CONSTRUCTIONS",
    "TREE_CONSTRUCTIONS",
    "Message",
    "PatternSchedule",
    "PhaseSchedule",
    "Piece",
    "Ring",
    "RingPipeline",
    "SharedEdge",
    "Sync",
    "SyncGraph",
    "Transfer",
    "Tree",
    "Wait",
    "least_height",
]
