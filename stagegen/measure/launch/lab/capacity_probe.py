"""Measures how much traffic this machine can push through an emulated network.

Runs in the outer namespace of a lab whose links have no limit, with the hosts' names and their
addresses as arguments (``name=address``). The hosts form a chain; the first sends blocks of 4 KB
as fast as it can, and every other host passes on each whole block: the pipelined broadcast, the
traffic that costs the most CPU time per byte. Prints the bits per second that reach the end, in
the best of a few windows. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
import time

BLOCK = 4096
WARM_UP = 0.2  # seconds
WINDOW = 0.25
WINDOWS = 3
_PORT = 7000
_CLONE_NEWNET = 0x40000000


def _enter(host: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(f"/run/netns/{host}", os.O_RDONLY)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"enter {host}")
    os.close(descriptor)


def _connect(address: str) -> socket.socket:
    while True:
        try:
            return socket.create_connection((address, _PORT))
        except OSError:
            time.sleep(0.005)


def _pass_on(host: str, after: str | None, is_first: bool) -> None:
    """Be one host of the chain: send, or receive and pass on, until killed."""
    _enter(host)
    source = None
    if not is_first:
        with socket.create_server(("", _PORT)) as server:
            source, _ = server.accept()
    sink = _connect(after) if after else None
    block = bytes(BLOCK)
    while True:
        if source is not None:
            block = source.recv(BLOCK, socket.MSG_WAITALL)
        if sink is not None:
            sink.sendall(block)


def _arrivals(host: str) -> float:
    """Be the last host; return the blocks per second of the best window."""
    _enter(host)
    with socket.create_server(("", _PORT)) as server:
        source, _ = server.accept()
    rates = []
    for seconds in (WARM_UP, *[WINDOW] * WINDOWS):
        begin, blocks = time.monotonic(), 0
        while time.monotonic() < begin + seconds:
            blocks += len(source.recv(BLOCK, socket.MSG_WAITALL)) == BLOCK
        rates.append(blocks / (time.monotonic() - begin))
    return max(rates[1:])


def main() -> None:
    """Start the chain, print the rate at its end, and end the chain."""
    names = [word.split("=")[0] for word in sys.argv[1:]]
    addresses = [word.split("=")[1] for word in sys.argv[1:]]
    children = []
    for index, name in enumerate(names[:-1]):
        child = os.fork()
        if child == 0:
            with contextlib.suppress(OSError):  # the chain ends while it still sends
                _pass_on(name, addresses[index + 1], index == 0)
            os._exit(0)
        children.append(child)
    signal.alarm(20)
    print(_arrivals(names[-1]) * BLOCK * 8)
    for child in children:
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
