"""Schedules for a cluster's tree: alltoall phases, logical rings, broadcast trees, bounds.

Pure algorithms on a topology; what they return is data that :mod:`stagegen.schedule.verify`
checks independently.
"""

from stagegen.schedule.alltoall import alltoall_schedule
from stagegen.schedule.bounds import Bound, lower_bound, lower_bound_of_sizes
from stagegen.schedule.model import Message, PhaseSchedule, Sync, SyncGraph
from stagegen.schedule.pipelines import RingPipeline
from stagegen.schedule.rings.pipeline import ring_pipeline
from stagegen.schedule.rings.ring import depth_first_positions, depth_first_ranks, logical_ring
from stagegen.schedule.rows import Rows, Step, Token, schedule_rows
from stagegen.schedule.shapes import RING_KINDS, TREE_KINDS, Ring, SharedEdge, Tree
from stagegen.schedule.sync.schemes import SCHEMES, SYNC_KINDS, Scheme
from stagegen.schedule.trees.tree import broadcast_tree, reduce_tree

__all__ = [
    "RING_KINDS",
    "SCHEMES",
    "SYNC_KINDS",
    "TREE_KINDS",
    "Bound",
    "Message",
    "PhaseSchedule",
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
    "alltoall_schedule",
    "broadcast_tree",
    "depth_first_positions",
    "depth_first_ranks",
    "logical_ring",
    "lower_bound",
    "lower_bound_of_sizes",
    "reduce_tree",
    "ring_pipeline",
    "schedule_rows",
]
