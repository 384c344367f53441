"""A Slurm cluster on this machine: slurmctld and several slurmd, for as long as a trial lasts.

All daemons live in namespaces of processes, mounts and host names that end with their first
process, so whatever they started is gone with them. Each slurmd has its node's name as host name,
and a temporary folder of its own.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stagegen.errors import LaunchError

NODES = ("n0", "n1", "n2", "n3")
CPUS = 4  # as many as trials need: Slurm need not know what the machine has
PATIENCE = 30.0  # seconds for the daemons to find each other
_DAEMONS = ("slurmctld", "slurmd")
_BESIDE = str(Path(sys.executable).parent)  # where `stagegen` is
_PATH = os.pathsep.join([_BESIDE, os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])

_CONF = """\
ClusterName=test
SlurmctldHost=controller(127.0.0.1)
SlurmctldPort={controller}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
TmpFS={folder}/tmp
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
"""

_DAEMON_SCRIPT = """\
cd {folder}
hostname controller
echo 127.0.0.1 localhost controller {names} > hosts
mount --bind hosts /etc/hosts
slurmctld -D -c &
for node in {names}; do
    unshare --uts --mount sh -c \
        "mount -t tmpfs tmpfs tmp && hostname $node && exec slurmd -D -N $node" &
done
cat > /dev/null  # until the trial's end of this pipe closes, however the trial ends
"""


def why_no_slurm() -> str | None:
    """Return what is missing for such a cluster; None if nothing is."""
    missing = [tool for tool in (*_DAEMONS, "srun") if shutil.which(tool, path=_PATH) is None]
    if missing:
        return f"no {', '.join(missing)}: install slurm-wlm"
    if os.geteuid() != 0:
        return "only root may start slurmctld and slurmd with host names of their own"
    return None


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Start the daemons; yields the environment in which Slurm's commands find them.

    Raises:
        LaunchError: they cannot run here, or do not find each other.
    """
    if reason := why_no_slurm():
        raise LaunchError(reason)
    for name in ("state", "tmp", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    ports = _free_ports(len(NODES) + 1)
    nodes = "\n".join(
        f"NodeName={node} NodeHostname={node} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS}"
        for node, port in zip(NODES, ports[1:], strict=True)
    )
    conf = folder / "slurm.conf"
    conf.write_text(_CONF.format(folder=folder, controller=ports[0], nodes=nodes))
    environment = {name: value for name, value in os.environ.items() if "SLURM" not in name}
    environment |= {"SLURM_CONF": str(conf), "PATH": _PATH}
    script = _DAEMON_SCRIPT.format(folder=folder, names=" ".join(NODES))
    command = ["unshare", "-m", "--uts", "--fork", "--pid", "--mount-proc", "--kill-child"]
    with (folder / "daemons.log").open("wb") as log:
        daemons = subprocess.Popen(
            [*command, "sh", "-c", script],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_until_idle(environment, folder)
        yield environment
    finally:
        daemons.kill()
        daemons.wait()


def _wait_until_idle(environment: dict[str, str], folder: Path) -> None:
    end = time.monotonic() + PATIENCE
    command = ["sinfo", "--noheader", "--states=idle", "--format=%D"]
    while True:
        try:
            asked = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=10, check=False
            )
            if asked.stdout.strip() == str(len(NODES)):
                return
        except subprocess.TimeoutExpired:
            pass
        if time.monotonic() > end:
            why = (folder / "slurmctld.log").read_text()[-500:]
            raise LaunchError(f"slurmctld and slurmd do not work here: {why}")
        time.sleep(0.2)


def in_allocation(words: list[str]) -> list[str]:
    """Return the words that run a command in an allocation of all nodes."""
    options = [f"--nodes={len(NODES)}", "--ntasks-per-node=2", "--immediate=20", "--quiet"]
    return ["salloc", *options, *words]
