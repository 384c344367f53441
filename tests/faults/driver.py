"""A measuring session that is no MPI job: it answers from a cost model, and fails on request.

``FAULTS`` holds a JSON list of faults. A fault has ``words``, all of which are in the commands that
it befalls, and ``does``: ``crash``, ``hang``, ``slow`` or ``exit``. With ``once``, a path, it
happens only while there is no such file. Standard library only, as it has to start quickly.
"""

import json
import os
import random
import signal
import sys
import time
import zlib
from pathlib import Path

FAULTS = json.loads(os.environ.get("FAULTS", "[]"))
DEAD = Path(os.environ.get("DEAD_HOST", "/nonexistent"))
RANKS = int(os.environ["RANKS"])


def cost(spec: str, size: int) -> float:
    """Some routines are slow to start and cheap per byte; no two runs see the same."""
    slow = zlib.crc32(spec.encode()) % 97 / 97
    return (2e-4 * (1 + slow) + size * 1e-8 * (2 - slow)) * random.uniform(1.0, 1.05)


def befall(line: str) -> None:
    for fault in FAULTS:
        if not all(word in line.split() for word in fault["words"]):
            continue
        if "once" in fault:
            if Path(fault["once"]).exists():
                continue
            Path(fault["once"]).touch()
        print(f"rank 1 is about to {fault['does']}\x1b[2J", file=sys.stderr, flush=True)
        {
            "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
            "exit": lambda: os._exit(3),
            "hang": signal.pause,
            "slow": lambda: time.sleep(2.5),
        }[fault["does"]]()


def require_hosts() -> None:
    if DEAD.exists():
        print("ssh: connect to host n1 port 22: No route to host", file=sys.stderr, flush=True)
        os._exit(255)


def obey(words: list[str]) -> None:
    if words[0] == "hello":
        print(json.dumps({"ranks": RANKS, "mpi": "a model"}))
    elif words[0] == "environment":
        for rank in range(RANKS):
            facts = {"host": f"n{rank}", "kernel": "a kernel", "governor": "", "cpus": [[0, 0]]}
            settings = {"network": {}, "variables": {}, "controls": {}}
            print(json.dumps({"rank": rank, **facts, **settings}))
    elif words[0] == "check_again":
        for spec in words[2:]:
            print(json.dumps({"routine": spec, "cases": 9, "wrong": 0, "first_wrong": ""}))
    elif words[0] == "measure":
        time.sleep(0.01)
        size, repetitions = int(words[2]), int(words[8])
        for spec in words[9:]:
            seconds = [cost(spec, size) for _ in range(repetitions)]
            print(json.dumps({"routine": spec, "seconds": seconds}))


require_hosts()
for command in sys.stdin:
    if command.startswith("quit"):
        break
    befall(command)
    require_hosts()
    obey(command.split())
    print(json.dumps({"done": True}), flush=True)
