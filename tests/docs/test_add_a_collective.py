"""A collective that the repository lacks, MPI_Scan: the files that the page names are enough.

They are in ``scan/``: the description, the view, and two algorithms.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from docs.tools import catalogue as catalogue_page
from stagegen.audit import audit_folder
from stagegen.catalogue import Catalogue, load_catalogue
from stagegen.cli._tune_log import new_header
from stagegen.data import TEMPLATES
from stagegen.generate import Renderer, measuring_sources, run_make, session_build, write_files
from stagegen.library import write_library
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.live import start_session
from stagegen.measure.log import read_log
from stagegen.measure.records import Candidate, Timing
from stagegen.measure.source import LogSource
from stagegen.measure.validity import still_valid
from stagegen.report import render_report
from stagegen.schedule import lower_bound
from stagegen.tune.bounds import bound_or_none
from stagegen.tune.scope import Options
from stagegen.tune.search import default_candidate
from stagegen.tune.tuner import tune
from tests.measure.fakes import ENVIRONMENT, Model
from tests.mpi import builds, support
from tests.tune.recorder import Recorder

SCAN = Path(__file__).parent / "scan"
PAGE = Path(__file__).parents[2] / "docs" / "add-an-algorithm.md"
RANKS = 4
TOPOLOGY = support.cluster(RANKS)
OPTIONS = Options(("scan",), (64, 4096, 65536), Timing("barrier"), 20.0)
#: Seconds of a message and of a byte: each of the two algorithms is the best at some size.
COSTS = {"doubling": (1e-4, 4e-8), "linear": (5e-4, 1e-8), "native": (2e-3, 9e-8)}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory) -> Catalogue:
    """The catalogue of a copy of the templates, with the files of a scan."""
    root = tmp_path_factory.mktemp("copy") / "templates"
    shutil.copytree(TEMPLATES, root)
    shutil.copytree(SCAN, root / "scan", ignore=shutil.ignore_patterns("program.c"))
    return load_catalogue(root)


def renderer(catalogue: Catalogue) -> Renderer:
    names = (TOPOLOGY.name, TOPOLOGY.hash, catalogue.hash)
    return Renderer("a test", *names, catalogue.templates)


def cost(candidate: Candidate, size: int) -> float:
    latency, per_byte = COSTS[candidate.algorithm]
    return latency + size * per_byte


def write_log(catalogue: Catalogue, path: Path) -> None:
    """Write the log of a tuning run on a cluster whose times follow from the costs."""
    records: list = [
        new_header(TOPOLOGY, catalogue, OPTIONS),
        {"kind": "session", "environment": ENVIRONMENT.to_json(), "mpi": "a model"},
    ]
    tune(TOPOLOGY, catalogue, OPTIONS, Recorder(Model(cost), records), lambda: True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")


def tuned_from(log: Path, catalogue: Catalogue):
    header, records = read_log(log)
    valid = still_valid(header, records, catalogue.hashes)
    return tune(TOPOLOGY, catalogue, OPTIONS, LogSource(valid), lambda: True)


@pytest.fixture(scope="module")
def tuned(catalogue, tmp_path_factory):
    log = tmp_path_factory.mktemp("log") / "measurements.jsonl"
    write_log(catalogue, log)
    return tuned_from(log, catalogue)


def test_the_files_are_those_that_the_page_names():
    text = PAGE.read_text(encoding="utf-8")
    (section,) = re.findall(r"^## Add a collective$(.*)", text, re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"^\| `templates/<collective>/([\w.<>]+)` \|", section, re.MULTILINE))
    assert named == {"collective.yaml", "view.c", "<algorithm>.c.j2"}
    (sample,) = re.findall(r"^```yaml\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert sample == (TEMPLATES / "gather" / "collective.yaml").read_text(encoding="utf-8")
    there = {path.name for path in SCAN.iterdir()} - {"program.c"}
    assert there == {"collective.yaml", "view.c", "linear.c.j2", "doubling.c.j2"}


def test_the_catalogue_has_the_collective_its_native_routine_and_its_bound(catalogue):
    assert "scan" in catalogue.collectives
    assert [a.name for a in catalogue.of("scan")] == ["doubling", "linear", "native"]
    scan = catalogue.collective("scan")
    bound = bound_or_none(TOPOLOGY, scan, 1000, 0)
    assert bound is not None
    assert bound.collective == "scan"
    assert bound.seconds == lower_bound(TOPOLOGY, "bcast", 1000, 0).seconds
    assert f"## scan\n\n{scan.summary}" in catalogue_page.page(catalogue)


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 5])
def test_the_session_finds_its_routines_right_and_times_them(catalogue, tmp_path, ranks):
    topology = support.cluster(ranks)
    build = session_build(topology, catalogue, ("scan",))
    write_files(tmp_path, measuring_sources(build, renderer(catalogue)))
    run_make(tmp_path, support.toolchain())
    candidates = [default_candidate(a) for a in catalogue.of("scan")]
    session, _ = start_session(LocalLauncher(), topology, tmp_path / "session", tmp_path)
    with closing(session):
        for check in session.check("scan", candidates, 120):
            assert check.cases > 10
            assert (check.wrong, check.first_wrong) == (0, "")


def test_it_is_tuned_from_a_log(tuned):
    tables = tuned.decision.tables
    assert {table.collective for table in tables} == {"scan"}
    for table in tables:
        if table.ranks is not None:
            served = [table.choice(size).algorithm for size in (*OPTIONS.sizes, RANKS * 65536)]
            assert served == ["doubling", "doubling", "linear", "linear"]


@pytest.mark.mpi
def test_the_library_serves_the_added_collective(catalogue, tuned, tmp_path):
    report = render_report(TOPOLOGY, catalogue, tuned, [ENVIRONMENT])
    write_library(tmp_path, TOPOLOGY, catalogue, tuned.decision, {"report.html": report})
    for target in ("libcoll.so", "build/check"):
        run_make(tmp_path, support.toolchain(), target)
    assert {"scan_doubling", "scan_linear"} <= {p.routine for p in audit_folder(tmp_path)}
    assert "MPI_Scan" in defined(tmp_path / "libcoll.so", "-D")
    checked = support.run(RANKS, tmp_path / "build" / "check", "quick")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert re.search(r"^scan +\d{3,} passed, 0 failed$", checked.stdout, re.MULTILINE)
    served = run_program(tmp_path)
    assert {"doubling", "linear"} == {routine for routine, calls in served.items() if calls}


@pytest.mark.mpi
def test_fortran_programs_call_the_added_collective_with_open_mpi(catalogue, tuned, tmp_path):
    """MPICH's Fortran library calls the C functions; Open MPI's does not."""
    mpicc = builds.Mpi.of_system("openmpi").mpicc
    write_library(tmp_path, TOPOLOGY, catalogue, tuned.decision, {})
    source, made = tmp_path / "src" / "fortran.c", tmp_path / "fortran.o"
    includes = ["-I", tmp_path / "include", "-I", source.parent]
    subprocess.run([mpicc, "-std=gnu11", *includes, "-c", source, "-o", made], check=True)
    assert {"mpi_scan", "mpi_scan_", "mpi_scan__", "MPI_SCAN", "mpi_scan_f08_"} <= defined(made)


def defined(binary: Path, *options: str) -> set[str]:
    """Return the names that a library or an object file defines for others."""
    command = ["nm", "--extern-only", "--defined-only", *options, binary]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1] for line in lines}


def run_program(folder: Path) -> dict[str, int]:
    """Run a program that calls MPI_Scan; return the calls that each routine served on rank 0."""
    program = folder / "program"
    command = [support.toolchain().mpicc, "-std=c11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-o", program, SCAN / "program.c"], check=True)
    library = (folder / "libcoll.so",)
    result = support.run(RANKS, program, preload=library, variables={"LIBCOLL_TRACE": "1"})
    assert result.stdout.split() == ["right"], result.stdout + result.stderr
    trace = re.findall(r"rank 0: scan +(\w+) .* (\d+) calls", result.stderr)
    found: dict[str, int] = {}
    for routine, calls in trace:
        found[routine] = found.get(routine, 0) + int(calls)
    return found
