"""`stagegen record`, `arrivals` and `profile`, from a program to the numbers about it."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from stagegen.cli import group
from stagegen.cli.record import _wait_for
from stagegen.recording import read
from stagegen.recording.container import write_recording
from stagegen.recording.read import WRITING
from stagegen.topology import topology_yaml
from stagegen.tune.program import program_of, read_trace
from tests.mpi import builds, support
from tests.mpi.test_recorder import plain_program
from tests.recording import made

RANKS = 4
DELAYS = (0.0, 0.25, 0.125, 0.5)


@pytest.fixture(autouse=True)
def cache(monkeypatch):
    """One cache for all tests, in the tests' own folder."""
    with support.to_be_made("cache") as (folder, _):
        folder.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


@pytest.fixture
def recording(tmp_path) -> Path:
    path = tmp_path / "made.recording"
    write_recording(path, made.recording(made.steps(30, DELAYS)))
    return path


def stagegen(*words: str | Path, status: int = 0) -> str:
    result = CliRunner().invoke(group, [*map(str, words)], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result.output


def started(*words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["stagegen", *map(str, words)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=200
    )


def mpiexec(ranks: int, *program: str | Path) -> list[str]:
    return [str(builds.Mpi.of_environment().mpiexec), "-n", str(ranks), *map(str, program)]


@pytest.mark.mpi
def test_a_program_is_recorded_and_read(tmp_path):
    words = mpiexec(RANKS, plain_program(), "many", "40")
    done = started("record", "--output", "a", "--", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "160 calls of 4 ranks" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    form = json.loads(stagegen("arrivals", "--json", tmp_path / "a"))
    (site,) = form["sites"]
    assert (site["collective"], site["calls"], site["ranks"]) == ("barrier", 40, [0, 1, 2, 3])
    assert site["elapsed_s"] >= site["waiting_s"] > 0
    profile = json.loads(stagegen("profile", "--json", tmp_path / "a"))
    assert profile["elapsed_s"] <= profile["program_s"]


@pytest.mark.mpi
def test_files_of_an_earlier_run_with_spawned_processes_do_not_stay(tmp_path):
    (tmp_path / "a.3").write_text("this is none of ours")
    words = mpiexec(RANKS, plain_program(), "many", "40")
    for _ in range(2):
        done = started("record", "--output", "a", "--", *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        (tmp_path / "a.2").write_bytes((tmp_path / "a").read_bytes())
    done = started("record", "--output", "a", "--", *words, folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.3"]


@pytest.mark.mpi
@pytest.mark.parametrize("flag", ["-no-pie", "-pie"])
def test_the_line_of_a_call_is_found_by_its_offset(tmp_path, flag):
    """In a program that is not position-independent, the offset is the address itself."""
    program = tmp_path / "program"
    source = tmp_path / "line.c"
    source.write_text(
        "#include <mpi.h>\nint main(void) {\n    MPI_Init(0, 0);\n"
        "    MPI_Barrier(MPI_COMM_WORLD);\n    MPI_Finalize();\n}\n"
    )
    mpicc = builds.Mpi.of_environment().mpicc
    options = ["-g", flag, *(["-fPIE"] if flag == "-pie" else ["-fno-pie"])]
    subprocess.run([mpicc, *options, "-o", program, source], check=True, timeout=60)
    done = started("record", "--output", "a", "--", *mpiexec(2, program), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (site,) = json.loads(stagegen("arrivals", "--json", tmp_path / "a"))["sites"]
    _, _, offset = site["site"].partition("+")
    line = ["addr2line", "-e", program, offset]
    told = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip().endswith("line.c:4"), told.stdout


@pytest.mark.mpi
def test_the_status_of_a_program_is_that_of_the_command(tmp_path):
    words = mpiexec(RANKS, plain_program(), "abort")
    done = started("record", "--output", "a", "--limit", "1", "--", *words, folder=tmp_path)
    assert done.returncode == 3
    assert "did not come to MPI_Finalize" in done.stderr
    assert not read(tmp_path / "a").finished


@pytest.mark.mpi
def test_times_of_messages_are_measured(tmp_path):
    done = started("arrivals", "--calibrate", "times", "--", *mpiexec(2), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    form = json.loads((tmp_path / "times").read_text(encoding="utf-8"))
    assert form["hosts"] == 1
    assert all(seconds > 0 for _, seconds in form["messages"])


@pytest.mark.mpi
def test_the_cost_of_recording_is_measured(tmp_path):
    done = started("record", "--overhead", "--", *mpiexec(1), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert {row[0] for row in rows} == set(support.CATALOGUE.collectives)
    assert list(tmp_path.iterdir()) == []


def test_two_recordings_do_not_write_one_file(tmp_path):
    waiting = subprocess.Popen(
        ["stagegen", "record", "--output", "a", "--", "sh", "-c", "echo here; exec sleep 60"],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "here\n"
        done = started("record", "--output", "a", "--", "touch", "b", folder=tmp_path)
        assert done.returncode == 1
        assert f"a: process {waiting.pid} on " in done.stderr
        assert "wait for it, or choose another --output" in done.stderr
        assert not (tmp_path / "b").exists()
    finally:
        waiting.terminate()
        waiting.wait()
        waiting.stdout.close()


def test_a_library_whose_path_the_linker_would_cut_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    done = started("record", "--output", "a", "--", "true", folder=tmp_path)
    assert done.returncode == 1
    assert "the path has a space or a colon; choose another folder" in done.stderr


@pytest.mark.parametrize("words", [["true"], ["sh", "-c", "exit 0"]])
def test_a_program_without_mpi_leaves_an_error_and_no_files(tmp_path, words):
    done = started("record", "--output", "a", "--", *words, folder=tmp_path)
    assert done.returncode == 1
    assert "nothing was recorded" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_program_or_a_file_that_is_no_recording_is_an_error(tmp_path):
    stagegen("record", status=2)
    stagegen("arrivals", status=2)
    done = started("record", "--output", "a", "--", "./missing", folder=tmp_path)
    assert (done.returncode, "cannot start ./missing" in done.stderr) == (2, True)
    (tmp_path / "other").write_text("text", encoding="utf-8")
    for name in ("arrivals", "profile"):
        done = started(name, "other", folder=tmp_path)
        assert (done.returncode, "other: " in done.stderr) == (2, True)


def test_text_has_the_numbers_of_the_json(recording, tmp_path):
    times = tmp_path / "times.json"
    times.write_text('{"version": 1, "hosts": 2, "messages": [[0, 0.01], [8, 0.01]]}')
    text = stagegen("arrivals", "--messages", times, recording)
    form = json.loads(stagegen("arrivals", "--messages", times, "--format", "json", recording))
    (site,) = form["sites"]
    assert site["worst_factor"] == pytest.approx(50, rel=1e-3)
    for word in ("alltoall", "program+0x10", "500 ms", "≥ 32", "100%"):
        assert word in text
    assert "only the program can change it" in stagegen("profile", recording)


def test_the_page_is_whole_and_the_same_each_time(recording, tmp_path):
    pages = []
    for name in ("a.html", "b.html"):
        stagegen("arrivals", "--html", tmp_path / name, recording)
        pages.append((tmp_path / name).read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    assert "program+0x10" in pages[0]
    assert pages[0].rstrip().endswith("</html>")


def test_tuning_reads_a_recording_and_its_histogram(recording, tmp_path):
    """The made hosts n0 … n3 are those of the topology."""
    topology = support.cluster(RANKS)
    path = tmp_path / "cluster.yaml"
    path.write_text(topology_yaml(topology), encoding="utf-8")
    stagegen("profile", "--histogram", tmp_path / "h.json", "--topology", path, recording)
    (direct,) = read_trace(recording, topology)
    (written,) = read_trace(tmp_path / "h.json", topology)
    assert direct == written
    assert (direct.communicator, direct.ranks, direct.calls, direct.size) == ("cluster", 4, 30, 8)
    assert direct.seconds == pytest.approx(30 * 1e-3, rel=1e-2)
    (wanted,) = program_of([direct], topology).wanted
    assert (wanted.collective, wanted.sizes) == ("alltoall", (8,))


def test_parts_that_still_grow_are_waited_for(tmp_path):
    """They grow for longer than a part may rest."""
    part = tmp_path / f"n0-7{WRITING}"
    part.touch()

    def write() -> None:
        for _ in range(30):
            time.sleep(0.1)
            with part.open("a") as file:
                file.write("more")
        part.rename(part.with_suffix(".part"))

    writer = threading.Thread(target=write)
    writer.start()
    assert _wait_for(tmp_path, patience=2)
    writer.join()


def test_parts_that_rest_are_told(tmp_path, capsys):
    (tmp_path / f"n0-7{WRITING}").touch()
    assert not _wait_for(tmp_path, patience=0.1)
    assert f"{tmp_path} stays: not all that was recorded is written" in capsys.readouterr().err


def test_a_histogram_needs_a_topology(recording, tmp_path):
    result = CliRunner().invoke(group, ["profile", "--histogram", "h.json", str(recording)])
    assert result.exit_code != 0
