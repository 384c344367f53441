"""Runs in an allocation of Slurm: one job through the launcher slurm, as `test_slurm` asks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from stagegen.measure.launch import command_lines
from stagegen.measure.launch.base import Job, Streams
from stagegen.measure.launch.registry import choose_launcher
from stagegen.topology import load_topology


def main() -> int:
    """Return the job's exit status."""
    asked = json.loads(sys.argv[1])
    topology = load_topology(asked["topology"])
    command_lines.SLURM_WAIT = 3  # so that a test takes no longer
    launcher, why = choose_launcher(topology)
    print(why, file=sys.stderr)
    job = Job(
        tuple(asked["program"]),
        environment=asked["variables"],
        preload=tuple(map(Path, asked["preload"])),
        mpi=asked["mpi"],
        streams=Streams(stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr),
    )
    with launcher.start(job, topology) as running:
        return running.wait(60)


if __name__ == "__main__":
    sys.exit(main())
