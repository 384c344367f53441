"""Says at the end how many tests of the lab ran, and why others did not."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line about the tests marked `lab`."""
    ran = sum(
        "lab" in report.keywords
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
    )
    reasons = Counter(
        report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
        for report in terminalreporter.stats.get("skipped", [])
        if "lab" in report.keywords
    )
    why = "".join(f"; {count} × {reason}" for reason, count in reasons.most_common())
    terminalreporter.write_line(f"lab: {ran} tests run, {reasons.total()} skipped{why}")
