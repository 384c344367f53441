"""Rebuilds configured trees from the tables of their routines."""

from __future__ import annotations

from stagegen.audit.tables import Tables


def configured_rows(tables: Tables) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return each node of a configured tree as its worker and its contributors.

    Raises:
        ScheduleError: the tables contradict each other.
    """
    worker, contributor = tables.array("worker"), tables.array("contributor")
    tables.require_constants({"NODES": len(worker)})
    first = tables.divided("first", len(worker), len(contributor), "contributors")
    return tuple(
        (one, contributor[first[node] : first[node + 1]]) for node, one in enumerate(worker)
    )
