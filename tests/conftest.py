"""Compiles through ccache where it is installed; says which tests of the lab did not run, and why.

Libraries for different numbers of ranks have most of their code in common.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter

import pytest

if shutil.which("ccache"):
    for wrapper in ("MPICH_CC", "OMPI_CC"):
        os.environ.setdefault(wrapper, "ccache cc")


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
