"""Real MPI jobs: a routine that crashes, one that hangs, and a run that is killed."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from stagegen.data import TEMPLATES
from tests.faults.tuning import Tuning, ended, processes, wait_until

pytestmark = pytest.mark.mpi

#: Its calls of this size fail; the check has no such call.
SIZE = 4099
FAULTS = {"crashing": "*(volatile int *)0 = 1;", "hanging": "for (;;) pause();"}
ROUTINES = ("flat", "binomial", *FAULTS)


def templates(folder: Path) -> Path:
    """The templates of stagegen, with a crashing and a hanging broadcast."""
    root = folder / "templates"
    shutil.copytree(TEMPLATES, root)
    text = (root / "bcast" / "flat.c.j2").read_text(encoding="utf-8")
    begin = "    (void)parameters;\n"
    assert begin in text
    for name, does in FAULTS.items():
        when = f"call->bytes == {SIZE} && cc->rank == cc->size - 1"
        fault = f"    if ({when}) {{\n        {does}\n    }}\n"
        changed = text.replace(begin, begin + fault)
        changed = changed.replace('#include "coll.h"', '#include <unistd.h>\n\n#include "coll.h"')
        (root / "bcast" / f"{name}.c.j2").write_text(changed, encoding="utf-8")
    return root


def tuning(folder: Path, *routines: str) -> Tuning:
    options = ("--launcher", "local", "--sizes", f"1,{SIZE}", "--budget", "0", "--patience", "24")
    choice = ("--collectives", "bcast", "--algorithms", ",".join(routines))
    return Tuning(folder, (*options, *choice), {"TEMPLATES": str(templates(folder))})


@pytest.mark.slow
def test_routines_that_crash_and_hang_are_left_out(tmp_path):
    one = tuning(tmp_path, *ROUTINES)
    result = one.run()
    assert result.returncode == 0, result.stderr
    crashed, hung = one.records("failure")
    assert (crashed["routine"], hung["routine"]) == ("crashing", "hanging")
    assert "the job has ended" in crashed["why"]
    assert any("Segmentation fault" in line for line in crashed["output"])
    assert "no answer within" in hung["why"]
    decision = json.loads((one.output / "decision.json").read_text())
    chosen = {rule["algorithm"] for table in decision["tables"] for rule in table["rules"]}
    assert not chosen & set(FAULTS)
    one.require_same_from_log()


def test_nothing_is_left_of_a_run_that_is_killed(tmp_path):
    one = tuning(tmp_path, "flat", "binomial")
    process = one.start()
    program = str(one.output / "build" / "session" / "session")
    wait_until(lambda: len(one.records("measurement")) > 0, process)
    assert processes(program)
    process.send_signal(signal.SIGKILL)
    ended(process)
    wait_until(lambda: not processes(program))
    result = one.run("--resume")
    assert result.returncode == 0, result.stderr
    assert not processes(program)
    one.require_same_from_log()
