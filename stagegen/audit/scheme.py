"""Finds the scheme of synchronisation that a C file carries out, from its code."""

from __future__ import annotations

import re

from stagegen.audit.c_file import CFile
from stagegen.errors import ScheduleError
from stagegen.schedule import SCHEMES, Scheme

_PAYS = re.compile(
    r"(?:\*index == (SEND)|state->(sent)\.open == 0) \? pay\("
    r"|(has_arrived)\(streams, at\)\) \{"
    r"(?:\s|coll_stamp\([^;]*;)*COLL_TRY\(pay\("
)
_COUNTS = re.compile(r"/ block_size (==|!=) token\[OTHER_PHASE\] / block_size")
_IN_WINDOW = "token[WINDOWS] >> (state->parameters->window - 1) & 1"
AHEAD_MOST = 4
"""Receives that a rank can post at a time."""

SENDS_MOST = 5
"""Messages that a rank can have requests for: those of the largest window, and one more."""

_ROUNDS = re.compile(
    r"const int place = window->number\+\+ % window->width;[^}]*"
    r"PMPI_Wait\(&window->receives\[place\][^}]*PMPI_Wait\(&window->sends\[place\][^}]*"
    r"PMPI_Irecv\([^;]*&window->receives\[place\]\)\);[^}]*"
    r"PMPI_Isend\([^;]*&window->sends\[place\]\)\);"
)
"""A step of rounds: it waits for an earlier one before it takes that one's requests."""

_NAMED = {**{kind: kind for kind in SCHEMES}, "rounds": "none"}
"""The scheme of each name: rounds keep the order of the phases, and have no synchronisation."""

_GIVERS = {"SEND": "sender", "sent": "sender", "has_arrived": "receiver"}


def scheme_kind(c_file: CFile) -> str:
    """Return the name of the scheme, one of `SYNC_KINDS`.

    Raises:
        ScheduleError: the code carries out none, or its requests overlap.
    """
    found = {_GIVERS["".join(told)] for told in _PAYS.findall(c_file.code)}
    has_tokens = "token_field" in c_file.fields
    if has_tokens != (len(found) == 1):
        raise ScheduleError("the code does not show when a rank gives tokens")
    scheme = Scheme(
        giver=found.pop() if found else None,
        blocks="->block_size" in c_file.code,
        barriers="PMPI_Barrier(" in c_file.code,
        dummies="DUMMY_TO" in c_file.fields.get("step_field", ()),
    )
    kinds = [kind for kind, known in SCHEMES.items() if known == scheme]
    if not kinds:
        raise ScheduleError(f"the code matches no scheme of synchronisation: {scheme}")
    if scheme.giver and scheme.blocks:
        which = "==" if scheme.barriers else "!="
        if _COUNTS.findall(c_file.code) != [which]:
            raise ScheduleError("the code does not choose the tokens of the scheme's blocks")
    if ("WINDOWS" in c_file.fields.get("token_field", ())) != (_IN_WINDOW in c_file.code):
        raise ScheduleError("the code does not choose the tokens of a window")
    _check_requests(c_file, scheme)
    _check_name(c_file, kinds[0])
    return kinds[0]


def _check_requests(c_file: CFile, scheme: Scheme) -> None:
    """Check that the numbers of requests leave room for parts of messages and for tokens."""
    if "struct window {" in c_file.code:
        if not _ROUNDS.search(c_file.code):
            raise ScheduleError("the code does not wait for the requests that a step takes")
        return
    if scheme.giver is None:
        names = ["RECEIVE", *["DUMMY_RECEIVE"] * scheme.dummies, "SEND"]
        names += [*["DUMMY_SEND"] * scheme.dummies, "REQUESTS"]
        c_file.require(**{name: at for at, name in enumerate(names)})
        return
    if scheme.giver == "receiver":
        ahead, sends = AHEAD_MOST, c_file.constant("SENDS_MOST")
        pieces = 2
        tokens = pieces * ahead
        out = tokens + c_file.constant("AWAITED_MOST")
        c_file.require(AHEAD_MOST=ahead, PIECES=pieces, IN=0, TOKENS=tokens, OUT=out)
        c_file.require(REQUESTS=out + pieces * sends)
        return
    pieces = 2 if "send_segment(" in c_file.code else 1
    send = pieces + c_file.constant("AWAITED_MOST")
    c_file.require(PIECES=pieces, RECEIVE=0, TOKENS=pieces, SEND=send, REQUESTS=send + pieces)


def _check_name(c_file: CFile, kind: str) -> None:
    """Check that the file's name is that of its scheme, if it names one."""
    named = c_file.name.removesuffix(".c").partition("_group_")[0].removeprefix("alltoall_aapc_")
    told = named.removesuffix("_window").replace("_", "-")
    if _NAMED.get(told, kind) != kind:
        raise ScheduleError(f"the code is of scheme {kind}, not of {told}")
