"""Runs in a lab's outer namespace: an sshd in every host, then one job through a launcher over ssh.

Started by `tests.launch.test_ssh` with a JSON object as its argument. Everything that it makes lies
in the lab's own mounts: /etc/ssh and /run are empty folders of the lab's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from stagegen.measure.launch import hydra, openmpi
from stagegen.measure.launch.base import Job, Streams
from stagegen.measure.launch.registry import make_launcher
from stagegen.topology import load_topology

SSH = Path("/etc/ssh")
SHELL = "/run/lab-shell"
CLIENT = """\
Host *
  IdentityFile /etc/ssh/key
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
  LogLevel ERROR
  AddressFamily inet
"""
SERVER = """\
HostKey /etc/ssh/key
AuthorizedKeysFile /etc/ssh/key.pub
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
"""
PATIENCE = 20.0  # seconds
#: The seconds that ssh waits for a host that is down, in place of the launchers'.
TIMEOUT = "ConnectTimeout=3"


def prepare() -> None:
    """Put a key and settings where the lab alone sees them.

    There, no name server answers, and a login runs none of the user's own commands.
    """
    for file in (Path("/etc/resolv.conf"), Path.home() / ".bashrc"):
        if file.exists():
            subprocess.run(["mount", "--bind", "/dev/null", file], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", SSH], check=True)
    Path("/run/sshd").mkdir(mode=0o755)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", SSH / "key"], check=True)
    (SSH / "ssh_config").write_text(CLIENT)
    (SSH / "sshd_config").write_text(SERVER)


def serve(host: str) -> None:
    """Start the sshd of a host, and wait until a command gets through."""
    subprocess.run([SHELL, host, "/usr/sbin/sshd"], check=True)
    end = time.monotonic() + PATIENCE
    while subprocess.run(["ssh", "-n", host, "true"], capture_output=True, check=False).returncode:
        if time.monotonic() > end:
            sys.exit(f"the sshd of {host} does not answer")
        time.sleep(0.1)


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
        return running.wait(PATIENCE + 20)


if __name__ == "__main__":
    sys.exit(main())
