"""Whatever ends a tuning run: it goes on with `--resume`, to the table that its log gives."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from docs.tools.bench_tuning.full_disk import tuned_on_a_full_disk, why_no_small_disk
from docs.tools.bench_tuning.tunings import processes
from tests.faults.tuning import OPTIONS, Tuning
from tests.library.schemas import validate

#: No limit of time; and a budget, as `stagegen tune` has unless told otherwise, whose search goes
#: another way. Here all is measured before it is spent.
BUDGETS = ["0", "1m"]


@pytest.fixture(params=BUDGETS)
def tuning(tmp_path, request):
    return Tuning(tmp_path, options=(*OPTIONS[:-1], request.param))


def faults(tuning: Tuning, *several: dict) -> None:
    tuning.environment["FAULTS"] = json.dumps(several)


def require_done(result: subprocess.CompletedProcess[str], tuning: Tuning) -> None:
    assert result.returncode == 0, result.stderr
    for line in tuning.log.read_text().splitlines():
        validate("measurements", json.loads(line))
    tuning.require_same_from_log()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_in_order_and_it_goes_on(tuning, number):
    result = tuning.interrupt(number, after=5)
    assert result.returncode == 128 + number
    assert f"ended by {number.name}: what was measured is in {tuning.log}" in result.stderr
    assert "go on with --resume" in result.stderr
    assert not (tuning.output / ".tuning").exists()
    before = tuning.log.read_bytes()
    require_done(tuning.run("--resume"), tuning)
    assert tuning.log.read_bytes().startswith(before)


def test_a_killed_run_goes_on_again_and_again(tuning):
    """Each run makes a few measurements and is killed, in whatever it is doing."""
    tuning.interrupt(signal.SIGKILL, 3)
    for after in (1, 6):
        before = tuning.log.read_bytes()
        assert tuning.interrupt(signal.SIGKILL, after, "--resume").returncode == -signal.SIGKILL
        assert tuning.log.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    tuning.wait_until(lambda: not processes(str(tuning.output)))
    with tuning.log.open("ab") as log:
        log.write(b'{"kind": "measurement", "collective": "bc')
    require_done(tuning.run("--resume"), tuning)


def test_two_runs_do_not_write_one_folder(tuning):
    with tuning.running() as process:
        tuning.wait_until(lambda: len(tuning.records("check")) > 0, process)
        process.send_signal(signal.SIGSTOP)  # it must not end before the second one has begun
        second = tuning.run("--resume")
        process.send_signal(signal.SIGCONT)
        assert second.returncode == 1
        assert f"process {process.pid} on " in second.stderr
        assert "is tuning into" in second.stderr
        require_done(tuning.ended(process), tuning)


CALL = ["bcast", "4096", "binomial"]


@pytest.mark.parametrize(
    ("does", "why"),
    [("crash", "SIGSEGV"), ("exit", "has ended with status 3"), ("hang", "no answer within")],
)
def test_a_routine_that_fails_when_timed_is_recorded_and_left_out(tuning, does, why):
    tuning.options += ("--patience", "12")
    faults(tuning, {"words": ["measure", *CALL], "does": does})
    result = tuning.run()
    (failure,) = tuning.records("failure")
    assert why in failure["why"]
    assert failure["size"] == 4096
    assert failure["output"][-1].startswith(f"rank 1 is about to {does}")
    assert "\x1b" not in "".join(failure["output"])
    assert "failed when timed, never chosen: bcast binomial" in result.stderr
    decision = json.loads((tuning.output / "decision.json").read_text())
    assert '"algorithm": "binomial"' not in json.dumps(decision)
    require_done(result, tuning)


def test_a_run_that_is_killed_after_a_failure_goes_on(tuning):
    """One routine fails at each of two sizes; the run is killed between, and after."""
    faults(
        tuning,
        {"words": ["measure", "1", "flat"], "does": "crash"},
        {"words": ["measure", "4096", "binomial"], "does": "crash"},
    )
    for count, words in ((1, ()), (2, ("--resume",))):
        with tuning.running(*words) as process:
            tuning.wait_until(lambda count=count: len(tuning.records("failure")) >= count, process)
            process.kill()
            tuning.ended(process)
    require_done(tuning.run("--resume"), tuning)
    assert [one["routine"] for one in tuning.records("failure")] == ["flat", "binomial"]


@pytest.mark.parametrize("does", ["crash", "hang"])
def test_a_routine_that_fails_when_checked_is_recorded_and_left_out(tuning, does):
    tuning.options += ("--patience", "12")
    faults(tuning, {"words": ["check_again", "flat"], "does": does})
    result = tuning.run()
    wrong = [one for one in tuning.records("check") if one["wrong"]]
    assert [(one["routine"], one["wrong"]) for one in wrong] == [("flat", -1)]
    assert wrong[0]["output"][-1].startswith(f"rank 1 is about to {does}")
    assert "wrong result, never chosen: bcast flat" in result.stderr
    require_done(result, tuning)


def test_a_failure_that_does_not_come_again_costs_no_routine(tuning, tmp_path):
    faults(
        tuning,
        {"words": ["measure", *CALL], "does": "crash", "once": str(tmp_path / "a")},
        {"words": ["check_again", "flat"], "does": "crash", "once": str(tmp_path / "b")},
    )
    result = tuning.run()
    assert tuning.records("failure") == []
    assert not any(one["wrong"] for one in tuning.records("check"))
    assert (tmp_path / "a").exists()
    assert (tmp_path / "b").exists()
    require_done(result, tuning)


def test_a_job_that_is_slow_but_lives_is_not_given_up(tuning):
    """It takes longer than its first limit, unless the machine is slow, too; and it does always."""
    tuning.options += ("--patience", "18")
    faults(tuning, {"words": ["measure", *CALL], "does": "slow"})
    result = tuning.run()
    assert tuning.records("failure") == []
    require_done(result, tuning)


def test_a_host_that_dies_is_named_and_the_run_goes_on_when_it_is_back(tuning, tmp_path):
    dead = tmp_path / "dead"
    tuning.environment["DEAD_HOST"] = str(dead)
    with tuning.started(4) as process:
        dead.touch()
        result = tuning.ended(process)
    assert result.returncode == 1
    assert "ssh: connect to host n1" in result.stderr
    assert "the job's output is about n1" in result.stderr
    assert "go on with --resume" in result.stderr
    assert tuning.records("failure") == []
    before = tuning.log.read_bytes()
    result = tuning.run("--resume")
    assert result.returncode == 1
    assert "the session did not start" in result.stderr
    assert tuning.log.read_bytes() == before
    dead.unlink()
    require_done(tuning.run("--resume"), tuning)


def test_a_full_disk_ends_a_run_and_it_goes_on_when_there_is_room(tuning):
    if why := why_no_small_disk():
        pytest.skip(f"no mount namespaces: {why}")
    said = tuned_on_a_full_disk(tuning, megabytes=16)
    for run in ("full", "again"):
        status, text = said[run]
        assert status == 1
        assert "No space left on device" in text
        assert "go on with --resume" in text
    assert said["whole"]
    assert said["goes on"]
    status, text = said["resumed"]
    assert status == 0, text
    tuning.require_same_from_log()
