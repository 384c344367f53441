"""A source that keeps what another one answers, as a log does."""

from __future__ import annotations

from typing import Any

from stagegen.measure.records import CandidateFailed


class Recorder:
    """Hands on to `source` and keeps the answers in `records`."""

    def __init__(self, source: Any, records: list[Any]):
        self.source, self.records = source, records

    def check(self, collective, given, communicator="whole"):
        checks = self.source.check(collective, given, communicator)
        self.records += [check.to_json() for check in checks]
        return checks

    def measure(self, asked):
        try:
            measured = self.source.measure(asked)
        except CandidateFailed as failed:
            self.records.append(failed.failure.to_json())
            raise
        self.records.append(measured.to_json())
        return measured
