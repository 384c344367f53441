"""Starts an ``mpiexec`` as an ordinary process of this machine, on a lifeline."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from stagegen.errors import LaunchError
from stagegen.measure.launch.base import Environment, RunningJob, Streams
from stagegen.measure.launch.lifeline import READY, start_child

_RUNNER = (sys.executable, "-I", "-S", Path(__file__).with_name("_on_lifeline.py"))


def start_mpiexec(command: Sequence[str], streams: Streams, environment: Environment) -> RunningJob:
    """Start a command line that itself starts the ranks.

    Raises:
        LaunchError: it cannot be executed.
    """
    variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    child, refusal = start_child(
        lambda channel, lifeline: [*_RUNNER, str(channel), str(lifeline)],
        (streams.stdin, streams.stdout, streams.stderr),
        variables,
        json.dumps(list(command)),
    )
    if refusal != READY:
        child.stop()
        raise LaunchError(f"cannot start {command[0]}: {refusal}")
    return RunningJob(environment, child)
