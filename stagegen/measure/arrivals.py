"""Processes that come late to a call: by random delays, or as a program did (docs/timing.md).

The plans are of Faraj 2006, §4.2.4 (Fig. 4.20: random delays up to a number of message times) and
§5.2.1 (the arrivals of a program). What is measured is of §4.2.1.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stagegen.measure.entries import entry, natural, number, times

#: The metrics of a call to which ranks come late. The time of the slowest rank is none: it tells
#: how long the first one waited for the last.
METRICS_LATE = ("mean", "last")

#: The greatest factor, and the longest time in microseconds: more is taken for a mistake.
FACTOR_MOST = 4096
MICROSECONDS_MOST = 60_000_000

#: The most calls of a recording that are replayed, evenly spread over all.
CALLS_MOST = 512

#: Launch n begins with this experiment times n, so that no two launches have the same ones.
LAUNCH = 1_000_000

#: Experiments that a look at candidates is the mean of: one may be an unusual pattern.
LOOK = 4

#: Experiments of each candidate where nothing is chosen (Faraj 2006, §4.2.4).
EXPERIMENTS = 32

_MICROSECONDS = {"us": 1, "ms": 1000, "s": 1_000_000}
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)(us|ms|s)")
_GOLDEN = (math.sqrt(5) - 1) / 2
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Imbalance:
    """In each experiment, each rank is late by 0 to ``most`` - 1 units, each equally likely.

    Attributes:
        most: MAX of Fig. 4.20.
        in_messages: whether the unit is the time of a message of the operation's size, as the
            session measures it; else it is a microsecond.
        seed: of the draws.
    """

    most: int
    in_messages: bool
    seed: int = 1

    @classmethod
    def parse(cls, text: str) -> Imbalance:
        """Read a factor such as ``16``, or a time such as ``20ms``.

        Raises:
            ValueError: it is neither, or out of range; says what to give.
        """
        if text.isascii() and text.isdigit():
            if 1 <= int(text) <= FACTOR_MOST:
                return cls(int(text), True)
            raise ValueError(f"the factor must be from 1 to {FACTOR_MOST}, not {text}")
        match = _TIME.fullmatch(text)
        if match is None:
            raise ValueError(
                f"{text!r} is no imbalance: give a factor of the message time, such as "
                "imbalance:16, or a time in us, ms or s, such as imbalance:20ms"
            )
        microseconds = round(float(match[1]) * _MICROSECONDS[match[2]])
        if not 1 <= microseconds <= MICROSECONDS_MOST:
            raise ValueError(f"the time must be from 1us to 60s, not {text}")
        return cls(microseconds, False)

    @property
    def text(self) -> str:
        """The plan in words, without the seed."""
        unit = "message times" if self.in_messages else "µs"
        return f"imbalance up to {self.most} {unit}"

    @property
    def unseeded(self) -> Imbalance:
        """The plan, whatever its seed."""
        return replace(self, seed=0)

    def draw(self, experiment: int, rank: int) -> int:
        """Return the units by which a rank is late, as drivers/arrivals.c draws them."""
        random = _mix(_mix(_mix(self.seed) ^ experiment) ^ rank)
        return ((random >> 32) * self.most) >> 32

    def longest(self, message: float | None) -> float:
        """Return the seconds of the longest delay, for a message of so many seconds."""
        return (self.most - 1) * (message or 0.0 if self.in_messages else 1e-6)

    def word(self, experiment: int, message: float | None, _calls: int = 1) -> str:
        """Return what the session's command says, from an experiment on."""
        unit = round(1e9 * (message or 0.0)) if self.in_messages else 1000
        return f"imbalance:unit={unit}:most={self.most}:seed={self.seed}:first={experiment}"

    def to_json(self) -> dict[str, Any]:
        """Return the form of logs."""
        unit = "message" if self.in_messages else "us"
        return {"plan": "imbalance", "most": self.most, "unit": unit, "seed": self.seed}


#: How the calls of a recording follow each other. Logs with another order have other hashes, so
#: their times are not compared with ours.
_ORDER = "bits reversed"


@dataclass(frozen=True)
class Replay:
    """Ranks come as late as in the recorded calls of a call site, each once before any again.

    Attributes:
        site: the call site.
        ranks: how many a call has.
        calls: how many are replayed.
        hash: SHA-256 of the delays.
        most: the longest delay in microseconds; 0 in older logs, which do not say it.
        clock_error: the greatest error in seconds between the clocks of two ranks of the
            recording; 0 if nothing was recorded, and in older logs.
        delays: microseconds, by call and rank; the first rank of a call has 0. A log does not have
            them, so plans are equal by their hashes.
    """

    site: str
    ranks: int
    calls: int
    hash: str
    most: int = field(compare=False)
    clock_error: float = field(default=0.0, compare=False)
    delays: tuple[tuple[int, ...], ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, site: str, offsets: Sequence[Sequence[float]], clock_error: float = 0.0) -> Replay:
        """Return the plan for recorded arrivals.

        Args:
            site: the call site.
            offsets: when each rank came, in seconds from any time on, by call and rank. If there
                are more than CALLS_MOST calls, so many of them are taken, evenly spread.
            clock_error: of the recording, in seconds.

        Raises:
            ValueError: there is no call, or calls have different numbers of ranks.
        """
        if not offsets or len({len(call) for call in offsets}) != 1 or not offsets[0]:
            raise ValueError("a recording needs at least one call, and as many ranks in each")
        count = min(len(offsets), CALLS_MOST)
        chosen = [offsets[i * len(offsets) // count] for i in range(count)]
        delays = tuple(
            tuple(round(1e6 * (arrival - min(call))) for arrival in call) for call in chosen
        )
        digest = hashlib.sha256(json.dumps([_ORDER, delays]).encode()).hexdigest()
        return cls(site, len(delays[0]), count, digest, max(map(max, delays)), clock_error, delays)

    @property
    def text(self) -> str:
        """The plan in words."""
        error = f", recorded to within {1e6 * self.clock_error:.3g} µs" if self.clock_error else ""
        return f"replay of {self.calls} calls of {self.site}{error}"

    @property
    def unseeded(self) -> Replay:
        """The plan itself: it has no seed."""
        return self

    def longest(self, _message: float | None = None) -> float:
        """Return the seconds of the longest delay."""
        return 1e-6 * self.most

    @property
    def in_turn(self) -> tuple[tuple[int, ...], ...]:
        """The delays in the order in which they are replayed.

        Any first ones are spread over the recording, so that a few experiments are not of the
        program's beginning alone: their numbers are those of 0, 1, 2, … with the bits reversed.
        """
        bits = max(1, (len(self.delays) - 1).bit_length())
        reversed_ = (int(f"{number:0{bits}b}"[::-1], 2) for number in range(1 << bits))
        return tuple(self.delays[call] for call in reversed_ if call < len(self.delays))

    def word(self, experiment: int, _message: float | None = None, calls: int = 1) -> str:
        """Return what the session's command says, from a repetition of so many calls on.

        Each launch begins at a place of its own in the recording. The golden ratio spreads these
        places, however many launches there are.
        """
        launch, first = divmod(experiment, LAUNCH)
        place = math.modf(launch * _GOLDEN)[0] * self.calls
        return f"replay:unit=0:most=0:seed=0:first={round(place / calls) + first}"

    def to_json(self) -> dict[str, Any]:
        """Return the form of logs."""
        return {
            "plan": "replay",
            "site": self.site,
            "ranks": self.ranks,
            "calls": self.calls,
            "hash": self.hash,
            "most": self.most,
            "recorded_within_s": self.clock_error,
        }


Arrivals = Imbalance | Replay


def arrivals_from_json(form: Mapping[str, Any]) -> Arrivals:
    """Read the form of logs.

    Raises:
        KeyError, TypeError, ValueError: it is damaged.
    """
    plan = entry(form, "plan", str)
    if plan == "imbalance":
        unit = entry(form, "unit", str)
        if unit not in ("message", "us"):
            raise ValueError("`unit` must be message or us")
        return Imbalance(natural(form, "most", 1), unit == "message", natural(form, "seed"))
    if plan == "replay":
        return Replay(
            entry(form, "site", str),
            natural(form, "ranks", 1),
            natural(form, "calls", 1),
            entry(form, "hash", str),
            natural(form, "most") if "most" in form else 0,
            number(form.get("recorded_within_s", 0.0)),
        )
    raise ValueError("`plan` must be imbalance or replay")


@dataclass(frozen=True)
class Lateness:
    """What else is known of repetitions to which ranks came late; times are in seconds.

    Attributes:
        message: the time of a message of the operation's size; None if it was not needed.
        behind: by how much any rank came later than planned at the most.
        clock_error: of the clock that the ranks share.
        mean: for each candidate, of each repetition: the elapsed time, a mean over the ranks (ē).
        last: likewise, from the last arrival to the last exit.
        spread: likewise, from the first arrival to the last (ω).
    """

    message: float | None
    behind: float
    clock_error: float
    mean: tuple[tuple[float, ...], ...]
    last: tuple[tuple[float, ...], ...]
    spread: tuple[tuple[float, ...], ...]

    def to_json(self, specs: Sequence[str]) -> dict[str, Any]:
        """Return the form of logs, with the routines by their names."""
        lists = {"mean": self.mean, "last": self.last, "spread": self.spread}
        return {
            "message_s": self.message,
            "behind_s": self.behind,
            "clock_error_s": self.clock_error,
            **{
                name: {spec: list(seconds) for spec, seconds in zip(specs, values, strict=True)}
                for name, values in lists.items()
            },
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any], specs: Sequence[str]) -> Lateness:
        """Read the form of logs.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        message = form["message_s"]
        return cls(
            None if message is None else number(message),
            number(form["behind_s"]),
            number(form["clock_error_s"]),
            tuple(times(form["mean"][spec]) for spec in specs),
            tuple(times(form["last"][spec]) for spec in specs),
            tuple(tuple(map(number, form["spread"][spec])) for spec in specs),
        )


def joined_lateness(parts: Sequence[Lateness]) -> Lateness:
    """Return what is known of all candidates from what is known of some at a time."""
    return Lateness(
        parts[0].message,
        max(part.behind for part in parts),
        max(part.clock_error for part in parts),
        tuple(times for part in parts for times in part.mean),
        tuple(times for part in parts for times in part.last),
        tuple(times for part in parts for times in part.spread),
    )


def _mix(number_: int) -> int:
    """Return the output of SplitMix64 (Steele, Lea and Flood 2014) for a state."""
    state = (number_ + 0x9E3779B97F4A7C15) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return state ^ (state >> 31)
