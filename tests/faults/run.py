"""The command line of stagegen, with the launchers `model` and `model-of-nodes`.

Both start one process of `driver.py` in place of a job. Nothing is compiled for it. The second one
does not say that its ranks stay on this machine, so it may be used in a job of Slurm.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import stagegen.measure.live as live
from stagegen.cli import main
from stagegen.measure.launch.base import Job, RunningJob
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.launch.mpiexec import start_mpiexec
from stagegen.measure.launch.registry import register
from stagegen.topology import Topology

DRIVER = Path(__file__).with_name("driver.py")


class ModelLauncher(LocalLauncher):
    name = "model"

    def start(self, job: Job, topology: Topology) -> RunningJob:
        os.environ["RANKS"] = str(topology.rank_count)
        command = [sys.executable, "-I", "-S", str(DRIVER), *job.program]
        return start_mpiexec(command, job.streams, self.environment(topology, job.mpi))


MODELS = {"model": ModelLauncher, "model-of-nodes": partial(ModelLauncher, stays_here=False)}
for name, factory in MODELS.items():
    register(name, factory)
if not MODELS.keys().isdisjoint(sys.argv):
    live.run_make = lambda folder, toolchain: None

if __name__ == "__main__":
    main()
