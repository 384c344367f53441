"""The check that comes before timing notices mistakes in routines, in the build that is timed."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace

import pytest

from stagegen.catalogue import applicable, load_catalogue
from stagegen.catalogue.algorithm import NATIVE
from stagegen.data import TEMPLATES
from stagegen.generate import Renderer, measuring_sources, run_make, session_build, write_files
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.live import start_session
from stagegen.measure.live_source import LiveSource
from stagegen.measure.log import LogWriter, read_log
from stagegen.measure.session import Members
from stagegen.tune.candidates import default_candidate
from stagegen.tune.scope import Options
from stagegen.tune.tuner import tune
from tests.measure.fakes import TIMING
from tests.mpi import support

pytestmark = pytest.mark.mpi

RANKS = 4

# A template, a mistake, and the routines that have it. None of them makes a rank wait forever.
PIPELINES = {
    f"{way}_{tree}" for way in ("pipelined", "topology") for tree in ("linear", "binary", "kary")
}
PAIRS = {
    f"{collective} pair{between}"
    for collective in ("allgather", "allgatherv", "alltoall", "alltoallv")
    for between in ("", "_light_barrier", "_mpi_barrier", "_n_mpi_barriers")
}
MISTAKES = [
    ("engines/steps.c", "COLL_TRY(take_step(call, cc, &between, step, steps, partner, partner))",
     "if (step != 2) COLL_TRY(take_step(call, cc, &between, step, steps, partner, partner))",
     PAIRS),
    ("alltoall/bruck.c.j2", "cc->rank - i + cc->size", "cc->rank + i", {"alltoall bruck"}),
    ("engines/ring_allgather.c", "step < p - 1", "step < p - 2",
     {"allgather ring", "allgatherv ring"}),
    ("allgather/recursive_doubling.c.j2", "(call, theirs), d", "(call, mine), d",
     {"allgather recursive_doubling"}),
    ("bcast/flat.c.j2", "PMPI_Send(call->recv, bytes", "PMPI_Send(call->recv, bytes - 1",
     {"bcast flat"}),
    ("engines/pipeline_down.c", "(int)rest : segment_size",
     "(int)rest - (rest > 1) : segment_size",
     {f"bcast {name}" for name in (*PIPELINES, "late_leaves")}),
]  # fmt: skip


#: A mistake with another value of a parameter than the default.
OTHER_VALUE = ("allgather/bruck.c.j2", "PMPI_Type_contiguous(bytes,",
               "PMPI_Type_contiguous(bytes - (radix > 2 && bytes > 9),")  # fmt: skip


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A measuring session of a catalogue with all the mistakes, and that catalogue."""
    folder = tmp_path_factory.mktemp("broken")
    root = folder / "templates"
    shutil.copytree(TEMPLATES, root)
    for name, right, mistake in (*(row[:3] for row in MISTAKES), OTHER_VALUE):
        text = (root / name).read_text(encoding="utf-8")
        assert right in text, f"{name} has changed: make another mistake in it"
        (root / name).write_text(text.replace(right, mistake), encoding="utf-8")
    topology, catalogue = support.cluster(RANKS), load_catalogue(root)
    catalogue = replace(catalogue, algorithms=applicable(catalogue, topology))
    renderer = Renderer("a test", topology.name, topology.hash, catalogue.hash, catalogue.templates)
    write_files(folder / "session", measuring_sources(session_build(topology, catalogue), renderer))
    run_make(folder / "session", support.toolchain())
    return folder / "session", catalogue


def start(folder):
    topology = support.cluster(RANKS)
    return start_session(LocalLauncher(), topology, folder / "session", folder)[0]


def users_of(routines, catalogue):
    """The routines that use one of these."""
    used = {routine.replace(" ", "/") for routine in routines}
    return {f"{a.collective} {a.name}" for a in catalogue.algorithms if used & set(a.uses)}


def test_every_mistake_is_noticed_and_nothing_else(broken):
    folder, catalogue = broken
    wrong = set()
    with closing(start(folder)) as session:
        for name in catalogue.collectives:
            candidates = [default_candidate(a) for a in catalogue.of(name) if a.name != NATIVE]
            for check in session.check(name, candidates, 120):
                if check.wrong:
                    assert f"{name} on {RANKS} ranks" in check.first_wrong
                    wrong.add(f"{name} {check.candidate.algorithm}")
    expected = set().union(*(routines for *_, routines in MISTAKES))
    assert wrong == expected | users_of(expected, catalogue)


def test_a_routine_that_was_right_is_checked_with_a_part_of_the_trials_others_each_time(broken):
    folder, catalogue = broken
    (bruck,) = (a for a in catalogue.of("allgather") if a.name == "bruck")
    values = [replace(default_candidate(bruck), parameters=(("radix", k),)) for k in (2, 3, 2, 2)]
    with closing(start(folder)) as session:
        first, wrong, *again = session.check("allgather", values, 120, again=True)
        (whole,) = session.check("allgather", values[:1], 120)
        session.use({"three": Members((0, 1, 2))})
        (elsewhere,) = session.check("allgather", values[:1], 120, again=True)
    assert first.wrong == 0 < first.cases // 4 <= wrong.cases < first.cases // 3
    assert wrong.wrong
    assert not any(check.wrong for check in again)
    assert elsewhere.cases > 3 * again[0].cases
    assert whole.cases == first.cases


def test_a_live_search_never_times_a_wrong_routine(broken, tmp_path):
    folder, catalogue = broken
    log = LogWriter(tmp_path / "log.jsonl")
    log.write({"kind": "log", "version": 1})
    source = LiveSource(lambda: start(folder), log, lambda name, size: 0.0)
    options = Options(("bcast",), (64, 4096), TIMING, 0.5)
    tuned = tune(support.cluster(RANKS), catalogue, options, source, lambda: False)
    source.close()
    wrong = {check.candidate.algorithm for check in tuned.wrong}
    assert wrong == {"flat", "late_leaves", *PIPELINES}
    timed = {
        spec.split(":")[0]
        for record in read_log(tmp_path / "log.jsonl")[1]
        if record["kind"] == "measurement"
        for spec in record["seconds"]
    }
    timed = {spec.split("+")[0] for spec in timed}
    compositions = {a.name for a in catalogue.of("bcast") if a.parts}
    assert timed - compositions == {a.name for a in catalogue.of("bcast")} - wrong - compositions
    assert timed & compositions
