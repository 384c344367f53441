"""The display of a tuning run while it goes on: a bar, lines, JSON lines, or nothing."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar, cast

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from stagegen.cli._endings import Stopped
from stagegen.cli._events import events
from stagegen.errors import StagegenError
from stagegen.measure.records import Candidate, Check, Measurement, Request
from stagegen.measure.source import Source
from stagegen.topology import WHOLE
from stagegen.tune.forecast import BudgetForecast, Forecast

#: Without a terminal, seconds between two lines about how far the run is.
LINE_SECONDS = 30.0

#: Seconds between two JSON lines about how far the run is, while its step is the same.
JSON_SECONDS = 1.0

_EVENTS = logging.getLogger(__name__)
_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class State:
    """How far a run is.

    Attributes:
        what: the step that it is at.
        done: races that have been measured or are being measured.
        total: races that there will be, at least.
        checks: routines that have been checked.
        measurements: requests that have been answered, those from a log included.
        elapsed_s: seconds since the start.
        left_s: seconds that it will still take; None while nothing has been measured.
    """

    what: str
    done: int
    total: int
    checks: int
    measurements: int
    elapsed_s: float
    left_s: float | None

    @property
    def left(self) -> str:
        """The time left, for people: no more exact than it is known."""
        if self.left_s is None:
            return "time left not known yet"
        units = (("h", 3600.0), ("min", 60.0), ("s", 1.0))
        unit, seconds = next((u for u in units if self.left_s >= 1.5 * u[1]), units[-1])
        return f"about {self.left_s / seconds:.0f} {unit} left"


class _Forgiving:
    """A text stream. Once it cannot be written, it drops all further text: the run goes on."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._gone = False

    def write(self, text: str) -> int:
        if not self._gone:
            try:
                self._stream.write(text)
            except (OSError, ValueError):
                self._gone = True
        return len(text)

    def flush(self) -> None:
        if not self._gone:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._gone = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Display(Protocol):
    """A way to show a run."""

    #: The lowest level of events to say.
    level: int

    def show(self, state: State) -> None:
        """Show how far the run is."""

    def say(self, level: str, text: str) -> None:
        """Show an event."""

    def end(self, status: int, text: str) -> None:
        """Show that the run has ended, with its exit status and its error or result."""


class Silent:
    """Shows nothing: the caller prints the result, or the error."""

    level = logging.CRITICAL

    def show(self, state: State) -> None:
        """Show nothing."""

    def say(self, level: str, text: str) -> None:
        """Say nothing."""

    def end(self, status: int, text: str) -> None:
        """Say nothing."""


class Lines(Silent):
    """Plain lines without control characters, now and then: for files and CI."""

    level = logging.INFO

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic):
        self._stream = _Forgiving(stream)
        self._clock = clock
        self._last = clock()

    def show(self, state: State) -> None:
        """Print a line if the last one is old."""
        if self._clock() - self._last >= LINE_SECONDS:
            self.say("info", f"{state.done} of {state.total} races, {state.left}: {state.what}")

    def say(self, level: str, text: str) -> None:
        """Print an event."""
        self._last = self._clock()
        self._stream.write(f"{text}\n")
        self._stream.flush()


class Bar(Silent):
    """A bar on a terminal, and events above it."""

    level = logging.INFO

    def __init__(self, console: Console):
        self._console = console
        self._bar = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.fields[races]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]} · {task.description}", markup=False),
            console=console,
        )
        self._task = self._bar.add_task("", total=1.0, races="", left="")

    def show(self, state: State) -> None:
        """Move the bar: its length is time, not a count."""
        all_of_it = state.elapsed_s + (state.left_s or 0.0)
        known = state.left_s is not None and all_of_it > 0
        self._bar.start()  # does nothing if it has started
        self._bar.update(
            self._task,
            completed=state.elapsed_s / all_of_it if known else 0.0,
            description=state.what,
            races=f"{state.done}/{state.total}",
            left=state.left,
        )

    def say(self, level: str, text: str) -> None:
        """Print an event above the bar."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def end(self, status: int, text: str) -> None:
        """Take the bar away."""
        self._bar.update(self._task, visible=False)
        self._bar.stop()


class Json(Silent):
    """A JSON object a line: `progress`, `message`, and `end` as the last one."""

    level = logging.INFO

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic):
        self._stream = stream
        self._clock = clock
        self._last: tuple[str, float] = ("", 0.0)
        self._has_ended = False

    def show(self, state: State) -> None:
        """Write how far the run is, at a new step or if the last line is old."""
        what, when = self._last
        if state.what != what or self._clock() - when >= JSON_SECONDS:
            self._last = (state.what, self._clock())
            self._write("progress", **asdict(state))

    def say(self, level: str, text: str) -> None:
        """Write an event."""
        self._write("message", level=level, text=text)

    def end(self, status: int, text: str) -> None:
        """Write the last line, once."""
        if not self._has_ended:
            self._has_ended = True
            self._write("end", status=status, text=text)

    def _write(self, event: str, **values: object) -> None:
        try:
            line = json.dumps({"event": event, **values}, ensure_ascii=False)
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # no reader is left: the run goes on
            return


def progress_options(command: _Command) -> _Command:
    """Add `--quiet` and `--json-progress`."""
    quiet = click.option("--quiet", is_flag=True, help="Print only the result, and errors.")
    as_json = click.option(
        "--json-progress",
        is_flag=False,
        flag_value=2,
        type=click.IntRange(min=1),
        metavar="[FD]",
        help="Write progress as JSON lines to standard error, or to this file descriptor.",
    )
    return quiet(as_json(command))


def choose_display(quiet: bool, descriptor: int | None, *, lasting: bool) -> Display:
    """Return what the options ask for; else a bar on a terminal, and lines elsewhere.

    Args:
        quiet: whether to show nothing. Without a standard error, nothing is shown either.
        descriptor: for JSON lines, or None.
        lasting: whether the run lasts long enough for a bar.

    Raises:
        click.UsageError: the descriptor is not open.
    """
    if descriptor is not None:
        try:
            stream = os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="replace")
        except OSError as error:
            raise click.UsageError(f"--json-progress {descriptor}: {error.strerror}") from error
        return Json(stream)
    if quiet or sys.stderr is None:
        return Silent()
    # rich ends the program if a pipe breaks; this stream does not tell it.
    console = Console(file=cast(TextIO, _Forgiving(sys.stderr)), highlight=False)
    return Bar(console) if lasting and console.is_terminal else Lines(sys.stderr)


class Watch:
    """Watches a run: its requests, and how long the answers take.

    Args:
        display: shows it.
        forecast: knows what is left.
    """

    def __init__(self, display: Display, forecast: Forecast | BudgetForecast):
        self._display = display
        self._forecast = forecast
        self._begin = time.monotonic()
        self._what = ""
        self._checks = 0
        self._measurements = 0
        self._live: float | None = None

    def step(self, what: str) -> None:
        """Take note of a new step."""
        self._what = what
        _EVENTS.debug("%s", what)
        self._show()

    def over(self, source: Source) -> Source:
        """Return a source that tells this watch about every answer."""
        return _Watched(source, self._checked, self._measured)

    def timed(self, live: Source) -> Source:
        """Return a source that tells this watch how long measuring took."""
        return _Watched(live, self._checked_live, self._measured_live)

    def _checked(self, checks: list[Check], _seconds: float) -> None:
        self._checks += len(checks)
        self._forecast.add_checks(checks)
        self._show()

    def _checked_live(self, checks: list[Check], seconds: float) -> None:
        _EVENTS.debug("%d checks in %.2f s", len(checks), seconds)

    def _measured(self, measurement: Measurement, _seconds: float) -> None:
        self._measurements += 1
        self._forecast.add(measurement, self._live)
        self._live = None
        self._show()

    def _measured_live(self, measurement: Measurement, seconds: float) -> None:
        self._live = seconds if measurement.took is None else measurement.took
        beside = f", beside {', '.join(measurement.beside)}" if measurement.beside else ""
        _EVENTS.debug("%s in %.2f s%s", _in_words(measurement.request), self._live, beside)

    def _show(self) -> None:
        forecast = self._forecast
        elapsed = time.monotonic() - self._begin
        self._display.show(
            State(
                self._what,
                forecast.done,
                forecast.total,
                self._checks,
                self._measurements,
                round(elapsed, 3),
                None if forecast.left is None else round(forecast.left, 3),
            )
        )


def _in_words(request: Request) -> str:
    where = "" if request.communicator == WHOLE else f" on {request.communicator}"
    specs = " ".join(candidate.spec for candidate in request.candidates)
    return (
        f"{request.collective} of {request.size} bytes{where}, "
        f"{request.repetitions} x {request.calls} calls of {specs}"
    )


class _Watched:
    """Hands on to a source, and tells of its answers with the seconds that they took."""

    def __init__(
        self,
        source: Source,
        checked: Callable[[list[Check], float], None],
        measured: Callable[[Measurement, float], None],
    ):
        self._source = source
        self._tell_checks = checked
        self._tell_measurement = measured

    def check(
        self, collective: str, candidates: tuple[Candidate, ...], communicator: str = WHOLE
    ) -> list[Check]:
        begin = time.monotonic()
        checks = self._source.check(collective, candidates, communicator)
        self._tell_checks(checks, time.monotonic() - begin)
        return checks

    def measure(self, request: Request) -> Measurement:
        begin = time.monotonic()
        measurement = self._source.measure(request)
        self._tell_measurement(measurement, time.monotonic() - begin)
        return measurement


@contextmanager
def shown(display: Display, log_file: Path | None) -> Iterator[None]:
    """Show the events of a run, and write them to a file.

    The display ends with the run, however that ends.
    """
    with events(log_file, display.say, display.level):
        try:
            yield
        except BaseException as error:
            _end(display, status_of(error), str(error))
            raise
        _end(display, 0, "")


@contextmanager
def ended(display: Display) -> Iterator[None]:
    """End the display with an error that comes before the run, or after it."""
    try:
        yield
    except BaseException as error:
        display.end(status_of(error), str(error))
        raise


def status_of(error: BaseException) -> int:
    """Return the exit status of a command that an error ends."""
    if isinstance(error, StagegenError):
        return error.exit_status
    if isinstance(error, click.ClickException):
        return error.exit_code
    return 128 + error.signal if isinstance(error, Stopped) else 1


def _end(display: Display, status: int, text: str) -> None:
    _EVENTS.debug("ended with status %d: %s", status, text or "all is written")
    display.end(status, text)
