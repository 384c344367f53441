"""Faraj 2006, §4.2.3, Figs. 4.17 to 4.19: arrivals where all processes compute the same."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.stagegen import stagegen
from stagegen.data import TOPOLOGIES
from stagegen.generate import Toolchain
from stagegen.measure.statistics import summarize
from stagegen.recording import Recording, read
from stagegen.recording.calls import align
from stagegen.recording.messages import read_message_times

TOPOLOGY = TOPOLOGIES / "quickstart.yaml"
PROGRAM = Path("docs/examples/programs/work.c")

#: Calls; the source has 1000. Milliseconds of computation; the source has 50 to 800, and each
#: process had a processor. Here eight ranks share two CPUs, and compute four times as long.
CALLS, SIZE = 30, 64 << 10
COMPUTATION = (5, 10, 20, 40, 80)

#: The first calls are left out: connections are made then.
FIRST = 5


def _measure(computation: int, folder: Path) -> Any:
    program, file = folder.parent / "work", folder / "work.recording"
    mpicc = Toolchain.find().mpicc
    subprocess.run([mpicc, "-O2", "-o", str(program), str(PROGRAM)], check=True)
    lab = [sys.executable, "-m", "stagegen", "lab", "run", "--topology", str(TOPOLOGY), "--"]
    work = [str(program.absolute()), str(CALLS), str(computation), str(SIZE)]
    messages = folder.parent / "messages.json"
    if not messages.exists():
        stagegen("arrivals", "--calibrate", messages, "--", *lab)
    stagegen("record", "--output", file, "--", *lab, *work)
    return {**facts(read(file)), "message_s": read_message_times(messages).of(SIZE)}


def facts(recording: Recording) -> dict[str, Any]:
    """Return the spread of arrivals and of computations in each call, in seconds.

    A computation lasts from a call's exit to the next arrival of the same rank.
    """
    aligned = align(recording)
    (calls,) = (one for one in aligned.calls if one.collective == "alltoall")
    computed = calls.arrivals[1:] - calls.exits[:-1]
    arrivals = calls.arrivals[1:]
    mean = arrivals.mean(axis=1, keepdims=True)
    return {
        "worst": np.ptp(arrivals, axis=1)[FIRST:].tolist(),
        "average": np.abs(arrivals - mean).mean(axis=1)[FIRST:].tolist(),
        "computed": computed.mean(axis=1)[FIRST:].tolist(),
        "uneven": np.ptp(computed, axis=1)[FIRST:].tolist(),
        "clock_error": aligned.clocks.error,
    }


def _report(found: Found) -> str:
    rows = []
    for point, result in found.items():
        message = result["message_s"]
        cells = []
        for name in ("worst", "average", "uneven"):
            summary = summarize([seconds / message for seconds in result[name]])
            cells.append(f"{summary.median:.2f} [{summary.low:.2f}, {summary.high:.2f}]")
        computed = summarize(result["computed"]).median
        uneven = summarize(result["uneven"]).median
        rows.append([point, milliseconds(computed), *cells, milliseconds(uneven)])
    titles = ["asked for", "computed ms", "ω / T", "δ̄ / T", "computation's ω / T",
              "computation's ω, ms"]  # fmt: skip
    return table(titles, rows)


EXPERIMENT = Experiment(
    "micro",
    "arrivals where all processes compute the same (Faraj 2006, Figs. 4.17 to 4.19)",
    {f"{milliseconds_} ms": partial(_measure, milliseconds_) for milliseconds_ in COMPUTATION},
    _report,
    Path("docs/arrival.md"),
)
