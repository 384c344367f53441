"""Runs one command, and ends it with its process group when the starter is gone.

Called by its path with the numbers of a socket and of a lifeline (see
`stagegen.measure.launch.lifeline`); it reads the command as JSON from the socket, and answers
there with ``ready`` or what went wrong, as a JSON line. Standard library only.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

GRACE = 2.0  # seconds between asking processes to end and killing them


def _end_group(lifeline: int, group: int) -> None:
    """Wait for the lifeline to close; then end all processes of the group."""
    os.read(lifeline, 1)
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, number)
            for _ in range(20 if number == signal.SIGTERM else 0):
                time.sleep(GRACE / 20)
                os.killpg(group, 0)
        except OSError:  # no process is left
            break
    os._exit(128 + signal.SIGKILL)


def main() -> int:
    """Run the command; return its exit status, 128 + n after signal n."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    lifeline = int(sys.argv[2])
    os.set_inheritable(lifeline, False)
    channel.set_inheritable(False)
    with channel, channel.makefile() as stream:
        try:
            child = subprocess.Popen(json.load(stream), preexec_fn=os.setpgrp)  # noqa: PLW1509
        except OSError as error:
            channel.sendall(json.dumps(str(error)).encode() + b"\n")
            return 127
        channel.sendall(b'"ready"\n')
    watcher = threading.Thread(target=_end_group, args=(lifeline, child.pid), daemon=True)
    watcher.start()
    code = child.wait()
    if select.select([lifeline], [], [], 0)[0]:
        watcher.join()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
