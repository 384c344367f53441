"""Extended ring scheduling: which phases serve the messages between two subtrees.

Source: Faraj (2006), section 3.2.2.2 and Lemma 2. With subtrees of M_0 ≥ M_1 ≥ … ≥ M_{k-1}
ranks, the M_i·M_j messages t_i→t_j take M_i·M_j consecutive phases, so each subtree sends at
most one and receives at most one message in a phase. With M_i = 1 for all i this is the
ring scheduling of Table 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GlobalPhases:
    """The phases of the messages between subtrees.

    Attributes:
        sizes: the number of ranks of each subtree, in descending order.
    """

    sizes: tuple[int, ...]

    @cached_property
    def _before(self) -> Ints:
        """The total number of ranks in the subtrees before each one."""
        return np.concatenate(([0], np.cumsum(self.sizes)))

    @cached_property
    def count(self) -> int:
        """The number of phases, M_0·(|M| - M_0), which is the load of the bottleneck."""
        return self.sizes[0] * (sum(self.sizes) - self.sizes[0])

    def start(self, i: int | Ints, j: int | Ints) -> Ints:
        """Return the first phase of the messages t_i→t_j, i ≠ j; for arrays element by element."""
        sizes, before = np.array(self.sizes), self._before
        later = sizes[i] * (before[j] - before[np.add(i, 1)])
        earlier = self.count - sizes[j] * (before[np.add(i, 1)] - before[np.add(j, 1)])
        first: Ints = np.where(np.greater(j, i), later, earlier)
        return first
