"""Starts an ``mpiexec`` as an ordinary process of this machine, on a lifeline."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from stagegen.errors import LaunchError
from stagegen.measure.launch.base import Environment, RunningJob, Streams
from stagegen.measure.launch.lifeline import READY, start_child

_RUNNER = (sys.executable, "-I", "-S", Path(__file__).with_name("_on_lifeline.py"))


def start_mpiexec(
    command: Sequence[str],
    streams: Streams,
    environment: Environment,
    own: Mapping[str, str] = MappingProxyType({}),
    without: Collection[str] = (),
) -> RunningJob:
    """Start a command line that itself starts the ranks.

    Args:
        command: the words.
        streams: its standard input, output and error.
        environment: the conditions of the job.
        own: variables of the command itself, besides those of this process.
        without: variables of this process that it does not get.

    Raises:
        LaunchError: it cannot be executed.
    """
    hidden = {"LD_PRELOAD", *without}
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    variables.update(own)
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
