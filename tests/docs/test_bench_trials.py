"""What `make bench-tuning` tries for real: faults and launchers, their rows and their page."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from docs.tools.bench_tuning import __main__ as tool
from docs.tools.bench_tuning import faults, launchers, trials
from docs.tools.bench_tuning.faults import FAULTS
from docs.tools.bench_tuning.page import BEGIN, END, PAGE, page
from docs.tools.bench_tuning.plan import HERE, TRIALS
from docs.tools.bench_tuning.results import Result, read_results
from docs.tools.bench_tuning.runs import Clock, OutOfTime
from docs.tools.bench_tuning.tunings import (
    CLUSTER,
    TrialError,
    Tuning,
    processes,
    said,
    seconds_lost,
)
from stagegen.measure.launch.registry import launcher_names


def survived(**more):
    row = {"fault": "SIGKILL", "done": "SIGKILL to `tune`", "status": -9, "said": "", "kept": 7,
           "intact": True, "records": 20, "again": 0, "differs": [], "lost": 2.25,
           "unavailable": "", "wrong": "", "same": True}  # fmt: skip
    return {**row, **more}


def tried(**more):
    row = {"launcher": "slurm", "library": "MPICH 4.3.2", "tools": "Slurm 22.05.8", "hosts": 4,
           "ranks": 4, "table": True, "why": "", "unavailable": ""}  # fmt: skip
    return {**row, **more}


def trial(part: str, *rows: dict) -> Result:
    return Result(part, HERE, CLUSTER, "bcast", "1", 1, {"rows": list(rows)})


def section(text: str, title: str) -> str:
    return text.partition(f"## {title}")[2].partition("\n## ")[0]


def test_the_page_has_a_row_for_each_fault_and_says_whether_all_were_survived():
    rows = [
        survived(),
        survived(fault="a routine hangs", status=0, kept=None, said="never chosen"),
        survived(fault="a full disk", unavailable="no namespaces", same=False),
    ]
    shown = section(page(f"{BEGIN}{END}", [trial("faults", *rows)]), "Faults")
    assert "| signal 9 | – | with 7 of 20 records | yes | 2.2 |" in shown
    assert "| 0 | “never chosen” | – | yes |" in shown
    assert "cannot be tried here: no namespaces" in shown
    assert "met, by 2 of 2" in shown
    for bad in ({"differs": ["decision.json"]}, {"wrong": "it did not\nend | within"}):
        shown = section(
            page(f"{BEGIN}{END}", [trial("faults", survived(**bad, same=False))]), "Faults"
        )
        assert "**missed**, by 0 of 1" in shown
        assert "**no**: decision.json" in shown or "it did not end \\| within" in shown


@pytest.mark.parametrize(
    ("bad", "cell"),
    [
        ({"again": 1}, "**no**: it ended with 1"),
        ({"again": -9}, "**no**: it ended with signal 9"),
        ({"intact": False}, "**no**: its log lost records"),
        (
            {"again": 2, "intact": False, "differs": ["report.html"]},
            "**no**: it ended with 2, its log lost records, report.html",
        ),
    ],
)
def test_the_page_says_why_a_table_is_not_the_same(bad, cell):
    result = trial("faults", survived(**bad, same=False))
    assert f"| {cell} |" in section(page(f"{BEGIN}{END}", [result]), "Faults")


def test_the_page_has_a_row_for_each_launcher_also_for_one_that_is_not_here():
    rows = [
        tried(),
        tried(launcher="hydra", table=False, why="status 1: no route"),
        tried(launcher="lab", table=False, hosts=0, ranks=0, unavailable="no ip: install iproute2"),
    ]
    shown = section(page(f"{BEGIN}{END}", [trial("launchers", *rows)]), "Launchers")
    assert "| `slurm` | MPICH 4.3.2 | Slurm 22.05.8 | 4 | 4 | yes |" in shown
    assert "| **no**: status 1: no route |" in shown
    assert "| – | – | cannot be tried here: no ip: install iproute2 |" in shown
    assert "**missed**, by 1 of 2" in shown


def test_kept_trials_are_of_all_faults_and_all_launchers():
    kept = {one.part: one.values["rows"] for one in read_results() if one.part in TRIALS}
    assert [row["fault"] for row in kept["faults"]] == list(FAULTS)
    assert {row["launcher"] for row in kept["launchers"]} == set(launcher_names())


def test_rows_are_kept_until_they_are_asked_for_anew(monkeypatch, tmp_path):
    made = []

    def row(name, folder):
        assert not folder.exists()
        folder.mkdir(parents=True)
        made.append(name)
        if made.count(name) == 1 and name == "second one":
            raise KeyboardInterrupt
        return {"fault": name}

    def rows():
        return {name: partial(row, name) for name in ("first", "second one")}

    monkeypatch.setitem(trials._TRIALS, "faults", ("bcast", "1", rows))
    with pytest.raises(KeyboardInterrupt):
        trials.try_all("faults", Clock(), tmp_path)
    with pytest.raises(OutOfTime):
        trials.try_all("faults", Clock.of(-1.0), tmp_path)
    result = trials.try_all("faults", Clock(), tmp_path)
    assert made == ["first", "second one", "second one"]
    assert result.values["rows"] == [{"fault": "first"}, {"fault": "second one"}]
    assert trials.try_all("faults", Clock(), tmp_path) == result
    with pytest.raises(OutOfTime):
        trials.try_all("faults", Clock.of(-1.0), tmp_path, anew=True)
    assert trials.try_all("faults", Clock(), tmp_path) == result
    assert len(made) == 3
    trials.try_all("faults", Clock(), tmp_path, anew=True)
    assert made[3:] == ["first", "second one"]


def test_a_part_that_is_done_is_not_made_again_where_another_one_goes_on(monkeypatch, tmp_path):
    made = []

    def fault(folder):
        made.append("faults")
        return survived()

    def launcher(folder):
        made.append("launchers")
        if made.count("launchers") == 1:
            raise OutOfTime
        return tried()

    monkeypatch.setitem(trials._TRIALS, "faults", ("bcast", "1", lambda: {"a": fault}))
    monkeypatch.setitem(trials._TRIALS, "launchers", ("barrier", "0", lambda: {"b": launcher}))
    monkeypatch.chdir(tmp_path)
    PAGE.parent.mkdir()
    PAGE.write_text(f"{BEGIN}{END}")
    words = ["tool", "--parts", "faults,launchers", "--output", str(tmp_path / "kept")]
    monkeypatch.setattr(sys, "argv", words)
    assert [tool.main(), tool.main()] == [tool.AGAIN, 0]
    assert made == ["faults", "launchers", "launchers"]
    monkeypatch.setattr(sys, "argv", [*words, "--anew"])
    assert tool.main() == 0
    assert made[3:] == ["faults", "launchers"]


def test_lost_is_the_time_between_the_answers_around_a_fault():
    line = "     {:.2f} DEBUG   bcast of 1 bytes, 3 x 8 calls of flat in 0.02 s\n".format
    warning = "     {:.2f} WARNING something\n".format
    resumed = line(1) + line(3.5) + "      4.00 DEBUG   ended\n" + line(2) + line(9)
    assert seconds_lost(resumed) == pytest.approx(0.5 + 2)
    assert seconds_lost(resumed + "      0.00 INFO    x\n" + line(3)) == pytest.approx(0.5 + 9 + 3)
    alone = line(1) + warning(3) + line(4) + warning(6) + line(7.5) + line(9) + warning(9.5)
    assert seconds_lost(alone) == pytest.approx(6.5), "the last warning is about all"
    assert seconds_lost(line(1) + line(9)) == seconds_lost("") == 0


def test_what_a_run_said_is_the_first_and_the_last_line_about_the_fault():
    text = "session started\nbcast: the job has ended\n PID 7\nin /x/log; go on with --resume\n"
    assert said(text, {"/x": "DIR"}) == "bcast: the job has ended … in DIR/log; go on with --resume"
    assert said("session started\n", {}) == ""


def test_a_launcher_that_cannot_be_tried_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr("docs.tools.bench_tuning.launchers.shutil.which", lambda *_, **__: None)
    pairs = list(launchers.pairs())
    assert {pair.launcher for pair, _ in pairs} == set(launcher_names())
    for pair, toolchain in pairs:
        row = launchers.form(launchers.try_launcher(pair, toolchain, tmp_path / "x"))
        assert "no mpicc of" in row["unavailable"]
        assert not row["table"]


def test_a_fault_that_cannot_be_tried_says_why(monkeypatch, tmp_path):
    done, befall, _ = FAULTS["a full disk"]
    monkeypatch.setitem(faults.FAULTS, "a full disk", (done, befall, lambda: "no namespaces"))
    row = faults.form(faults.try_fault("a full disk", tmp_path / "x"))
    assert (row["unavailable"], row["same"]) == ("no namespaces", False)


class Over(Tuning):
    """A tuning that has ended with status 0 before anything can befall it."""

    @contextmanager
    def started(self, after, *words):
        self.program = ("-c", "pass")
        with self.running(*words) as process:
            process.wait()
            yield process

    def records(self, what=None):
        return [{"kind": "measurement"}] * faults.BEFORE


@pytest.mark.parametrize(
    "name", ["Ctrl-C", "SIGTERM", "SIGKILL", "a host restarts", "a host dies", "a full disk"]
)
def test_a_fault_that_strikes_nothing_is_not_survived(monkeypatch, tmp_path, name):
    done = {"full": [0, ""], "resumed": [0, ""], "kept": 5, "whole": True, "goes on": True}
    monkeypatch.setattr(faults, "tuned_on_a_full_disk", lambda *_: done)
    _, befall, _ = FAULTS[name]
    with pytest.raises(TrialError, match="before the fault"):
        befall(Over(tmp_path))


def test_a_job_that_ends_before_its_limit_is_not_survived(monkeypatch, tmp_path):
    class Done(faults.Submitted):
        def command(self, *words):
            return "JobState=COMPLETED ExitCode=0:0"

    monkeypatch.setattr(faults, "slurm_cluster", lambda _: nullcontext({}))
    monkeypatch.setattr(faults, "Submitted", Done)
    monkeypatch.setattr(Over, "run", lambda *_: subprocess.CompletedProcess((), 0, "", ""))
    _, befall, _ = FAULTS["the job's time limit"]
    with pytest.raises(TrialError, match="before the fault"):
        befall(Over(tmp_path))


def test_a_job_that_slurm_signals_has_not_ended(tmp_path):
    said = ["7", "JobState=SIGNALING ExitCode=0:0", "JobState=TIMEOUT ExitCode=0:15"]

    class Signalled(faults.Submitted):
        def command(self, *words):
            return said.pop(0)

    job = Signalled(Tuning(tmp_path), tmp_path / "job.sh", "first")
    assert job.status() == 128 + signal.SIGTERM


#: Starts a process in another group, as salloc does, and waits for it. The argument marks both.
PARENT = """
import subprocess, sys, os
subprocess.run([sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]],
               preexec_fn=os.setpgrp)
"""


def test_nothing_is_left_of_a_run_when_a_trial_fails(tmp_path):
    tuning = Tuning(tmp_path, program=("-c", PARENT, str(tmp_path)), patience=20)

    def fail():
        with tuning.running() as process:
            tuning.wait_until(lambda: len(processes(str(tmp_path))) == 2, process)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    tuning.wait_until(lambda: not processes(str(tmp_path)))
    hasty = replace(tuning, patience=1)
    with pytest.raises(TrialError, match="did not end within 1 s"):
        hasty.run()
    tuning.wait_until(lambda: not processes(str(tmp_path)))


def test_nothing_is_left_of_a_launcher_that_takes_too_long(monkeypatch, tmp_path):
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    monkeypatch.setattr(launchers, "in_allocation", lambda _: command)
    monkeypatch.setattr(launchers, "slurm_cluster", lambda _: nullcontext({}))
    tuning = Tuning(tmp_path, patience=2)
    with pytest.raises(subprocess.TimeoutExpired):
        launchers._in_slurm(tuning, None)
    tuning.patience = 20
    tuning.wait_until(lambda: not processes(str(tmp_path)))


def test_two_installations_of_one_version_are_two_rows(monkeypatch):
    installations = list(launchers.compilers())[:2]
    found = [(one, "MPICH 4.0.2", SimpleNamespace(flavour="mpich")) for one in installations]
    monkeypatch.setattr(launchers, "_installed", lambda: iter(found))
    able = [pair for pair, toolchain in launchers.pairs() if toolchain]
    assert {launchers.form(pair)["kind"] for pair in able} == set(installations)
    assert len({pair.name for pair in able}) == len(able) == 2 * len({p.launcher for p in able})
    rows = [tried(launcher="local", kind=one) for one in installations]
    shown = section(page(f"{BEGIN}{END}", [trial("launchers", *rows)]), "Launchers")
    assert all(f"| MPICH 4.3.2 ({one}) |" in shown for one in installations)


def test_a_compiler_that_no_variable_names_is_left_out(monkeypatch):
    monkeypatch.delenv(launchers.OPENMPI5, raising=False)
    assert "openmpi5" not in launchers.compilers()
    monkeypatch.setenv(launchers.OPENMPI5, "/opt/mpicc")
    assert launchers.compilers()["openmpi5"] == "/opt/mpicc"


@pytest.mark.mpi
def test_a_real_tuning_survives_a_signal(tmp_path):
    row = faults.form(faults.try_fault("SIGTERM", tmp_path / "x"))
    assert row["status"] == 128 + signal.SIGTERM, row
    assert "go on with --resume" in row["said"]
    assert row["same"]
    assert faults.BEFORE < row["kept"] < row["records"]


@pytest.mark.mpi
def test_a_real_launcher_ends_with_a_table(tmp_path):
    pair, toolchain = next(one for one in launchers.pairs() if one[0].launcher == "local")
    row = launchers.form(launchers.try_launcher(pair, toolchain, tmp_path / "x"))
    assert (row["table"], row["ranks"], row["why"]) == (True, 4, ""), row


def test_what_is_tried_for_real_is_not_of_the_model():
    command = [sys.executable, "-m", "docs.tools.bench_tuning", "--model", "--parts", "faults"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "without --model" in done.stderr
