"""What all tests share: libraries that are built once, and what is said in the end.

Compiles through ccache, where there is one for this machine: libraries for different numbers of
ranks have most of their code in common. Says which tests of the lab did not run, and why.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter

import pytest

#: Names the folder of the libraries that the processes of `pytest -n` share.
SHARED = "STAGEGEN_TESTS_SHARED"

#: Files of tests that take 20 s or more, the longest first; any order is right.
LONGEST = (
    "mpi/test_conformance",
    "mpi/test_schedules",
    "mpi/test_programs",
    "faults/test_faults",
    "mpi/test_mpi4py",
    "mpi/test_scratch",
    "mpi/test_session_driver",
    "mpi/test_fortran",
    "mpi/test_data",
    "mpi/test_configured_trees",
    "mpi/test_groups",
    "mpi/test_compositions",
    "mpi/test_adaptive",
    "mpi/test_patterns",
    "mpi/test_threads",
    "mpi/test_persistent",
    "mpi/test_rank_order",
    "mpi/test_events",
    "mpi/test_parameters",
    "mpi/test_learned_library",
    "mpi/test_openmpi",
)

if shutil.which("ccache"):
    for wrapper in ("MPICH_CC", "OMPI_CC"):
        os.environ.setdefault(wrapper, "ccache cc")
    # Objects of sanitized builds hold the name of their folder: nobody asks for it here.
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")
    # Headers that were written just now count too, else each file is preprocessed first.
    os.environ.setdefault("CCACHE_SLOPPINESS", "include_file_mtime,include_file_ctime")


def pytest_configure(config: pytest.Config) -> None:
    """Make the shared folder, where this is not a process of `-n` that was given one."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="stagegen-tests-")
        os.environ[SHARED] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files first that take longest, so that no process of `-n` ends with one alone."""
    places = {f"{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(places)))


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
