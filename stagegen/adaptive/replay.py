"""Replays: which candidates a policy takes on a trace, and what that costs (§4.3.2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from stagegen.adaptive.policies import Policy, Settings, Stage
from stagegen.adaptive.trace import Trace

#: The calls during which the meeting after a monitoring period goes on (``stages.c``).
MEETING_CALLS = 2

#: Ranks tell the calls of a stage before its last ITER ones as so many means (``meeting.c``).
EARLY_MEANS = 32


@dataclass(frozen=True)
class Overheads:
    """What selection costs (Faraj 2006, §4.3.2.3 and Table 4.19).

    Attributes:
        selected_after: calls until monitoring begins; None if it never does.
        o_ms_a_s: seconds per call that the logic and the meetings take before monitoring.
        o_ms_c_s: seconds per call that the communication takes before monitoring.
        excess_s: seconds that all calls before monitoring take beyond the best candidate's time.
        o_ma_s: seconds per call that the logic and the meetings take while monitoring.
    """

    selected_after: int | None
    o_ms_a_s: float
    o_ms_c_s: float
    excess_s: float
    o_ma_s: float

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "selected_after": self.selected_after,
            "o_ms_a_s": self.o_ms_a_s,
            "o_ms_c_s": self.o_ms_c_s,
            "excess_s": self.excess_s,
            "o_ma_s": self.o_ma_s,
        }


def overheads(
    stages: Sequence[tuple[bool, Sequence[float]]],
    best_s: float,
    search_s: float,
    watch_s: float,
) -> Overheads:
    """Return what selection costs.

    Only the calls before the first monitoring period count as selection.

    Args:
        stages: of each whether it monitors, and the seconds of its calls.
        best_s: seconds of a call with the best candidate.
        search_s: seconds of all meetings until the selection, with the decisions.
        watch_s: seconds of a call, on the average, for all meetings after that.
    """
    first = next((i for i, (monitors, _) in enumerate(stages) if monitors), len(stages))
    before = [time for _, times in stages[:first] for time in times]
    return Overheads(
        selected_after=len(before) if first < len(stages) else None,
        o_ms_a_s=search_s / len(before) if before else 0.0,
        o_ms_c_s=sum(before) / len(before) if before else 0.0,
        excess_s=sum(time - best_s for time in before),
        o_ma_s=watch_s,
    )


@dataclass(frozen=True)
class Replayed:
    """What a policy did on a trace.

    Attributes:
        policy: its name.
        trace: the trace, with the candidates that the policy has.
        stages: in their order; the last one may have been cut off by the end of the trace.
        best: the best single candidate in hindsight, among all of the trace.
        best_s: what it takes for all calls, in seconds.
        seconds: what the policy took for all calls, meetings left out.
        overheads: what its selection costs.
    """

    policy: str
    trace: Trace
    stages: tuple[Stage, ...]
    best: str
    best_s: float
    seconds: float
    overheads: Overheads

    @property
    def loss(self) -> float:
        """By which share it took longer than the best single candidate in hindsight."""
        return self.seconds / self.best_s - 1 if self.best_s > 0 else 0.0

    @property
    def own_loss(self) -> float:
        """The loss against the best of the candidates that the policy has."""
        own = min(sum(times) for times in self.trace.mean_s)
        return self.seconds / own - 1 if own > 0 else 0.0

    @property
    def last(self) -> str:
        """The candidate that served in the end."""
        return self.trace.candidates[self.stages[-1].candidate]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        first = 0
        rows = []
        for stage in self.stages:
            rows.append(
                {
                    "first": first,
                    "calls": stage.calls,
                    "candidate": self.trace.candidates[stage.candidate],
                    "is_monitoring": stage.is_monitoring,
                    "why": stage.why,
                }
            )
            first += stage.calls
        return {
            "policy": self.policy,
            "trace": self.trace.name,
            "calls": self.trace.calls,
            "meetings": len(self.stages),
            "seconds": self.seconds,
            "best": self.best,
            "best_s": self.best_s,
            "loss": self.loss,
            "own_loss": self.own_loss,
            "last": self.last,
            **self.overheads.to_json(),
            "stages": rows,
        }


def told(times: Sequence[float], iterations: int, *, rooted: bool = False) -> Sequence[float]:
    """Return what a policy hears of the calls of a stage, in seconds.

    Args:
        times: of all of them.
        iterations: ITER.
        rooted: whether the collective has a root; then only calls that are told one by one count.
    """
    early = len(times) - iterations
    if early <= EARLY_MEANS:
        return times
    if rooted:
        return times[early:]
    width = -(-early // EARLY_MEANS)
    blocks = [times[i : min(i + width, early)] for i in range(0, early, width)]
    means = [sum(block) / len(block) for block in blocks for _ in block]
    return [*means, *times[early:]]


def replay(
    trace: Trace, name: str, settings: Settings | None = None, *, rooted: bool = False
) -> Replayed:
    """Let a policy choose on a trace.

    The meeting after a monitoring period goes on during the next calls, as in a library: the
    candidate that was watched serves :data:`MEETING_CALLS` more calls, which count for the next
    stage if that watches it, too.

    A policy of the source gets only the candidates with a group, as in a library.

    Args:
        trace: the times.
        name: of the policy.
        settings: of the policy.
        rooted: whether the collective has a root. Then the maximum over the ranks counts, for the
            policy and in all results, as in a library.

    Raises:
        InputError: there is no such policy.
        GenerateError: the policies cannot be built.
    """
    if rooted:
        trace = replace(trace, mean_s=trace.max_s)
    settings = settings or Settings(meeting_s=trace.meeting_s)
    policy = Policy(name, trace.entrants, settings)
    own = trace
    if policy.source_sets:
        own = trace.only_grouped()
        policy = Policy(name, own.entrants, settings)
    stages: list[Stage] = []
    heard: list[tuple[bool, Sequence[float]]] = []
    stage, call = policy.first(), 0
    while call < own.calls:
        end = min(call + stage.calls, own.calls)
        mean, most = (times[stage.candidate] for times in (own.mean_s, own.max_s))
        heard_mean, heard_most = (
            told(times[call:end], settings.iterations, rooted=rooted) for times in (mean, most)
        )
        following = policy.next(heard_mean, heard_most)
        goes_on = following.is_monitoring and following.candidate == stage.candidate
        if stage.is_monitoring and not goes_on:
            end = min(end + MEETING_CALLS, own.calls)
        heard.append((stage.is_monitoring, mean[call:end]))
        stages.append(Stage(stage.candidate, end - call, stage.is_monitoring, stage.why))
        stage, call = following, end
    totals = [sum(times) for times in trace.mean_s]
    searching = next((i for i, one in enumerate(stages) if one.is_monitoring), len(stages))
    watched = sum(one.calls for one in stages[searching:])
    best = min(range(len(totals)), key=totals.__getitem__)
    return Replayed(
        policy.name,
        own,
        tuple(stages),
        trace.candidates[best],
        totals[best],
        sum(time for _, times in heard for time in times),
        overheads(
            heard,
            totals[best] / own.calls,
            searching * trace.meeting_s,
            (len(stages) - searching) * trace.meeting_s / watched if watched else 0.0,
        ),
    )
