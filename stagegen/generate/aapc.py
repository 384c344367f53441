"""The alltoall schedules of one topology, for every scheme and value of its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

from stagegen.generate.tables import aapc_tables
from stagegen.repository import Algorithm, Parameter
from stagegen.schedule import SCHEMES, PhaseSchedule, schedule_rows
from stagegen.schedule.alltoall import alltoall_phases, with_sync
from stagegen.schedule.capacity import edge_capacities
from stagegen.schedule.verify import Proof, verify_alltoall
from stagegen.topology import Topology

#: Parameters that choose among the tokens of a table.
_CHOOSING = ("block_size", "window")


class Aapc:
    """Phases, made once, with what keeps them apart in each scheme."""

    def __init__(self, topology: Topology):
        self._topology = topology

    @cached_property
    def _phases(self) -> PhaseSchedule:
        return alltoall_phases(self._topology)

    @lru_cache(maxsize=64)  # noqa: B019 - lives as long as the scheduler of its topology
    def _schedule(self, kind: str, block_size: int = 1, window: int = 1) -> PhaseSchedule:
        return with_sync(self._topology, self._phases, kind, block_size, window)

    def narrowed(self, parameter: Parameter) -> Parameter:
        """Return the parameter without the values that are the same as another algorithm or value.

        A block of all phases is the scheme without blocks or without tokens; windows may all
        have the same tokens.
        """
        values = parameter.values
        if parameter.name == "block_size":
            values = tuple(v for v in values if v < len(self._phases.phases)) or values[:1]
        if parameter.name == "window":
            values = tuple(self._different_windows(values))
        default = parameter.default if parameter.default in values else values[-1]
        return replace(parameter, values=values, default=default)

    def _different_windows(self, windows: tuple[int, ...]) -> Iterator[int]:
        seen = set()
        for window in windows:
            tokens = self._schedule("receiver", window=window).sync.syncs
            if tokens not in seen:
                yield window
            seen.add(tokens)

    @lru_cache(maxsize=64)  # noqa: B019 - likewise
    def _proof(self, kind: str, **choice: int) -> Proof:
        return verify_alltoall(self._topology, self._schedule(kind, **choice))

    def proofs(self, algorithm: Algorithm) -> Mapping[str, Proof]:
        """Return what is proven of the schedule of each value.

        Raises:
            ScheduleError: a schedule fails its proof.
        """
        kind = algorithm.kind or ""
        return {label: self._proof(kind, **choice) for label, choice in _choices(algorithm)}

    def tables(self, algorithm: Algorithm) -> dict[str, Any]:
        """Return what ``alltoall/_aapc.c.j2`` writes: one table for all values."""
        kind = algorithm.kind or ""
        names = [parameter.name for parameter in algorithm.parameters]
        if "window" in names:
            schedules = [self._schedule(kind, **choice) for _, choice in _choices(algorithm)]
        else:
            schedules = [self._with_all_tokens(kind)]
        rows = schedule_rows(*schedules, placed=self._placed(kind))
        window = max(schedule.sync.window for schedule in schedules)
        return {
            **aapc_tables(rows, "window" in names),
            "parameters": names,
            "sends_most": SCHEMES[kind].sends(window),
        }

    def _placed(self, kind: str) -> bool:
        """Tell whether the proof of the tokens depends on the order within phases."""
        capacities = edge_capacities(self._topology).values()
        return SCHEMES[kind].giver is not None and any(c != 1 for c in capacities)

    def _with_all_tokens(self, kind: str) -> PhaseSchedule:
        """Return the schedule with the size of blocks that leaves out no token."""
        scheme = SCHEMES[kind]
        if not (scheme.blocks and scheme.barriers):
            return self._schedule(kind)
        return self._schedule(kind, block_size=max(1, len(self._phases.phases)))


def _choices(algorithm: Algorithm) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each value of the parameter that chooses among the tokens, and how it is called."""
    for parameter in algorithm.parameters:
        if parameter.name in _CHOOSING:
            yield from ((f"{parameter.name} {v}", {parameter.name: v}) for v in parameter.values)
            return
    yield "", {}
