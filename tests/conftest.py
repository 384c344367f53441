"""What all tests share: libraries that are built once, and a last line about the lab's tests.

Compiles through ccache, where there is one for this machine: libraries for different numbers of
ranks have most of their code in common. Says which tests of the lab did not run, and why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.strategies import USUAL
from tests.tiers import LONGEST, WIDE, is_wide, place, unmatched

HERE = Path(__file__).parent

#: Names the folder of the libraries that the processes of `pytest -n` share.
SHARED = "STAGEGEN_TESTS_SHARED"

# Most test programs make few calls on a communicator. Native routines would serve these otherwise.
os.environ.setdefault("LIBCOLL_SHORT_CALLS", "0")

# No test of hypothesis fails because the machine is busy. pytest-timeout ends one that hangs.
settings.register_profile(
    "busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy machine")
# `make test` uses this profile. `make test-wide` uses the one above, which has all examples.
settings.register_profile("few", max_examples=USUAL // 4)

if shutil.which("ccache") and shutil.which("cc"):
    for wrapper in ("MPICH_CC", "OMPI_CC"):
        os.environ.setdefault(wrapper, "ccache cc")
    # In Makefiles, the compiler's own list of headers spares ccache a run of the preprocessor;
    # -fpch-deps, which gcc has, puts there what a header has that was compiled before.
    lists = "-MMD -fpch-deps"
    asked = ["cc", *lists.split(), "-MF", os.devnull, "-fsyntax-only", "-xc", os.devnull]
    if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
        os.environ.setdefault("CFLAGS", f"-O2 {lists}")
        os.environ.setdefault("CCACHE_DEPEND", "1")
    # Objects of sanitized builds hold the name of their folder, which no test looks at.
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")
    # Headers that were written just now count too.
    sloppiness = "include_file_mtime,include_file_ctime,pch_defines,time_macros"
    os.environ.setdefault("CCACHE_SLOPPINESS", sloppiness)


def pytest_configure(config: pytest.Config) -> None:
    """Make the shared folder, where this is not a process of `-n` that was given one."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="stagegen-tests-")
        os.environ[SHARED] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the wide tests; put the files first that take longest.

    So no process of `-n` ends with a long file alone.

    Raises:
        pytest.UsageError: tests/tiers.py names a file or a test that does not exist, or the
            Makefile does not see that a file has tests that run alone.
    """
    names, jobs = defaultdict(list), defaultdict(list)
    for item in items:
        names[_file(item)].append(item.name)
        if is_wide(_file(item), item.name):
            item.add_marker(pytest.mark.wide)
        elif item.get_closest_marker("mpi") and not item.get_closest_marker("slow"):
            jobs[item.nodeid.partition("[")[0]].append(item)
    for _, *others in jobs.values():
        for item in others:
            item.add_marker(pytest.mark.wide)
    are_whole = not config.getoption("lf", False) and not any("::" in word for word in config.args)
    stale = [f"{f}::{entry}" for f in names for entry in unmatched(f, names[f]) if are_whole]
    stale += [file for file in (*WIDE, *LONGEST) if not (HERE / f"{file}.py").is_file()]
    if stale:
        raise pytest.UsageError(f"tests/tiers.py: there is no {', no '.join(stale)}")
    alone = {item.path for item in items if item.get_closest_marker("alone")}
    if unseen := [str(path) for path in alone if "mark.alone" not in path.read_text("utf-8")]:
        raise pytest.UsageError(f"ALONE in the Makefile looks for mark.alone: {', '.join(unseen)}")
    items.sort(key=lambda item: place(_file(item)))


def _file(item: pytest.Item) -> str:
    """The file of a test, from the folder of the tests, without its suffix."""
    return item.path.relative_to(HERE).with_suffix("").as_posix()


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
