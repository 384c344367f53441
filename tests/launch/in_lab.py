"""Runs in a lab's outer namespace: an sshd in every host, then one job through a launcher over ssh.

Started by `tests.launch.test_ssh` with a JSON object as its argument.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from docs.tools.bench_tuning.ssh_here import SHELL, prepare, serve
from stagegen.measure.launch import hydra, openmpi
from stagegen.measure.launch.base import Job, Streams
from stagegen.measure.launch.registry import make_launcher
from stagegen.topology import load_topology

PATIENCE = 40.0  # seconds
#: The seconds that ssh waits for a host that is down, in place of the launchers'.
TIMEOUT = "ConnectTimeout=3"


def main() -> int:
    """Return the job's exit status."""
    asked = json.loads(sys.argv[1])
    topology = load_topology(asked["topology"])
    prepare()
    for host in topology.hosts:
        if host.name not in asked["silent"]:
            serve(host.name)
    for host in asked["down"]:
        subprocess.run([SHELL, host, "ip link set dev eth0 down"], check=True)
    for module in (hydra, openmpi):
        module.SSH_OPTIONS = re.sub(r"ConnectTimeout=\d+", TIMEOUT, module.SSH_OPTIONS)
    launcher = make_launcher(asked["launcher"], Path(asked["mpiexec"]))
    if reason := launcher.why_unavailable(topology, asked["mpi"]):
        sys.exit(reason)
    job = Job(
        tuple(asked["program"]),
        environment=asked["variables"],
        preload=tuple(map(Path, asked["preload"])),
        mpi=asked["mpi"],
        streams=Streams(stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr),
    )
    os.environ.pop("LD_PRELOAD", None)
    with launcher.start(job, topology) as running:
        return running.wait(PATIENCE)


if __name__ == "__main__":
    sys.exit(main())
