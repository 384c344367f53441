"""What tests of made events read them with; times are in microseconds."""

from __future__ import annotations

import pytest

from stagegen.inspection.series import Event, series_of
from stagegen.inspection.trace import read_trace
from tests.inspection import made

US = 1e-6


def trace_of(tmp_path, calls, world=made.TWO_HOSTS, routine="allreduce/tree"):
    return read_trace(made.write(tmp_path / "events", routine, calls, world))


def calls(count, late=None):
    return [made.two_levels(1000.0 * (i + 1), late) for i in range(count)]


def series(tmp_path, made_calls, skip=0, **options):
    (found,) = series_of(trace_of(tmp_path, made_calls, **options), skip).series
    return found


def us(seconds):
    return pytest.approx(seconds * US, abs=2e-9)


def events(*told):
    return tuple(Event(type_, a, b, at * US) for type_, a, b, at in told)
