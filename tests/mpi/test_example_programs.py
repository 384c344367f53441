"""The programs of docs/examples/programs give right results, and are recorded."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from docs.tools.experiments.applications.before_and_after import patterns_in
from stagegen.patterns import read_patterns
from stagegen.recording import arrival_patterns, read
from stagegen.recording.calls import align
from tests.mpi import support
from tests.mpi.test_recorder import RANKS, run

pytestmark = pytest.mark.mpi

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "examples" / "programs"
#: Each with arguments, and what its loop calls: collective, size and number of calls.
PROGRAMS = {
    "work": (("6", "1", "1024"), {("alltoall", 1024, 6)}),
    "fourier": (("32", "3"), {("alltoall", 8 * 8 * 16, 12), ("allreduce", 16, 3)}),
    "cube": (("16", "2"), {("alltoall", 4 * 4 * 16 * 16, 8), ("allreduce", 16, 2)}),
    "bodies": (("8", "7"), {("allgather", 8 * 24, 7)}),
    "sort": (("500", "4"), {("allreduce", 4096, 4), ("alltoall", 4, 4)}),
    "gsum": (("6", "4", "2"), {("allreduce", 4, 4)}),
    "frames": (("300", "20"), {("bcast", 300 * 8, 20), ("allreduce", 8, 20)}),
    "stencil": (("2", "25"), {("allreduce", 8, 25)}),
}


@lru_cache
def programs() -> Path:
    """Compile all of them in a folder of the tests."""
    with support.to_be_made("examples") as (folder, empty):
        if empty:
            mpicc = support.toolchain().mpicc
            words = ["make", "-s", "-f", str(FOLDER / "Makefile"), f"VPATH={FOLDER}"]
            folder.mkdir(exist_ok=True)
            subprocess.run([*words, f"MPICC={mpicc}"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("collective", ["allgather", "allreduce", "alltoall", "alltoallv"])
def test_calls_prints_the_times_of_delayed_calls(collective):
    words = (collective, 64, 6, "late=20", "beside=68", "then=128", "then_late=0")
    result = support.run(RANKS, programs() / "calls", *map(str, words))
    told = json.loads(result.stdout)
    assert result.returncode == 0
    assert told["right"]
    assert {name: len(told[name]) for name in told if name != "right"} == {
        "elapsed": 6, "last": 6, "beside_elapsed": 6, "beside_last": 6,
    }  # fmt: skip
    assert max(told["elapsed"][:3]) > 0.002, "no process came late"


def delayed(*words: str) -> tuple[list[float], list[list[float]]]:
    """The seconds of calls, and of each process the milliseconds that it was to sleep before."""
    result = support.run(RANKS, programs() / "calls", "alltoall", "64", "12", "message=10", *words)
    told = json.loads(result.stdout)
    delays = told["delays"]
    calls = len(delays) // RANKS
    return told["elapsed"], [delays[i : i + calls] for i in range(0, len(delays), calls)]


def test_calls_with_a_factor_draws_the_delay_of_a_process_once():
    """Fig. 4.20: r times the time of a message. After a barrier, processes wait for the latest."""
    elapsed, delays = delayed("factor=8", "seed=3")
    assert len(delays) == RANKS
    assert all(len(own) == 12 and len(set(own)) == 1 for own in delays), "a delay is drawn anew"
    drawn = [own[0] for own in delays]
    assert len(set(drawn)) > 1
    assert {milliseconds % 10 for milliseconds in drawn} == {0}
    waits = sum(max(drawn) - milliseconds for milliseconds in drawn) / RANKS / 1e3
    assert sorted(elapsed)[6] > waits / 2, "no process came late"
    assert [own[0] for own in delayed("factor=8", "seed=8")[1]] != drawn


def test_calls_with_a_factor_draws_r_below_it():
    drawn = {own[0] for seed in range(4) for own in delayed("factor=2", f"seed={seed}")[1]}
    assert drawn == {0, 10}


def test_calls_carries_out_a_command_before_a_call(tmp_path):
    words = ("alltoall", "64", "4", "at=2", f"command=touch {tmp_path / 'done'}")
    assert support.run(2, programs() / "calls", *words).returncode == 0
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize("words", [(), ("scan", "64", "4"), ("alltoall", "64", "4", "wait=3")])
def test_calls_refuses_what_it_does_not_know(words):
    result = support.run(2, programs() / "calls", *words)
    assert result.returncode != 0
    assert result.stderr.count("usage: calls") == 1


def test_first_calls_reads_counts_and_prints_the_times_of_rounds(tmp_path):
    counts = tmp_path / "counts.txt"
    counts.write_text("".join(f"{rank} 0 70 {5000 * rank}\n" for rank in range(4)))
    result = support.run(4, programs() / "first_calls", counts, 3)
    assert result.returncode == 0, result.stdout + result.stderr
    *rounds, last = result.stdout.splitlines()
    assert last == "right: 3 rounds of 10 calls"
    told = [re.fullmatch(r"round (\d): library [0-9.]+ s, native [0-9.]+ s", r) for r in rounds]
    assert [one and one[1] for one in told] == ["0", "1", "2"]


@pytest.mark.parametrize("text", ["1 2 3\n", "0 0\n0 -1\n", "0 0\n0 x\n"])
def test_first_calls_refuses_counts_that_are_none(tmp_path, text):
    counts = tmp_path / "counts.txt"
    counts.write_text(text)
    result = support.run(2, programs() / "first_calls", counts)
    assert result.returncode != 0
    assert "COUNTS needs 2 rows of 2 numbers" in result.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_right_and_its_calls_are_recorded(tmp_path, name):
    arguments, expected = PROGRAMS[name]
    parts, result = run(tmp_path, *arguments, program=programs() / name)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.startswith("right")
    recording = read(parts)
    aligned = align(recording)
    assert aligned.unmatched == 0
    found = {(one.collective, one.size, len(one.sequences)) for one in aligned.calls}
    assert expected <= found
    assert all(one.site.startswith(f"{name}+0x") for one in aligned.calls)
    assert all(pattern.ranks == tuple(range(RANKS)) for pattern in arrival_patterns(recording))


#: How FFTW plans, the edge of the cube, and which collective then has a call in each transform.
TRANSPOSED = [
    ("out-of-place", 16, {"alltoall"}),
    ("out-of-place", 15, {"alltoallv"}),
    ("in-place", 15, set()),
]


@pytest.mark.parametrize(("way", "edge", "expected"), TRANSPOSED)
def test_what_fftw_calls_depends_on_its_plan(tmp_path, way, edge, expected):
    """Debian's FFTW is for Open MPI; 4 ranks do not divide the edge 15."""
    mpicc, mpiexec = shutil.which("mpicc.openmpi"), shutil.which("mpiexec.openmpi")
    headers = [Path("/usr/include") / name for name in ("fftw3.h", "fftw3-mpi.h")]
    if not (mpicc and mpiexec and all(header.exists() for header in headers)):
        pytest.skip("needs Debian's libfftw3-dev, libfftw3-mpi-dev and openmpi-bin")
    words = ["make", "-s", "-f", str(FOLDER / "Makefile"), f"VPATH={FOLDER}", f"MPICC={mpicc}"]
    subprocess.run([*words, "fftw"], cwd=tmp_path, check=True)
    record = [sys.executable, "-m", "stagegen", "record", "--output", tmp_path / "out", "--"]
    started = [mpiexec, "--allow-run-as-root", "--oversubscribe", "-n", "4", tmp_path / "fftw"]
    arguments = (str(edge), "3", way, "estimate")
    variables = {**os.environ, "OMPI_MCA_mpi_yield_when_idle": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*map(str, (*record, *started, *arguments))],
        env=variables, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "right: 6 transforms" in done.stdout
    calls = align(read(tmp_path / "out")).calls
    every = {one.collective for one in calls}
    assert {name for name in every if name.startswith("alltoall")} == expected
    transposed = sum(len(one.sequences) for one in calls if one.collective in expected)
    assert transposed == (6 if expected else 0)


def test_the_mean_block_stands_for_blocks_of_different_lengths(tmp_path):
    parts, _ = run(tmp_path, "500", "4", program=programs() / "sort")
    (moved,) = (one for one in align(read(parts)).calls if one.collective == "alltoallv")
    assert len(moved.sequences) == 4
    assert moved.size == 4 * 500 // RANKS


def test_tuning_for_a_program_gets_its_patterns(tmp_path):
    file = tmp_path / "patterns.yaml"
    parts, _ = run(tmp_path, "500", "4", program=programs() / "sort")
    assert patterns_in(parts, file)[:2] == ("--patterns", file)
    assert {(one.collective, one.ranks) for one in read_patterns(file)} == {("alltoallv", RANKS)}


def test_a_program_without_blocks_of_unlike_lengths_has_no_patterns(tmp_path):
    parts, _ = run(tmp_path, "6", "1", "1024", program=programs() / "work")
    assert patterns_in(parts, tmp_path / "patterns.yaml") == ()
    assert not (tmp_path / "patterns.yaml").exists()


def test_a_program_of_mpi4py_is_recorded(tmp_path):
    pytest.importorskip("mpi4py")
    parts, result = run(tmp_path, str(FOLDER / "transpose.py"), program=Path(sys.executable))
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["right"]
    found = {(one.collective, one.size): one for one in align(read(parts)).calls}
    assert len(found["alltoall", 32].sequences) == 10
