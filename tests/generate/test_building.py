"""Builds that are cut off, and builds of one folder at the same time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stagegen.generate import Toolchain, build_once, run_make
from stagegen.generate.lock import HeldError, take

MAKEFILE = """
all: made
made: source
\t@echo begin >>said
\t@{slowly}
\t@cp source made
"""
#: The rule of a compiler that leaves half a file for a while.
SLOWLY = {"Makefile": "made:\n\t@echo half >made; sleep 1; echo whole >made; echo >>said\n"}
HERE = Path(__file__).parents[2]


def toolchain() -> Toolchain:
    make = shutil.which("make")
    assert make is not None
    return Toolchain("cc", make)


def folder(path: Path, slowly: str = "true") -> Path:
    (path / "Makefile").write_text(MAKEFILE.format(slowly=slowly), encoding="utf-8")
    (path / "source").write_text("text", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("cc -I/opt/mpi -L/opt/lib -Wl,-rpath -Wl,/opt/lib -lmpi", "cc -I/opt/mpi"),
        ("env cc -m64 '-I/o p' -lmpi", "env cc -m64 '-I/o p'"),
        ("", None),
        ("cc -lmpi", None),
        ("cc -isystem /opt/mpi -I/opt -lmpi", None),
        ("no-such-compiler -I/opt/mpi", None),
        ("cc '-I/opt", None),
    ],
)
def test_the_compiler_of_a_wrapper_is_used_only_if_it_is_known(tmp_path, said, wanted):
    wrapper = tmp_path / "mpicc"
    wrapper.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n", encoding="utf-8")
    wrapper.chmod(0o755)
    _, told = Toolchain(str(wrapper), "make").variables
    assert told == f"COMPILE={wanted or wrapper}"


def begun(path: Path) -> int:
    said = path / "said"
    return said.read_text().count("begin") if said.exists() else 0


def start(path: Path, number: int) -> subprocess.Popen[bytes]:
    """Build in another process, and send it a signal once make is at work."""
    script = (
        "import signal, sys; from pathlib import Path; from tests.generate.test_building import *\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "run_make(Path(sys.argv[1]), toolchain())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        cwd=HERE, env={**os.environ, "PYTHONPATH": str(HERE)}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    count = begun(path)
    end = time.monotonic() + 30
    while begun(path) == count:
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(number)
    process.wait(30)
    return process


def test_a_build_that_ended_is_not_made_again(tmp_path):
    folder(tmp_path)
    for _ in range(2):
        run_make(tmp_path, toolchain())
        assert begun(tmp_path) == 1
    assert not (tmp_path / ".making").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_after_a_build_that_was_cut_off_all_is_made_anew(tmp_path, number):
    """What a killed compiler leaves is newer than its source, as `made` is here."""
    start(folder(tmp_path, "sleep 1"), number)
    (tmp_path / "made").write_text("half", encoding="utf-8")
    os.utime(tmp_path / "source", (1, 1))
    before = begun(tmp_path)
    run_make(tmp_path, toolchain())
    assert (tmp_path / "made").read_text() == "text"
    assert begun(tmp_path) == before + 1


def test_a_build_waits_for_one_whose_starter_was_killed(tmp_path):
    """That make is still at work, and would write into the files of this one."""
    start(folder(tmp_path, "sleep 1; echo end >>said"), signal.SIGKILL)
    run_make(tmp_path, toolchain())
    assert (tmp_path / "said").read_text().split() == ["begin", "end"] * 2


def build_slowly(path: Path) -> subprocess.Popen[bytes]:
    """Begin to build in another process, and return when half of the target is written."""
    script = (
        "import sys; from pathlib import Path; from tests.generate.test_building import *\n"
        "build_once(Path(sys.argv[1]), SLOWLY, toolchain(), 'made')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], cwd=HERE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )  # fmt: skip
    end = time.monotonic() + 30
    while not (path / "made").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("killed", ["nothing", "all", "make"])
def test_what_is_built_once_is_whole(tmp_path, killed):
    """Another process still builds it, or was killed with all that it started, or lost its make."""
    other = build_slowly(tmp_path)
    if killed != "nothing":
        make = int(Path(f"/proc/{other.pid}/task/{other.pid}/children").read_text())
        if killed == "all":
            other.kill()
        os.killpg(make, signal.SIGKILL)
    if killed == "make":
        assert other.wait(30) == 1
    for _ in range(2):
        made = build_once(tmp_path, SLOWLY, toolchain(), "made")
        assert made.read_text() == "whole\n"
    other.wait(30)
    assert (tmp_path / "said").read_text() == "\n"


def test_a_file_is_held_until_it_is_released(tmp_path):
    path = tmp_path / "lock"
    first = take(path, "me", wait=False)
    with pytest.raises(HeldError, match="me"):
        take(path, "you", wait=False)
    first.release()
    assert not path.exists()
    second = take(path, "you", wait=False)
    assert second.left == ""
    second.abandon()
    third = take(path, "me", wait=True)
    assert third.left == "you"
    third.release()
