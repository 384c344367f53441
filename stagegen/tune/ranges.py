"""From measured shapes to all: which measurements serve a shape that was not measured.

The measured shape that is nearest serves (:func:`stagegen.tune.shapes.nearest_shape`), with the
routines that gain enough there (:func:`stagegen.tune.elsewhere.elsewhere`). On hosts of
the cluster it serves however far it is. About other hosts, nothing is known: there, a measurement
serves up to a factor of :data:`REACH` in hosts and in ranks per host, in either direction, and
beyond that the native routine does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stagegen.tune.decision import GENERIC, ONE_HOST, OTHER, Table
from stagegen.tune.shapes import Range, Shape, nearest

#: The largest factor, up or down, from a measured number to one that it decides for on hosts that
#: are not of the cluster.
REACH = 2


def of_all_shapes(
    collective: str, measured: Sequence[Table], predictions: Sequence[Table] | None = None
) -> Iterator[Table]:
    """Yield the tables of a collective for any shape, the most special ones first.

    A shape that was measured has a table of its own, before the one that predicts what shapes
    near to it need.

    Args:
        collective: which one.
        measured: tables for exactly the measured shapes.
        predictions: the same for shapes that are near to them; None: ``measured``.
    """
    own = [table for table in measured if table.collective == collective]
    others = own if predictions is None else predictions
    of_kind: dict[str, list[Table]] = {kind: [] for kind in GENERIC}
    for table in own:
        if table.communicator in GENERIC:
            of_kind[table.communicator].append(table)
        else:
            yield table
    for kind, tables in of_kind.items():
        if kind != OTHER:
            yield from sorted(tables, key=lambda table: table.shape)
        yield from _predicted(
            kind, [t for t in others if (t.collective, t.communicator) == (collective, kind)]
        )


def _predicted(kind: str, predictions: Sequence[Table]) -> Iterator[Table]:
    """Yield the tables of a kind for the shapes that are nearest to each measured one."""
    by_shape = {table.shape: table for table in predictions}
    for hosts, near_hosts in nearest(shape.hosts for shape in by_shape):
        on_these = (shape.ranks_per_host for shape in by_shape if shape.hosts == hosts)
        for ranks, near_ranks in nearest(on_these):
            table = by_shape[Shape(hosts, ranks)]
            yield replace(
                table,
                hosts=_served(kind, hosts, near_hosts),
                ranks_per_host=near_ranks if kind != OTHER else _in_reach(ranks, near_ranks),
                confirmed=False,
            )


def _served(kind: str, hosts: int, near: Range) -> Range:
    """Return the numbers of hosts that a measured number serves: one, or several."""
    if kind == ONE_HOST:
        return Range(1, 1)
    several = near.within(2, None)
    return _in_reach(hosts, several) if kind == OTHER else several


def _in_reach(number: int, near: Range) -> Range:
    return near.within(-(-number // REACH), number * REACH)
