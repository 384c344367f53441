"""A child process that ends when its starter does, however the starter ends.

The child holds the reading end of a pipe, its *lifeline*, and ends itself with everything that it
started when the pipe closes. The kernel closes the writing end when the starter is gone, even by
``kill -9``. (``PR_SET_PDEATHSIG`` would not do: it is forgotten when a process enters a user
namespace, and fires when the starting *thread* ends.)
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from stagegen.errors import LaunchError

READY = "ready"  # the answer of a child in which all is well
PATIENCE = 5.0  # seconds that a child gets to end itself


@dataclass
class ChildProcess:
    """A running child and the writing end of its lifeline."""

    popen: subprocess.Popen[bytes]
    lifeline: int

    def poll(self) -> int | None:
        """Return the exit status, 128 + n after signal n; None while it runs."""
        code = self.popen.poll()
        return code if code is None or code >= 0 else 128 - code

    def wait(self, timeout: float | None) -> int:
        """Wait for the end; returns as `poll` does, raises `TimeoutError` after `timeout` s."""
        try:
            code = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the job still runs after {timeout} s") from None
        self._release()
        return code if code >= 0 else 128 - code

    def stop(self) -> None:
        """Close the lifeline and wait; kill a child that does not end."""
        self._release()
        try:
            self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _release(self) -> None:
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1


def start_child(
    command: Callable[[int, int], Sequence[str | Path]],
    streams: tuple[int | IO[Any] | None, ...],
    environment: Mapping[str, str],
    message: str,
) -> tuple[ChildProcess, str]:
    """Start a child on a lifeline, hand it a message, and wait until it is ready.

    Args:
        command: makes the command line from the numbers of the two descriptors that the child
            inherits: a socket, on which it reads the message and answers, and its lifeline.
        streams: standard input, output and error as `subprocess.Popen` takes them.
        environment: the child's whole environment.
        message: what the child reads first.

    Returns:
        The child and its answer: `READY`, what went wrong, or nothing if it died.

    Raises:
        LaunchError: the command cannot be executed.
    """
    ours, theirs = socket.socketpair()
    read_end, write_end = os.pipe()
    stdin, stdout, stderr = streams
    with ours:
        try:
            with theirs:
                popen = subprocess.Popen(
                    [str(word) for word in command(theirs.fileno(), read_end)],
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env=dict(environment),
                    pass_fds=(theirs.fileno(), read_end),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(write_end)
            advice = "check that this program is installed, and that processes and memory are left"
            raise LaunchError(f"cannot start a job: {error}; {advice}") from error
        finally:
            os.close(read_end)
        child = ChildProcess(popen, write_end)
        return child, _converse(ours, message)


def _converse(channel: socket.socket, message: str) -> str:
    """Send the message, then return the line that the child answers; empty if it died."""
    with contextlib.suppress(OSError):
        channel.sendall(message.encode())
        channel.shutdown(socket.SHUT_WR)
        with channel.makefile("rb") as stream:
            if line := stream.readline():
                return str(json.loads(line))
    return ""
