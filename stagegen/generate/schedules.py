"""Schedules in the shape of C tables, each with the summary of its proof.

A schedule is verified before it is written: :meth:`TableMaker.make` raises where the
independent checker finds a fault. A routine with parameters is verified for each of their
values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from stagegen.catalogue import Algorithm
from stagegen.catalogue.algorithm import OWN_TABLES
from stagegen.catalogue.alltoall_schedules import AlltoallSchedules
from stagegen.catalogue.cluster_schedules import ClusterSchedules, schedules_of
from stagegen.generate.aapc import AapcTables
from stagegen.generate.tables import numbers
from stagegen.generate.trees import KaryTrees
from stagegen.schedule import logical_ring
from stagegen.schedule.verify import Proof, verify_order, verify_ring
from stagegen.topology import Topology

_Values = dict[str, Any]
_Made = tuple[_Values, Mapping[str, Proof]]


@lru_cache(maxsize=32)
def table_maker_of(topology: Topology) -> TableMaker:
    """Return the maker of a topology's tables; it keeps what several routines need."""
    return TableMaker(schedules_of(topology))


class TableMaker:
    """Makes the values for rendering a template that ``needs`` a schedule."""

    def __init__(self, schedules: ClusterSchedules):
        self._schedules = schedules
        self._topology = schedules.topology
        self._aapc_tables: dict[AlltoallSchedules, AapcTables] = {}

    def make(self, algorithm: Algorithm) -> tuple[_Values, tuple[str, ...]]:
        """Return the template's ``schedule`` and the lines of its proof.

        Raises:
            ScheduleError: the schedule fails its proof.
        """
        makers = {
            "aapc": self._aapc,
            "hosts": self._hosts,
            "leaders": self._in_order,
            "order": self._in_order,
            "ring": self._ring,
            "sites": self._in_order,
            "switches": self._in_order,
            "tree": self._tree,
            OWN_TABLES: self._brought,
        }
        values, proofs = makers[algorithm.needs or ""](algorithm)
        return values, tuple(f"proven: {line}" for line in summary(proofs))

    def _aapc(self, algorithm: Algorithm) -> _Made:
        schedules = self._schedules.alltoall_of(algorithm)
        aapc = self._aapc_tables.setdefault(schedules, AapcTables(schedules))
        return aapc.tables(algorithm), aapc.proofs(algorithm)

    def _hosts(self, algorithm: Algorithm) -> _Made:
        tables, proofs = self._aapc(algorithm)
        leaders = self._schedules.hierarchy.leaders
        values = {**tables, "host_count": len(leaders), "leaders": numbers(leaders)}
        return values, proofs

    def _ring(self, algorithm: Algorithm) -> _Made:
        ring = logical_ring(self._topology, algorithm.construction or "")
        values = {"ring": numbers(ring.order), "place_of": numbers(_inverse(ring.order))}
        return values, {"": verify_ring(self._topology, ring)}

    def _in_order(self, _: Algorithm) -> _Made:
        """No tables: ranks are taken from the depth-first order, which is that of the ring LR1."""
        proof = verify_order(self._topology, logical_ring(self._topology, "lr1"))
        return {}, {"": proof}

    def _brought(self, _: Algorithm) -> _Made:
        """No tables: the template brings its own, which stagegen cannot prove."""
        return {}, {}

    def _tree(self, algorithm: Algorithm) -> _Made:
        trees = KaryTrees(self._topology, algorithm)
        return trees.tables(), trees.proofs()


def _inverse(order: tuple[int, ...]) -> list[int]:
    places = [0] * len(order)
    for place, position in enumerate(order):
        places[position] = place
    return places


def summary(proofs: Mapping[str, Proof]) -> Iterator[str]:
    """Yield the lines of several proofs: first the common ones, then those of each alone."""
    lines = {label: proof.lines() for label, proof in proofs.items()}
    if not lines:
        return
    everywhere = set.intersection(*map(set, lines.values()))
    yield from (line for line in next(iter(lines.values())) if line in everywhere)
    for label, own in lines.items():
        different = [line for line in own if line not in everywhere]
        if different:
            yield f"{label}: {'; '.join(different)}"
