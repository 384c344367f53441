"""What a run shows of itself: the time left, lines, JSON, nothing; and signals that end it."""

from __future__ import annotations

import errno
import io
import json
import logging
import math
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from stagegen.catalogue import load_catalogue
from stagegen.cli._endings import ENDINGS, Stopped, StoppedError, endings
from stagegen.cli._events import events
from stagegen.cli._progress import (
    LINE_SECONDS,
    Bar,
    Json,
    Lines,
    Silent,
    State,
    Watch,
    choose_display,
    status_of,
)
from stagegen.errors import InputError
from stagegen.measure.log import read_log
from stagegen.measure.records import Bound, Candidate, Check, Measurement, Request
from stagegen.schedule import lower_bound
from stagegen.topology import load_topology
from stagegen.tune.forecast import DUELS, LATENCY, SHARES, BudgetForecast, Forecast, Race, races
from stagegen.tune.scope import Options
from tests.cli.test_tune_log import tuned
from tests.library.schemas import validate
from tests.measure.fakes import TIMING, Model

STATE = State("bcast 64 B", 3, 9, 20, 4, 12.0, 61.0)
RACES = [Race("bcast", "whole", size) for size in (1, 2, 3, 4)]


def measurement(size: int, seconds: float, collective: str = "bcast", *, composed: bool = False):
    part = (Bound("reduce", Candidate("native")),) if composed else ()
    asked = Request(collective, size, TIMING, False, 1, 1, (Candidate("flat", (), part),))
    return Measurement(asked, ((seconds,),))


def test_races_of_one_weight_take_as_long_as_those_before_them():
    forecast = Forecast(RACES, lambda name, size: 0.0)
    assert forecast.left is None
    forecast.add(measurement(1, 5.0))
    assert (forecast.done, forecast.total) == (1, 4)
    assert forecast.left == pytest.approx(15.0)
    forecast.add(measurement(2, 7.0))
    assert forecast.left == pytest.approx(2 * 6.0)
    forecast.add(measurement(100, 6.0))  # a crossover, which is no race of its own
    assert (forecast.done, forecast.left) == (2, pytest.approx(2 * 9.0))


def test_of_a_budget_is_left_what_commands_did_not_take():
    forecast = BudgetForecast(RACES, 10.0)
    assert (forecast.done, forecast.total, forecast.left) == (0, 4, 10.0)
    forecast.add(replace(measurement(3, 1.0), took=4.0))
    forecast.add(replace(measurement(1, 1.0), took=None))  # an old log: its call's second
    forecast.add_checks([Check("bcast", Candidate("flat"), 1, 0, "", took=2.0)])
    assert (forecast.done, forecast.total, forecast.left) == (2, 4, 3.0)
    forecast.add(replace(measurement(100, 1.0), took=4.0))
    assert (forecast.done, forecast.total, forecast.left) == (3, 5, 0.0)


def test_a_race_of_larger_messages_takes_longer_by_its_bound():
    forecast = Forecast(RACES, lambda name, size: LATENCY * (size - 1))
    forecast.add(measurement(1, 1.0))
    assert forecast.left == pytest.approx(2 + 3 + 4)


def test_what_the_time_is_spent_on_beside_the_calls_counts():
    forecast = Forecast(RACES, lambda name, size: 0.0)
    forecast.add(measurement(1, 2.0))
    assert forecast.left == pytest.approx(6.0)  # from a log: nothing is known of the rest
    forecast.add(measurement(2, 2.0), seconds=6.0)
    assert forecast.left == pytest.approx(2 * 2.0 * 3)


def test_compositions_cost_a_part_of_the_races_before_them_until_one_is_measured():
    both = [*RACES, *(replace(race, composed=True) for race in RACES)]
    forecast = Forecast(both, lambda name, size: 0.0)
    for size in (1, 2, 3, 4):
        forecast.add(measurement(size, 2.0))
    assert forecast.left == pytest.approx(4 * 2.0 * SHARES["composed"])
    forecast.add(measurement(1, 1.0, composed=True))
    first = forecast.left
    assert 3 * 2.0 * SHARES["composed"] < first < 3 * 1.0
    for size in (2, 3):
        forecast.add(measurement(size, 1.0, composed=True))
    assert forecast.left == pytest.approx(1.0, rel=0.1)


def test_races_that_are_passed_over_cost_nothing_and_a_later_launch_is_a_pass_of_its_own():
    later = [replace(race, launch=n) for n in (1, 2) for race in RACES]
    forecast = Forecast([*RACES, *later], lambda name, size: 0.0)
    forecast.add(measurement(4, 8.0))
    assert forecast.done == 4
    shares = SHARES["launch 1"] + SHARES["launch 2"] + DUELS
    assert forecast.left == pytest.approx(8.0 * shares)
    again = measurement(4, 8.0)
    forecast.add(replace(again, request=replace(again.request, launch=1)))
    assert (forecast.done, forecast.total) == (8, 12)
    assert forecast.left == pytest.approx(8.0 * (SHARES["launch 2"] + DUELS))


def test_after_all_races_the_duels_are_left():
    last = [replace(race, launch=1) for race in RACES]
    forecast = Forecast([*RACES, *last], lambda name, size: 0.0)
    forecast.add(measurement(4, 8.0))
    for size, left in ((4, DUELS * 8.0), (7, DUELS * 8.0 - 0.5), (9, DUELS * 8.0 - 1.0)):
        asked = measurement(size, 0.5)
        forecast.add(replace(asked, request=replace(asked.request, launch=1)))
        assert forecast.left == pytest.approx(left)


REFERENCE = Path(__file__).parents[2] / "generated" / "reference"


def test_the_time_that_a_real_tuning_has_left_is_known_to_a_factor_of_two_and_a_half():
    """From a tenth of its time on, to 85 % of it."""
    header, records = read_log(REFERENCE / "measurements.jsonl")
    topology = load_topology(REFERENCE / "topology.yaml")
    names = (tuple(header[key]) for key in ("collectives", "sizes"))
    options = Options(*names, TIMING, header["budget"], tuple(header["communicators"]))
    expected = races(topology, load_catalogue(), options, header["protocol"]["launches"])
    forecast = Forecast(expected, lambda name, size: lower_bound(topology, name, size).seconds)
    made = [Measurement.from_json(one) for one in records if one["kind"] == "measurement"]
    total, gone = math.fsum(one.took for one in made), 0.0
    for one in made:
        forecast.add(one, one.took)
        gone += one.took
        if 0.1 * total < gone < 0.85 * total:
            assert 1 / 2.5 < forecast.left / (total - gone) < 2.5


def test_the_time_left_is_no_more_exact_than_it_is_known():
    shown = {0.2: "0 s", 61: "61 s", 200: "3 min", 5000: "83 min", 9000: "2 h"}
    for seconds, text in shown.items():
        assert replace(STATE, left_s=seconds).left == f"about {text} left"
    assert replace(STATE, left_s=None).left == "time left not known yet"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_come_now_and_then_and_have_no_control_characters():
    stream, clock = io.StringIO(), Clock()
    lines = Lines(stream, clock)
    for clock.now in range(int(2.5 * LINE_SECONDS)):
        lines.show(STATE)
    assert stream.getvalue().splitlines() == ["3 of 9 races, about 61 s left: bcast 64 B"] * 2
    assert all(letter.isprintable() or letter == "\n" for letter in stream.getvalue())


def test_json_lines_come_at_every_step_and_at_most_once_a_second_within_one():
    stream, clock = io.StringIO(), Clock()
    display = Json(stream, clock)
    for what in ("a", "b"):
        for step in range(21):
            clock.now = step / 10
            display.show(replace(STATE, what=what))
    display.say("warning", "größer")
    display.end(0, "")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    for line in lines:
        validate("progress", line)
    assert [line.get("what") for line in lines] == ["a", "a", "a", "b", "b", "b", None, None]


def test_json_that_nobody_reads_ends_no_run():
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as stream, pytest.MonkeyPatch.context():
        Json(stream).say("info", "hello")
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Gone(io.StringIO):
    """A terminal that is no longer there."""

    def __init__(self, error: Exception, *, terminal: bool):
        super().__init__()
        self.error, self.terminal, self.tried = error, terminal, 0

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        self.tried += 1
        raise self.error


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "error", [BrokenPipeError(), OSError(errno.ENOSPC, "full"), ValueError("closed file")]
)
def test_a_standard_error_that_cannot_be_written_ends_no_run(monkeypatch, error, terminal):
    gone = Gone(error, terminal=terminal)
    monkeypatch.setattr(sys, "stderr", gone)
    display = choose_display(False, None, lasting=True)
    assert isinstance(display, Bar if terminal else Lines)
    display.say("info", "hello")
    display.show(STATE)
    display.end(0, "")
    assert gone.tried == 1


def test_a_bar_shows_the_step_the_races_and_the_time_left_and_goes_away():
    screen = io.StringIO()
    bar = Bar(Console(file=screen, force_terminal=True, width=120, _environ={}))
    bar.show(STATE)
    bar.show(replace(STATE, what="bcast [64] B", done=4, left_s=12.0))
    bar._bar.refresh()  # else it is drawn ten times a second
    bar.say("warning", "a routine failed")
    (task,) = bar._bar.tasks
    assert task.completed == pytest.approx(12.0 / (12.0 + 12.0))
    bar.end(0, "")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "4/9" in shown
    assert "about 12 s left · bcast [64] B" in shown
    assert "a routine failed\n" in shown
    assert not task.visible


def test_without_a_standard_error_nothing_is_shown(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert type(choose_display(False, None, lasting=True)) is Silent


def test_a_watch_counts_what_it_hands_on():
    states: list[State] = []

    class Display(Lines):
        def show(self, state: State) -> None:
            states.append(state)

    watch = Watch(Display(io.StringIO()), Forecast(RACES, lambda name, size: 0.0))
    source = watch.over(watch.timed(Model(lambda candidate, size: 1.0)))
    source.check("bcast", (Candidate("flat"), Candidate("native")))
    watch.step("bcast 1 B")
    source.measure(measurement(1, 1.0).request)
    assert [state.checks for state in states] == [2, 2, 2]
    assert (states[-1].what, states[-1].done, states[-1].measurements) == ("bcast 1 B", 1, 1)


def test_a_log_file_has_all_events_and_the_watcher_those_of_its_level(tmp_path):
    said: list[tuple[str, str]] = []
    path = tmp_path / "tune.log"
    for _ in range(2):
        with events(path, lambda *event: said.append(event), logging.WARNING):
            logging.getLogger("stagegen.x").debug("a detail")
            logging.getLogger("stagegen.x").warning("two\nlines")
    assert said == [("warning", "two\nlines")] * 2
    words = [line.split() for line in path.read_text().splitlines()]
    assert [line[1:] for line in words if len(line) > 1] == [
        ["DEBUG", "a", "detail"], ["WARNING", "two"],
    ] * 2  # fmt: skip


def test_a_log_file_that_cannot_be_written_ends_no_run(tmp_path):
    said: list[tuple[str, str]] = []
    (tmp_path / "tune.log").mkdir()
    with events(tmp_path / "tune.log", lambda *event: said.append(event), logging.INFO):
        logging.getLogger("stagegen.x").info("hello")
    assert [level for level, _ in said] == ["warning", "info"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_does_not_hide_the_error_that_ended_a_run():
    def run() -> None:
        with events(Path("/dev/full"), lambda *event: None, logging.WARNING):
            logging.getLogger("stagegen.x").info("hello")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()


def test_quiet_prints_the_result_only(tmp_path, monkeypatch):
    result = tuned(monkeypatch, tmp_path / "out", "--quiet")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"{tmp_path / 'out'}: make")
    result = tuned(monkeypatch, tmp_path / "out", "--quiet", fails="measure")
    assert result.returncode == 1
    assert "go on with --resume" in result.stderr


def test_json_progress_goes_to_a_descriptor_up_to_the_end(tmp_path, monkeypatch):
    for fails, status in (("", 0), ("measure", 1)):
        path = tmp_path / f"progress{status}"
        with path.open("w") as stream:
            words = ("--json-progress", str(stream.fileno()))
            result = tuned(monkeypatch, tmp_path / "out", *words, fails=fails)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            validate("progress", line)
        assert {line["event"] for line in lines} == {"progress", "message", "end"}
        assert lines[-1]["event"] == "end"
        assert lines[-1]["status"] == result.returncode == status
    assert tuned(monkeypatch, tmp_path / "out", "--json-progress", "77").returncode == 2


def test_json_progress_ends_with_the_status_of_an_error_before_the_run(tmp_path, monkeypatch):
    path = tmp_path / "progress"
    with path.open("w") as stream:
        words = ("--json-progress", str(stream.fileno()), "--scales", "3")
        assert tuned(monkeypatch, tmp_path / "out", *words).returncode == 2
    (line,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert line == {"event": "end", "status": 2, "text": "--scales needs --patterns"}
    for error, status in ((Stopped(signal.SIGTERM), 143), (InputError("no"), 2), (OSError(), 1)):
        assert status_of(error) == status


def be_told_twice(number: signal.Signals) -> None:
    """The second time, the command is ending already."""
    try:
        os.kill(os.getpid(), number)
    finally:
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", ENDINGS, ids=lambda number: number.name)
def test_each_signal_ends_a_command_once_and_is_itself_again(number):
    before = signal.getsignal(number)
    signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(StoppedError, match=f"ended by {number.name}") as caught, endings():
            be_told_twice(number)
        assert caught.value.exit_status == 128 + number
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_signals_that_are_ignored_stay_so_and_none_disturbs_the_last_step():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with endings() as ends:
            os.kill(os.getpid(), signal.SIGHUP)
            ends.finish()
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before)
