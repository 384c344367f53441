"""Rebuilds configured trees from the tables of their C files."""

from __future__ import annotations

import re

from stagegen.audit.c_text import only
from stagegen.audit.routine import BuildRoutine
from stagegen.audit.tables import Tables
from stagegen.errors import ScheduleError

_TREE = r"\bconst struct configured_tree tree = \{&owner, (\d+), worker, first, contributor\};"
_CALL = r"\breturn coll_configured_tree_(\w+)\(call, cc, &tree\b"


def configured_rows(
    tables: Tables, routine: BuildRoutine
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return each node of a configured tree as its worker and its contributors.

    Raises:
        ScheduleError: the tables contradict each other, or the code takes them in another way.
    """
    told = int(only(_TREE, tables.code, "struct configured_tree tree with its tables")[1])
    served = only(_CALL, tables.code, "call along the tree")[1]
    if served != routine.collective:
        raise ScheduleError(f"it does the {served} and not the {routine.collective}")
    if len(re.findall(r"\btree\b", tables.code)) != 2:
        raise ScheduleError("the code changes the tree, or takes it elsewhere too")
    worker, contributor = tables.array("worker"), tables.array("contributor")
    if len(worker) != told:
        raise ScheduleError(f"worker[] has {len(worker)} numbers, and the tree {told} nodes")
    first = tables.divided("first", told, len(contributor), "contributors")
    return tuple(
        (one, contributor[first[node] : first[node + 1]]) for node, one in enumerate(worker)
    )
