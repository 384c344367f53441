"""Runs commands of stagegen that measure and answer in JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from stagegen.measure.launch.lab.process import CONGESTION_VARIABLE

#: Linux's default congestion control; the lab of the experiments has it unless they say otherwise.
CUBIC = "cubic"


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a command, with some variables more."""
    return {CONGESTION_VARIABLE: CUBIC, **os.environ, **variables}


def stagegen(
    command: str, *words: object, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command; what it says goes to standard error.

    Args:
        command: such as ``tune``.
        words: its options and their values.
        variables: of the environment, besides those that are there.

    Raises:
        subprocess.CalledProcessError: it failed; it has said why.
    """
    line = [sys.executable, "-m", "stagegen", command, *map(str, words)]
    return subprocess.run(
        line, check=True, stdout=subprocess.PIPE, env=environment(variables or {})
    )


def answer(command: str, *words: object, variables: Mapping[str, str] | None = None) -> Any:
    """Return the JSON that a command prints; arguments and errors as for :func:`stagegen`."""
    return json.loads(stagegen(command, *words, "--format", "json", variables=variables).stdout)
