"""The checker's own idea of the schemes of Table 3.5, and the promise of each."""

from __future__ import annotations

from typing import NamedTuple

from stagegen.schedule.model import SyncGraph
from stagegen.schedule.verify.paths import require


class CheckedScheme(NamedTuple):
    """What a scheme has.

    Attributes:
        promise: what it keeps apart, in words; may name the size of the `blocks` and the
            `crowd` that an edge may carry.
        giver: the rank that gives tokens, `sender` or `receiver`; None without tokens.
        apart: whether it has syncs between blocks.
        inside: whether it has syncs within blocks.
        barriers: whether there is a barrier between consecutive blocks.
        dummies: whether there are dummy messages.
    """

    promise: str
    giver: str | None = None
    apart: bool = True
    inside: bool = True
    barriers: bool = False
    dummies: bool = False

    @property
    def blocks(self) -> bool:
        """Whether the size of the blocks matters."""
        return self.apart != self.inside


_STARTS = "messages with contention start {} (sender-based tokens{{crowd}})"
_ARRIVALS = (
    "messages with contention follow each other's arrival{} (receiver-based tokens{{crowd}})"
)
_BARRIERS = "barriers keep blocks of {blocks} apart"

CHECKED_SCHEMES = {
    "none": CheckedScheme("phases are not kept apart (sync none)"),
    "dummy": CheckedScheme("phases are not kept apart (sync dummy)", dummies=True),
    "sender": CheckedScheme(_STARTS.format("in order of their phases"), "sender"),
    "receiver": CheckedScheme(_ARRIVALS.format(""), "receiver"),
    "sender-partial": CheckedScheme(
        _STARTS.format("in order across blocks of {blocks} if they do within"),
        "sender",
        inside=False,
    ),
    "receiver-partial": CheckedScheme(
        _ARRIVALS.format(" across blocks of {blocks} if they do within"), "receiver", inside=False
    ),
    "barrier": CheckedScheme("phases are kept apart by barriers", barriers=True),
    "barrier-partial-none": CheckedScheme(_BARRIERS, barriers=True, apart=False),
    "barrier-partial-sender": CheckedScheme(
        f"{_BARRIERS}; within, {_STARTS.format('in order')}", "sender", False, True, True
    ),
    "barrier-partial-receiver": CheckedScheme(
        f"{_BARRIERS}; within, {_ARRIVALS.format('')}", "receiver", False, True, True
    ),
}


def checked_scheme_of(sync: SyncGraph) -> CheckedScheme:
    """Return the scheme of a schedule, and check that the parameters of its syncs fit it.

    Raises:
        ScheduleError: it is unknown, or has parameters or syncs that the scheme does not have.
    """
    require(sync.scheme in CHECKED_SCHEMES, f"unknown sync {sync.scheme!r}")
    scheme = CHECKED_SCHEMES[sync.scheme]
    for name, number, used in (
        ("block size", sync.block_size, scheme.blocks),
        ("window", sync.window, scheme.giver is not None),
    ):
        require(number >= 1, f"the {name} is {number}, less than 1")
        require(used or number == 1, f"sync {sync.scheme} has no {name}")
    require(
        scheme.giver is not None or not sync.syncs,
        f"a schedule with sync {sync.scheme} cannot hold syncs",
    )
    return scheme


def promise(sync: SyncGraph) -> str:
    """Return in words what a schedule's synchronisation keeps apart."""
    blocks = f"{sync.block_size} phase{'s' if sync.block_size > 1 else ''}"
    crowd = f", window {sync.window}" if sync.window > 1 else ""
    return CHECKED_SCHEMES[sync.scheme].promise.format(blocks=blocks, crowd=crowd)
