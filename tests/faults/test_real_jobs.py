"""Real MPI jobs: a routine that crashes, one that hangs, and a run that is killed."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from docs.tools.bench_tuning.faulty import DOES, SIZE, add_faulty
from docs.tools.bench_tuning.tunings import processes
from tests.faults.tuning import Tuning

pytestmark = pytest.mark.mpi

ROUTINES = ("flat", "binomial", *DOES)


def tuning(folder: Path, *routines: str) -> Tuning:
    options = ("--launcher", "local", "--sizes", f"1,{SIZE}", "--budget", "0", "--patience", "24")
    choice = ("--collectives", "bcast", "--algorithms", ",".join(routines))
    add_faulty(folder, *DOES)
    return Tuning(folder, (*options, *choice))


@pytest.mark.slow
def test_routines_that_crash_and_hang_are_left_out(tmp_path):
    one = tuning(tmp_path, *ROUTINES)
    result = one.run()
    assert result.returncode == 0, result.stderr
    crashed, hung = sorted(one.records("failure"), key=lambda record: record["routine"])
    assert (crashed["routine"], hung["routine"]) == ("crashing", "hanging")
    assert "the job has ended" in crashed["why"]
    assert any("Segmentation fault" in line for line in crashed["output"])
    assert "no answer within" in hung["why"]
    decision = json.loads((one.output / "decision.json").read_text())
    chosen = {rule["algorithm"] for table in decision["tables"] for rule in table["rules"]}
    assert not chosen & set(DOES)
    one.require_same_from_log()


def test_nothing_is_left_of_a_run_that_is_killed(tmp_path):
    one = tuning(tmp_path, "flat", "binomial")
    with one.started(1) as process:
        assert processes(one.session)
        process.send_signal(signal.SIGKILL)
        one.ended(process)
    one.wait_until(lambda: not processes(one.session))
    result = one.run("--resume")
    assert result.returncode == 0, result.stderr
    assert not processes(one.session)
    one.require_same_from_log()
