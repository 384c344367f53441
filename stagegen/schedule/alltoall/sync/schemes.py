"""The schemes that keep the phases of an alltoall apart: one row each.

Source: Faraj (2006), section 3.2.3 and Table 3.5. The dissertation's *sender all* is `sender`
here, and its *barrier all* is `barrier`. Sender- and receiver-based tokens also take a window
(see :mod:`stagegen.schedule.alltoall.sync.synchronise`), which the dissertation does not have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Scheme:
    """A way to keep phases apart.

    Attributes:
        giver: the rank that gives the token for a later message: the `sender` or the
            `receiver` of the earlier message; None without tokens.
        blocks: whether the phases form blocks of a size that is a parameter.
        barriers: whether a barrier separates consecutive blocks (of one phase each, if the scheme
            has no block size).
        dummies: whether dummy messages keep idle ranks busy.
    """

    giver: str | None = None
    blocks: bool = False
    barriers: bool = False
    dummies: bool = False

    def keeps(
        self, first_phase: npt.ArrayLike, then_phase: npt.ArrayLike, block_size: int
    ) -> npt.NDArray[np.bool_]:
        """Tell which syncs the scheme has, by the phases of their two messages.

        A scheme without blocks has all syncs; with blocks and barriers, those within a block; with
        blocks and no barriers, those between blocks.
        """
        same = np.asarray(first_phase) // block_size == np.asarray(then_phase) // block_size
        return same == self.barriers if self.blocks else np.full_like(same, fill_value=True)


SCHEMES = {
    "none": Scheme(),
    "dummy": Scheme(dummies=True),
    "sender": Scheme(giver="sender"),
    "sender-partial": Scheme(giver="sender", blocks=True),
    "receiver": Scheme(giver="receiver"),
    "receiver-partial": Scheme(giver="receiver", blocks=True),
    "barrier": Scheme(barriers=True),
    "barrier-partial-none": Scheme(blocks=True, barriers=True),
    "barrier-partial-sender": Scheme(giver="sender", blocks=True, barriers=True),
    "barrier-partial-receiver": Scheme(giver="receiver", blocks=True, barriers=True),
}
"""The ten schemes of Table 3.5 by their names here."""
SCHEME_NAMES = tuple(SCHEMES)
