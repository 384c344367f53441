"""A launcher that runs all ranks on this machine, with the least priority."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagegen.measure.launch.base import Job, RunningJob
from stagegen.measure.launch.local import LocalLauncher
from stagegen.topology import Topology


@dataclass(frozen=True)
class NiceLauncher(LocalLauncher):
    """Starts each rank by ``nice``; all else is as with the launcher ``local``."""

    name: str = "nice"

    def start(self, job: Job, topology: Topology) -> RunningJob:
        """Start a job with as many ranks as it would have on the cluster."""
        return super().start(replace(job, program=("nice", "-n", "19", *job.program)), topology)
