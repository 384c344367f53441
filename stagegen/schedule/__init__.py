"""Schedules for a cluster's tree: alltoall phases, logical rings, broadcast trees, bounds.

Pure algorithms on a topology; they return data that :mod:`stagegen.schedule.verify` checks
independently.
"""

from stagegen.schedule.alltoall.rows import Rows, Step, Token, schedule_rows
from stagegen.schedule.alltoall.schedule import alltoall_schedule
from stagegen.schedule.alltoall.sync.schemes import SCHEME_NAMES, SCHEMES, Scheme
from stagegen.schedule.bounds.lower import Bound, lower_bound, lower_bound_of_sizes
from stagegen.schedule.model import (
    PATTERN_CONSTRUCTIONS,
    RING_CONSTRUCTIONS,
    TREE_CONSTRUCTIONS,
    Message,
    PatternSchedule,
    PhaseSchedule,
    Piece,
    Ring,
    RingPipeline,
    SharedEdge,
    Sync,
    SyncGraph,
    Tree,
    Wait,
)
from stagegen.schedule.patterns.schedule import aggregated, pattern_schedule
from stagegen.schedule.rings.pipeline import ring_pipeline
from stagegen.schedule.rings.ring import depth_first_positions, depth_first_ranks, logical_ring
from stagegen.schedule.trees.tree import broadcast_tree, reduce_tree

__all__ = [
    "PATTERN_CONSTRUCTIONS",
    "RING_CONSTRUCTIONS",
    "SCHEMES",
    "SCHEME_NAMES",
    "TREE_CONSTRUCTIONS",
    "Bound",
    "Message",
    "PatternSchedule",
    "PhaseSchedule",
    "Piece",
    "Ring",
    "RingPipeline",
    "Rows",
    "Scheme",
    "SharedEdge",
    "Step",
    "Sync",
    "SyncGraph",
    "Token",
    "Tree",
    "Wait",
    "aggregated",
    "alltoall_schedule",
    "broadcast_tree",
    "depth_first_positions",
    "depth_first_ranks",
    "logical_ring",
    "lower_bound",
    "lower_bound_of_sizes",
    "pattern_schedule",
    "reduce_tree",
    "ring_pipeline",
    "schedule_rows",
]
