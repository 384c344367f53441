"""The alltoall schedules of one topology: phases made once, and each scheme of tokens for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from stagegen.catalogue.algorithm import Parameter
from stagegen.schedule import PhaseSchedule
from stagegen.schedule.alltoall.schedule import alltoall_phases, with_sync
from stagegen.topology import Topology


class AlltoallSchedules:
    """Phases, made once, and the synchronisation of each scheme."""

    def __init__(self, topology: Topology):
        self.topology = topology
        self._made: dict[tuple[str, int, int], PhaseSchedule] = {}

    @cached_property
    def _phases(self) -> PhaseSchedule:
        return alltoall_phases(self.topology)

    @property
    def phase_count(self) -> int:
        """How many phases there are."""
        return len(self._phases.phases)

    def schedule(self, scheme_name: str, block_size: int = 1, window: int = 1) -> PhaseSchedule:
        """Return the phases with the tokens of a scheme.

        Args:
            scheme_name: one of :data:`stagegen.schedule.SCHEMES`.
            block_size: phases of a block, for schemes with blocks.
            window: messages that may be under way on an edge of capacity 1, with tokens.
        """
        asked = scheme_name, block_size, window
        if asked not in self._made:
            self._made[asked] = with_sync(self.topology, self._phases, *asked)
        return self._made[asked]

    def narrowed(self, parameter: Parameter) -> Parameter:
        """Return the parameter without values that equal another value or another algorithm.

        A block of all phases is the scheme without blocks or without tokens; windows may all
        have the same tokens.
        """
        if parameter.name == "block_size":
            all_values = parameter.listed
            values = tuple(v for v in all_values if v < self.phase_count) or all_values[:1]
        elif parameter.name == "window":
            values = tuple(self._different_windows(parameter.listed))
        else:
            return parameter
        default = parameter.default if parameter.default in values else values[-1]
        return replace(parameter, values=values, default=default)

    def _different_windows(self, windows: tuple[int, ...]) -> Iterator[int]:
        seen = set()
        for window in windows:
            tokens = self.schedule("receiver", window=window).sync.syncs
            if tokens not in seen:
                yield window
            seen.add(tokens)
