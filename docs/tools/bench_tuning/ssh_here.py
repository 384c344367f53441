"""Runs in a lab's outer namespace: an sshd in every host of a topology, then a command.

Everything that it makes lies in the lab's own mounts: /etc/ssh and /run are empty folders of the
lab's. The arguments are the topology's file, and the command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from stagegen.measure.launch.lab.process import why_no_lab
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

#: The hosts share one machine: without these, ranks would talk through its memory.
NETWORK_ONLY = {
    "mpich": {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0"},
    "openmpi": {
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    },
}


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


def why_no_sshd() -> str | None:
    """Return why no sshd can run in hosts of a lab here; None if they can."""
    if os.geteuid() != 0:
        return "only root may start an sshd that lets somebody in"
    if shutil.which("sshd", path="/usr/sbin:/sbin") is None or shutil.which("ssh") is None:
        return "no sshd: install openssh-server"
    return why_no_lab()


def main() -> int:
    """Return the command's exit status."""
    prepare()
    for host in load_topology(sys.argv[1]).hosts:
        serve(host.name)
    os.environ.pop("LD_PRELOAD", None)
    return subprocess.run(sys.argv[2:], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
