"""What crosses the narrow waist between searching and measuring: requests and measurements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stagegen.catalogue.algorithm import NATIVE
from stagegen.errors import MeasurementError
from stagegen.measure.arrivals import LAUNCH, Lateness, joined_lateness
from stagegen.measure.entries import entry, natural, number, times
from stagegen.measure.timing import Timing
from stagegen.topology import WHOLE

_ROUTINE = r"[a-z][a-z0-9_]*(:[a-z][a-z0-9_]*=[0-9]+)*"
_SPEC = re.compile(rf"{_ROUTINE}(\+[a-z][a-z0-9_]*/{_ROUTINE})*")


@dataclass(frozen=True, order=True)
class Candidate:
    """An algorithm with values for all of its parameters.

    Attributes:
        algorithm: its name.
        parameters: name and value of each parameter, sorted by name.
        bound: of a composition, the routines of its parts, in their order; empty if the MPI
            library serves all of them.
    """

    algorithm: str
    parameters: tuple[tuple[str, int], ...] = ()
    bound: tuple[Bound, ...] = ()

    @property
    def spec(self) -> str:
        """As the session's commands write it.

        ``linear:segment_size=8192``, ``of_reduce_and_bcast+reduce/native+bcast/knomial:radix=4``.
        """
        own = ":".join([self.algorithm, *(f"{name}={value}" for name, value in self.parameters)])
        return "+".join([own, *(f"{b.collective}/{b.candidate.spec}" for b in self.bound)])

    @classmethod
    def from_spec(cls, spec: str) -> Candidate:
        """Read the form of :attr:`spec`.

        Raises:
            ValueError: it does not have that form.
        """
        if not _SPEC.fullmatch(spec):
            raise ValueError(f"{spec!r} is no routine")
        own, *parts = spec.split("+")
        algorithm, *items = own.split(":")
        pairs = (item.split("=") for item in items)
        return cls(
            algorithm,
            tuple((name, int(value)) for name, value in pairs),
            tuple(map(Bound.from_spec, parts)),
        )


@dataclass(frozen=True, order=True)
class Bound:
    """A part of a composition, and the routine that serves it.

    Attributes:
        collective: of the part.
        candidate: the routine with its parameters.
    """

    collective: str
    candidate: Candidate

    @classmethod
    def from_spec(cls, spec: str) -> Bound:
        """Read ``bcast/knomial:radix=4``."""
        collective, _, candidate = spec.partition("/")
        return cls(collective, Candidate.from_spec(candidate))


@dataclass(frozen=True)
class Request:
    """A request to time candidates in turn.

    Attributes:
        collective: which one.
        size: bytes, per pair (alltoall), per rank (allgather) or of the whole (bcast).
        timing: how.
        settle: whether an untimed call comes before each repetition, so that a routine meets
            the state of the network (TCP's memory of earlier traffic) that it leaves itself.
        calls: calls per repetition; the repetition's time is their mean.
        repetitions: how often each candidate has its turn.
        candidates: the ones to time.
        communicator: the name of the ranks that call, as the user asked for them.
        launch: which launch of the job is to answer, from 0: what differs between launches, such
            as where memory lies, changes times.
        first: if ranks come late, the number of the first repetition's experiment in this launch;
            else 0. Equal experiments have equal delays, whatever the size and the candidates.
        look: whether it is a look, which tells what may win. If ranks come late, it is the mean of
            several experiments. No record has it: it has these experiments.
    """

    collective: str
    size: int
    timing: Timing
    settle: bool
    calls: int
    repetitions: int
    candidates: tuple[Candidate, ...]
    communicator: str = WHOLE
    launch: int = 0
    first: int = 0
    look: bool = field(default=False, compare=False)

    @property
    def experiment(self) -> int:
        """The number of the first repetition's experiment, among those of all launches."""
        return LAUNCH * self.launch + self.first


def _communicator(record: Mapping[str, Any]) -> str:
    """Return the communicator of a record; old logs, which know only one, do not name it."""
    return entry(record, "communicator", str) if "communicator" in record else WHOLE


def _texts(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the texts of a key; none if it is missing.

    Raises:
        TypeError: they are no texts.
    """
    texts: list[str] = entry(record, key, list) if key in record else []
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"`{key}` must be a list of texts")
    return tuple(texts)


def _took(record: Mapping[str, Any]) -> float | None:
    """Return how many seconds a command took; None in old logs.

    Raises:
        TypeError, ValueError: it is no time.
    """
    return number(record["took"]) if "took" in record else None


def _took_form(took: float | None) -> dict[str, float]:
    return {} if took is None else {"took": took}


def _output_form(output: tuple[str, ...]) -> dict[str, list[str]]:
    return {"output": list(output)} if output else {}


@dataclass(frozen=True)
class Measurement:
    """The raw times that answer a request.

    Attributes:
        request: what was asked for.
        seconds: for each of its candidates the time of each repetition, in seconds: the mean
            of its calls, over the ranks as the request's metric says.
        lateness: what else is known if ranks come late; else None.
        took: seconds from the request to the answer, the start of a session included; if others
            were measured at the same time, an equal share of them; None if unknown.
        beside: the communicators that were measured at the same time.
    """

    request: Request
    seconds: tuple[tuple[float, ...], ...]
    lateness: Lateness | None = None
    took: float | None = None
    beside: tuple[str, ...] = ()

    @property
    def of_calls(self) -> float:
        """The seconds of all calls, untimed ones at the timed ones' mean."""
        return (self.request.calls + self.request.settle) * sum(map(sum, self.seconds))

    def by_candidate(self) -> dict[Candidate, tuple[float, ...]]:
        """Return the repetitions of each candidate."""
        return dict(zip(self.request.candidates, self.seconds, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return the record of the log: one line, so that it is complete or not there at all."""
        first = {"first": self.request.first} if self.request.timing.arrivals else {}
        specs = [candidate.spec for candidate in self.request.candidates]
        late = {"lateness": self.lateness.to_json(specs)} if self.lateness else {}
        return {
            "kind": "measurement",
            "collective": self.request.collective,
            "communicator": self.request.communicator,
            "size": self.request.size,
            **self.request.timing.to_record(),
            "settle": self.request.settle,
            "calls": self.request.calls,
            "launch": self.request.launch,
            **first,
            **late,
            "seconds": {c.spec: list(times) for c, times in self.by_candidate().items()},
            **_took_form(self.took),
            **({"beside": list(self.beside)} if self.beside else {}),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Measurement:
        """Read a record of the log.

        Raises:
            KeyError, TypeError, ValueError: the record is not of this kind.
        """
        answers = entry(record, "seconds", dict)
        seconds = tuple(map(times, answers.values()))
        if len({len(repetitions) for repetitions in seconds}) != 1:
            raise ValueError("`seconds` has different numbers of repetitions, or no candidate")
        request = Request(
            collective=entry(record, "collective", str),
            size=natural(record, "size"),
            timing=Timing.from_record(record),
            settle=entry(record, "settle", bool),
            calls=natural(record, "calls", 1),
            repetitions=len(seconds[0]),
            candidates=tuple(map(Candidate.from_spec, answers)),
            communicator=_communicator(record),
            launch=natural(record, "launch") if "launch" in record else 0,  # old logs have one
            first=natural(record, "first") if "first" in record else 0,
        )
        late = entry(record, "lateness", dict) if "lateness" in record else None
        lateness = Lateness.from_json(late, list(answers)) if late else None
        return cls(request, seconds, lateness, _took(record), _texts(record, "beside"))


def joined(request: Request, parts: Sequence[Measurement]) -> Measurement:
    """Return the answer to a request whose candidates were measured in parts, in their order."""
    if len(parts) == 1:
        return parts[0]
    late = [part.lateness for part in parts if part.lateness]
    took = [part.took for part in parts if part.took is not None]
    return Measurement(
        request,
        tuple(seconds for part in parts for seconds in part.seconds),
        joined_lateness(late) if late else None,
        sum(took) if took else None,
    )


@dataclass(frozen=True)
class Check:
    """Whether a routine gave the same bytes as the native one.

    Attributes:
        collective: its name.
        candidate: the routine.
        cases: how many calls were compared.
        wrong: how many of ``cases`` differed, or -1 if the routine did not end.
        first_wrong: the first of them, in words.
        communicator: the name of the ranks that called.
        output: if the routine did not end, the last lines of what the job said.
        took: as that of a measurement.
    """

    collective: str
    candidate: Candidate
    cases: int
    wrong: int
    first_wrong: str
    communicator: str = WHOLE
    output: tuple[str, ...] = ()
    took: float | None = None

    @property
    def ended(self) -> bool:
        """Whether the routine came to an end, right or wrong."""
        return self.wrong >= 0

    def to_json(self) -> dict[str, Any]:
        """Return the record of the log."""
        return {
            "kind": "check",
            "collective": self.collective,
            "communicator": self.communicator,
            "routine": self.candidate.spec,
            "cases": self.cases,
            "wrong": self.wrong,
            "first_wrong": self.first_wrong,
            **_output_form(self.output),
            **_took_form(self.took),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Check:
        """Read a record of the log.

        Raises:
            KeyError, TypeError, ValueError: the record is not of this kind.
        """
        return cls(
            collective=entry(record, "collective", str),
            candidate=Candidate.from_spec(entry(record, "routine", str)),
            cases=natural(record, "cases"),
            wrong=natural(record, "wrong", -1),
            first_wrong=entry(record, "first_wrong", str),
            communicator=_communicator(record),
            output=_texts(record, "output"),
            took=_took(record),
        )


@dataclass(frozen=True)
class Failure:
    """A routine that passed its check and yet ended or hung the job when it was timed.

    Or one that failed the check right before: the log has that as a check, and no failure.

    Attributes:
        collective: its name.
        candidate: the routine.
        size: in bytes, of the call that failed.
        why: the error in one line.
        communicator: the name of the ranks that called.
        output: the last lines of what the job said.
        took: seconds from the request to the verdict; None if unknown.
        in_check: whether it failed the check, so it was not timed.
    """

    collective: str
    size: int
    candidate: Candidate
    why: str
    communicator: str = WHOLE
    output: tuple[str, ...] = ()
    took: float | None = None
    in_check: bool = False

    @property
    def told(self) -> str:
        """Why, without what a reader knows of a failed check."""
        return self.why.removeprefix("wrong: ")

    def to_json(self) -> dict[str, Any]:
        """Return the record of the log."""
        return {
            "kind": "failure",
            "collective": self.collective,
            "communicator": self.communicator,
            "size": self.size,
            "routine": self.candidate.spec,
            "why": self.why,
            **_output_form(self.output),
            **_took_form(self.took),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Failure:
        """Read a record of the log.

        Raises:
            KeyError, TypeError, ValueError: the record is not of this kind.
        """
        candidate = Candidate.from_spec(entry(record, "routine", str))
        if candidate.algorithm == NATIVE:
            raise ValueError("`routine` is the native one, which cannot be left out")
        return cls(
            collective=entry(record, "collective", str),
            size=natural(record, "size"),
            candidate=candidate,
            why=entry(record, "why", str),
            communicator=_communicator(record),
            output=_texts(record, "output"),
            took=_took(record),
        )


class CandidateFailed(MeasurementError):  # noqa: N818 - a message to the search
    """One candidate of a request cannot be timed; the others can, so ask again without it."""

    def __init__(self, failure: Failure):
        super().__init__(failure.why)
        self.failure = failure
