"""Two threads at once on communicators of their own, watched by ThreadSanitizer."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.generate import run_make
from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

RANKS = 4
FLAGS = ("-g", "-fsanitize=thread")
RACE = 66
#: What ThreadSanitizer and the MPI library's own libraries need to live together: locks inside the
#: MPI library do not count as order between our accesses, and UCX does not patch memory functions.
ENVIRONMENT = {
    "TSAN_OPTIONS": f"exitcode={RACE} ignore_noninstrumented_modules=1",
    "UCX_MEM_EVENTS": "n",
    "LD_PRELOAD": "",
}


@lru_cache
def fixed_addresses() -> tuple[str, ...]:
    """Return words that start a program without random addresses, if that is allowed here."""
    words = ("setarch", "-R")
    if shutil.which(words[0]) is None:
        return ()
    asked = subprocess.run([*words, "true"], capture_output=True, check=False)
    return words if asked.returncode == 0 else ()


def sanitized(mpi: builds.Mpi) -> Path:
    probe = support.scratch() / "probe.c"
    probe.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    tried = subprocess.run(
        ["cc", "-fsanitize=thread", probe, "-o", probe.with_suffix("")],
        capture_output=True, check=False,
    )  # fmt: skip
    if tried.returncode != 0:
        pytest.skip("the compiler has no ThreadSanitizer")
    return builds.library(mpi, RANKS, *FLAGS)


def run(mpi: builds.Mpi, folder: Path, calls: int) -> subprocess.CompletedProcess[str]:
    program = builds.c_program(mpi, folder, "threads.c", "-fsanitize=thread")
    words = (*fixed_addresses(), program, calls)
    return builds.run(mpi, RANKS, *words, variables=ENVIRONMENT, timeout=200)


def test_two_threads_do_not_race():
    mpi = builds.Mpi.of_environment()
    result = run(mpi, sanitized(mpi), 120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "MPI_THREAD_MULTIPLE" not in result.stdout


#: Two calls meet here, then count up one variable. The counter of arrivals is relaxed, so that it
#: puts no order between them: the race is there however the threads are scheduled. A call whose
#: partner does not come (it may wait for another rank) goes on alone.
MEETING = """    unsigned own = __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 20000 && __atomic_load_n(&arrived, __ATOMIC_RELAXED) <= (own | 1); ++i)
        sched_yield();
    ++races;
"""


def with_race(folder: Path, copy: Path) -> Path:
    """A library in which all calls count up one variable, two threads at a time."""
    shutil.copytree(folder, copy)
    source = copy / "src" / "call.c"
    text = source.read_text(encoding="utf-8")
    head = r"\nint coll_run\([^)]*\) \{\n"
    text, places = re.subn(
        f"({head})", rf"\nint races;\nunsigned arrived;\1{MEETING}", "#include <sched.h>\n" + text
    )
    assert places == 1
    source.write_text(text, encoding="utf-8")
    run_make(copy, support.toolchain(), "libcoll.a")
    return copy


def test_the_thread_sanitizer_finds_an_added_race(tmp_path):
    mpi = builds.Mpi.of_environment()
    folder = with_race(sanitized(mpi), tmp_path / "library")
    result = run(mpi, folder, 40)
    assert result.returncode == RACE
    assert "data race" in result.stderr
    assert "coll_run" in result.stderr
