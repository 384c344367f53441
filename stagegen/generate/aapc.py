"""The C tables of the alltoall schedules of one topology, and the proof of each schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stagegen.catalogue import Algorithm
from stagegen.catalogue.alltoall_schedules import AlltoallSchedules
from stagegen.generate.tables import aapc_tables
from stagegen.schedule import SCHEMES, PhaseSchedule, schedule_rows
from stagegen.schedule.alltoall.capacity import edge_capacities
from stagegen.schedule.verify import Proof, verify_alltoall

#: Parameters that choose among the tokens of a table.
_CHOOSING = ("block_size", "window")


class AapcTables:
    """The tables of every scheme, for all values of its parameters."""

    def __init__(self, schedules: AlltoallSchedules):
        self._schedules = schedules
        self._proofs: dict[tuple[str, int, int], Proof] = {}

    def _proof(self, schedule: PhaseSchedule) -> Proof:
        graph = schedule.sync
        asked = graph.scheme, graph.block_size, graph.window
        if asked not in self._proofs:
            self._proofs[asked] = verify_alltoall(self._schedules.topology, schedule)
        return self._proofs[asked]

    def proofs(self, algorithm: Algorithm) -> Mapping[str, Proof]:
        """Return the proof of the schedule for each value.

        Raises:
            ScheduleError: a schedule fails its proof.
        """
        scheme_name = algorithm.construction or ""
        return {
            label: self._proof(self._schedules.schedule(scheme_name, **choice))
            for label, choice in _choices(algorithm)
        }

    def tables(self, algorithm: Algorithm) -> dict[str, Any]:
        """Return the values for ``alltoall/_tables.h.j2``: one table for all values."""
        scheme_name = algorithm.construction or ""
        names = [parameter.name for parameter in algorithm.parameters]
        if "window" in names:
            choices = _choices(algorithm)
            schedules = [self._schedules.schedule(scheme_name, **choice) for _, choice in choices]
        else:
            schedules = [self._with_all_tokens(scheme_name)]
        return aapc_tables(schedule_rows(*schedules, placed=self._placed(scheme_name)))

    def _placed(self, scheme_name: str) -> bool:
        """Tell whether the proof of the tokens depends on the order within phases."""
        capacities = edge_capacities(self._schedules.topology).values()
        return SCHEMES[scheme_name].giver is not None and any(c != 1 for c in capacities)

    def _with_all_tokens(self, scheme_name: str) -> PhaseSchedule:
        """Return the schedule with the size of blocks that leaves out no token."""
        scheme = SCHEMES[scheme_name]
        if not (scheme.blocks and scheme.barriers):
            return self._schedules.schedule(scheme_name)
        return self._schedules.schedule(scheme_name, block_size=max(1, self._schedules.phase_count))


def _choices(algorithm: Algorithm) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each value of the parameter that chooses among the tokens, and its name."""
    for parameter in algorithm.parameters:
        if parameter.name in _CHOOSING:
            yield from ((f"{parameter.name} {v}", {parameter.name: v}) for v in parameter.listed)
            return
    yield "", {}
