"""Finds the scheme of synchronisation of a schedule, from the constants beside its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from stagegen.audit.c_text import number
from stagegen.audit.steps import Step
from stagegen.audit.tables import Tables
from stagegen.errors import ScheduleError
from stagegen.schedule.verify.checked_schemes import CHECKED_SCHEMES, CheckedScheme

_Value = TypeVar("_Value")

_GIVERS: Mapping[str, str | None] = {
    "AAPC_NO_TOKENS": None,
    "AAPC_SENDER": "sender",
    "AAPC_RECEIVER": "receiver",
}
_TRUTH = {"true": True, "false": False}
_ALWAYS = {"phases", "giver", "blocks", "barriers", "first_step", "steps"}
_OF_TOKENS = {"awaited_most", "owed_most", "first_token", "tokens"}
_TABLES = ("first_step", "steps", "dummies", "first_token", "tokens")

_ENGINES = {
    "aapc_steps.h": None,
    "aapc_senders.h": "sender",
    "aapc_streams.h": "receiver",
    "rounds.h": None,
}
"""The engines, and which end of a message gives tokens in the schemes of each."""

_NAMED = {**{name: name for name in CHECKED_SCHEMES}, "rounds": "none"}
"""The scheme of each name: rounds keep the order of the phases, and have no synchronisation."""


def scheme_name(tables: Tables, function: str) -> str:
    """Return the name of the scheme, one of `SCHEME_NAMES`.

    Args:
        tables: with `schedule`, which says what the scheme is.
        function: the routine, whose name may say it, too.

    Raises:
        ScheduleError: there is no such scheme, or the routine's name says another one.
    """
    members = _members(tables)
    giver = _one_of(members, "giver", _GIVERS)
    told = {
        "giver": giver,
        "blocks": _one_of(members, "blocks", _TRUTH),
        "barriers": _one_of(members, "barriers", _TRUTH),
        "dummies": "dummies" in members,
    }
    wanted = {*_ALWAYS, *(_OF_TOKENS if giver else ()), *(["dummies"] * ("dummies" in members))}
    for name in sorted(wanted.symmetric_difference(members)):
        problem = "is missing" if name in wanted else "is not known in this scheme"
        raise ScheduleError(f"schedule.{name} {problem}")
    for name in _TABLES:
        if name in members and members[name] != name:
            raise ScheduleError(f"schedule.{name} is {members[name]}, not {name}")
    names = [name for name, scheme in CHECKED_SCHEMES.items() if _facts(scheme) == told]
    if not names:
        raise ScheduleError(f"no scheme of synchronisation has these facts: {_in_words(told)}")
    named = function.partition("_group_")[0].removeprefix("alltoall_aapc_")
    by_name = named.removesuffix("_window").replace("_", "-")
    if _NAMED.get(by_name, names[0]) != names[0]:
        raise ScheduleError(f"the tables are of scheme {names[0]}, not of {by_name}")
    return names[0]


def phase_count(tables: Tables) -> int:
    """Return how many phases the schedule has."""
    return _number(_members(tables), "phases")


def check_room(tables: Tables, steps: Sequence[Step], ranks: int) -> None:
    """Check that the program's arrays of requests are as long as their longest use.

    Raises:
        ScheduleError: one is not; names it.
    """
    owed = [0] * ranks
    for step in steps:
        owed[step.rank] += len(step.owed)
    longest = {
        "awaited_most": max((len(step.awaited) for step in steps), default=0),
        "owed_most": max(owed, default=0),
    }
    for name, value in longest.items():
        told = _number(_members(tables), name)
        if told != value:
            raise ScheduleError(f"schedule.{name} is {told}, not {value}")


def check_engine(headers: Sequence[str], scheme: str) -> None:
    """Check that a routine does not include an engine for schedules of another scheme.

    Raises:
        ScheduleError: it does; names the engine.
    """
    giver = CHECKED_SCHEMES[scheme].giver
    for header in headers:
        if _ENGINES.get(header, giver) != giver:
            own = _ENGINES[header] or "none"
            problem = f"does not carry out tables of scheme {scheme}: its tokens are of {own}"
            raise ScheduleError(f'"{header}" {problem}, expected {giver or "none"}')


def _facts(scheme: CheckedScheme) -> Mapping[str, str | bool | None]:
    """Return what tables say of themselves, for one of the checker's schemes."""
    return {name: getattr(scheme, name) for name in ("giver", "blocks", "barriers", "dummies")}


def _in_words(facts: Mapping[str, str | bool | None]) -> str:
    """Return what tables say of themselves, as a list in words."""
    giver, *others = facts.items()
    tokens = f"tokens by the {giver[1]}" if giver[1] else "no tokens"
    return ", ".join([tokens, *(name if has else f"no {name}" for name, has in others)])


def _members(tables: Tables) -> Mapping[str, str]:
    return tables.members_of("schedule", "aapc_schedule")


def _one_of(members: Mapping[str, str], name: str, known: Mapping[str, _Value]) -> _Value:
    told = members.get(name, "missing")
    if told not in known:
        raise ScheduleError(f"schedule.{name} is {told}, not of {', '.join(known)}")
    return known[told]


def _number(members: Mapping[str, str], name: str) -> int:
    value = number(members.get(name, ""))
    if value is None:
        raise ScheduleError(f"schedule.{name} is {members.get(name, 'missing')}, not a number")
    return value
