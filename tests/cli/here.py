"""Runs commands in the process of the tests: they need no start of Python, which takes a second."""

from __future__ import annotations

import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from unittest.mock import patch

from stagegen.cli import main


def stagegen(*words: object) -> subprocess.CompletedProcess[str]:
    """Run `stagegen WORDS…`; return its status and what it said. Other errors are the test's."""
    line = ["stagegen", *map(str, words)]
    out, err = StringIO(), StringIO()
    status: int | str | None = 0
    with patch.object(sys, "argv", line), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = end.code
    assert not isinstance(status, str), status
    return subprocess.CompletedProcess(line, status or 0, out.getvalue(), err.getvalue())
