"""First process of a lab: builds the network of a plan, runs one command in it, and ends.

`stagegen.measure.launch.lab` starts this file by its path, under ``unshare``, as process 1 of
namespaces of its own, with the numbers of two inherited descriptors as arguments: a socket, on
which it reads the plan (JSON) and answers ``ready`` or what went wrong (a JSON line), and the
*lifeline*. The starter alone holds the other end of the lifeline; when the starter dies, however
it dies, the lifeline reads end-of-file, process 1 exits, and the kernel removes every process,
namespace and interface of the lab with it. Nothing is ever made outside of these namespaces, so
nothing can be left behind.

Standard library only, and no imports from the package: the file must start quickly, whatever the
working directory and ``PYTHONPATH`` are.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

LAB_FAILED = 125  # exit status of a lab that could not be built, or that broke
RUN = Path("/run")
NETNS = RUN / "netns"
UTS = RUN / "uts"
SHELL = RUN / "lab-shell"  # the paths that follow are known to the launcher
RANK = RUN / "lab-rank"
STATUS = RUN / "status"

_CLONE_NEWUTS, _CLONE_NEWNET = 0x04000000, 0x40000000
_MS_BIND = 4096
_SIOCETHTOOL = 0x8946
# ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO: one packet of the network is one packet of the stack.
_OFFLOADS = (0x1F, 0x24, 0x2C)
_LIBC = ctypes.CDLL(None, use_errno=True)

# Called as ssh is, `lab-shell [options] HOST COMMAND…`; runs the command in the host's namespaces.
_SHELL_TEXT = """#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        -[bceiFlmopRS]) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
host="$1"
shift
[ -e "/run/netns/$host" ] || { echo "lab: no host named $host" >&2; exit 255; }
exec nsenter --uts="/run/uts/$host" ip netns exec "$host" /bin/sh -c "$*"
"""

# Wraps every rank: sets the libraries that only the program preloads, records how it ended.
_RANK_TEXT = """#!/bin/sh
[ -z "$LAB_PRELOAD" ] || export LD_PRELOAD="$LAB_PRELOAD"
"$@"
status=$?
unset LD_PRELOAD
[ $status -eq 0 ] || echo $status >>/run/status
exit $status
"""


# While this file is open, a number in it limits the microseconds in which a CPU must wake up.
LATENCY_LIMIT = Path("/dev/cpu_dma_latency")
IDLE_DRIVER = Path("/sys/devices/system/cpu/cpuidle/current_driver")

# Keeps a CPU busy while nothing else wants it; any other process preempts SCHED_IDLE at once.
_AWAKE_TEXT = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while True:
    pass
"""


class SetupError(Exception):
    """A step of the set-up failed; says which and what the kernel answered."""


class RelayError(Exception):
    """A relay ended, so a link carries nothing any more; says which."""


def _check(result: int, step: str) -> None:
    """Raise the error of a failed libc call, naming the step."""
    if result != 0:
        raise SetupError(f"{step}: {os.strerror(ctypes.get_errno())}")


def _mount(
    source: str, target: Path, filesystem: str = "", flags: int = 0, options: str = ""
) -> None:
    words = (source.encode(), str(target).encode(), filesystem.encode() or None)
    _check(
        _LIBC.mount(*words, flags, options.encode() or None),
        f"mount {filesystem or source} {target}",
    )


def _enter(path: Path, flag: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_LIBC.setns(descriptor, flag), f"enter {path}")
    finally:
        os.close(descriptor)


@contextmanager
def _inside(namespace: str | None) -> Iterator[None]:
    """Enter a network namespace of the lab for a while; None is the lab's outer one."""
    if namespace is None:
        yield
        return
    _enter(NETNS / namespace, _CLONE_NEWNET)
    try:
        yield
    finally:
        _enter(RUN / "outer-net", _CLONE_NEWNET)


def _pin(path: Path, entry: str) -> None:
    """Keep a namespace of this process, an entry of ``/proc/self/ns``, alive under a name."""
    path.touch()
    _mount(f"/proc/self/ns/{entry}", path, flags=_MS_BIND)


def _batch(tool: str, lines: list[str]) -> None:
    """Run commands through ``ip -batch`` or ``tc -batch`` in the present namespace."""
    if not lines:
        return
    done = subprocess.run(
        [tool, "-batch", "-"],
        input="\n".join(lines) + "\n",
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise SetupError(f"{tool} -batch: {done.stderr.strip()}\n  in: " + "\n      ".join(lines))


def _offloads_off(device: str) -> None:
    """Turn TSO, GSO and GRO of a device of the present namespace off."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in _OFFLOADS:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP", device.encode(), ctypes.addressof(value))
            fcntl.ioctl(control, _SIOCETHTOOL, request)


def _private_places() -> None:
    """Cover with empty folders the places where MPI libraries and ``ip netns`` leave files."""
    _mount("tmpfs", RUN, "tmpfs", options="mode=755")
    for folder in (NETNS, UTS, RUN / "tmp"):
        folder.mkdir()
    if Path("/dev/shm").is_dir():
        _mount("tmpfs", Path("/dev/shm"), "tmpfs", options="mode=1777")
    _pin(RUN / "outer-net", "net")


def _make_namespaces(plan: dict[str, Any]) -> None:
    """Make a network namespace per switch and host, and a host name per host."""
    for namespace in plan["namespaces"]:
        if namespace["name"] is not None:
            _check(_LIBC.unshare(_CLONE_NEWNET), "new network namespace")
            _pin(NETNS / namespace["name"], "net")
        if namespace["hostname"] is not None:
            _check(_LIBC.unshare(_CLONE_NEWUTS), "new UTS namespace")
            socket.sethostname(namespace["hostname"])
            _pin(UTS / namespace["hostname"], "uts")
    _check(_LIBC.unshare(_CLONE_NEWUTS), "new UTS namespace")
    socket.sethostname(plan["hostname"])
    _enter(RUN / "outer-net", _CLONE_NEWNET)


def _configure(namespace: dict[str, Any], neighbours: list[str]) -> None:
    """Bring the devices of one namespace up, with their addresses and rates."""
    with _inside(namespace["name"]):
        for name, value in namespace["sysctls"]:
            path = Path("/proc/sys") / name
            if path.exists():
                path.write_text(value)
        _batch("ip", namespace["ip"])
        if device := namespace["device"]:
            _offloads_off(device)
            _batch("ip", [f"{line} {device}" for line in neighbours])
        _batch("tc", namespace["tc"])


def _name_hosts(hosts_file: str) -> None:
    """Let the lab's host names resolve to the lab's addresses, inside the lab only."""
    names = RUN / "hosts"
    names.write_text(hosts_file)
    if Path("/etc/hosts").exists():
        _mount(str(names), Path("/etc/hosts"), flags=_MS_BIND)
    for script, text in ((SHELL, _SHELL_TEXT), (RANK, _RANK_TEXT)):
        script.write_text(text)
        script.chmod(0o755)


@dataclass(frozen=True)
class _Relay:
    """A running relay, and the two ends of its link in words."""

    process: subprocess.Popen[bytes]
    link: str


def _start_relays(program: str, relays: list[dict[str, Any]]) -> dict[int, _Relay]:
    """Start the relay of each long link; return them by their process numbers."""
    running = {}
    for relay in relays:
        with _inside(relay["namespace"]):
            started = subprocess.Popen(
                [program, *relay["words"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
            )
        assert started.stdout is not None
        with started.stdout as answer:
            if answer.readline() != b"ready\n":
                raise SetupError(f"the relay of the link {relay['link']} did not start")
        running[started.pid] = _Relay(started, relay["link"])
    return running


def build(plan: dict[str, Any], relay: str) -> dict[int, _Relay]:
    """Build the network of a plan (`stagegen.measure.launch.lab.network.NetworkPlan`).

    Args:
        plan: the plan.
        relay: the path of the relay's program.

    Returns:
        The running relays, by their process numbers.

    Raises:
        SetupError: naming the step that failed.
        OSError: of a file operation that the kernel refused.
    """
    _private_places()
    _make_namespaces(plan)
    _batch("ip", plan["veth_pairs"])
    for namespace in plan["namespaces"]:
        _configure(namespace, plan["neighbours"])
    _name_hosts(plan["hosts_file"])
    return _start_relays(relay, plan["relays"])


def _die_with(lifeline: int) -> None:
    """Exit, and so end the whole lab, as soon as the starter is gone."""

    def watch() -> None:
        os.read(lifeline, 1)
        os._exit(128 + signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def is_virtual(cpu_information: str) -> bool:
    """Tell from the text of ``/proc/cpuinfo`` whether the machine is a virtual one (x86)."""
    flags = (line for line in cpu_information.splitlines() if line.startswith("flags"))
    return any("hypervisor" in line.split() for line in flags)


def _poll_when_idle() -> bool:
    """Let idle CPUs poll while this process lives; return whether the kernel agrees.

    Only root may set the limit, and the kernel needs a driver for idle CPUs to keep it.
    """
    try:
        if IDLE_DRIVER.read_text(encoding="utf-8").strip() == "none":
            return False
        limit = os.open(LATENCY_LIMIT, os.O_WRONLY | os.O_CLOEXEC)  # closed by the end of the lab
        os.write(limit, struct.pack("i", 0))
    except OSError:
        return False
    return True


def _occupy_when_idle() -> None:
    """Start on each CPU a process that runs only when nothing else does."""
    for cpu in sorted(os.sched_getaffinity(0)):
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _AWAKE_TEXT, str(cpu)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _keep_awake() -> None:
    """Keep the CPUs of a virtual machine awake while the lab exists.

    The hypervisor takes an idle virtual CPU away and returns it late: by then the timer that paces
    a link has missed its time, and the link its rate.
    """
    if is_virtual(Path("/proc/cpuinfo").read_text(encoding="utf-8")) and not _poll_when_idle():
        _occupy_when_idle()


def _run(command: list[str], relays: dict[int, _Relay]) -> int:
    """Run a command and reap every orphan until it ends; return its raw wait status.

    Raises:
        RelayError: one of the relays has ended.
    """
    child = subprocess.Popen(command)
    while True:
        process, status = os.waitpid(-1, 0)
        if process in relays:
            code = os.waitstatus_to_exitcode(status)
            how = f"signal {-code}" if code < 0 else f"exit status {code}"
            link = relays[process].link
            raise RelayError(f"the relay of the link {link} ended ({how}), so the job ends, too")
        if process == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode


def exit_status(code: int, failures: list[int]) -> int:
    """Return the program's exit status, from its starter's status and its ranks' reports.

    An ``mpiexec`` says little about a rank that was killed by a signal. The first rank that
    failed says more, unless it was itself killed in the clean-up after another one.

    Args:
        code: the starter's exit status, -n where signal n ended it.
        failures: exit statuses other than 0 of ranks, 128 + n after signal n, in the order
            in which the ranks ended.
    """
    if code == 0:
        return 0
    killed = (128 + signal.SIGTERM, 128 + signal.SIGKILL)
    causes = [status for status in failures if status not in killed]
    if causes:
        return causes[0]
    if failures and not 0 < code < 128:
        return failures[0]
    return code if code > 0 else 128 - code


def _failures() -> list[int]:
    try:
        return [int(line) for line in STATUS.read_text().split()]
    except FileNotFoundError:
        return []


def _broken(why: str) -> int:
    """Say why the lab broke; return the exit status for it."""
    print(f"lab: {why}", file=sys.stderr, flush=True)
    return LAB_FAILED


def main() -> NoReturn:
    """Read the plan, build it, run its command, exit with the program's status."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    lifeline = int(sys.argv[2])
    os.set_inheritable(lifeline, False)
    channel.set_inheritable(False)
    _die_with(lifeline)
    with channel, channel.makefile() as stream:
        job = json.load(stream)
        try:
            relays = build(job["network"], job["relay"])
            _keep_awake()
        except (SetupError, OSError) as error:
            channel.sendall(json.dumps(str(error)).encode() + b"\n")
            sys.exit(LAB_FAILED)
        channel.sendall(b'"ready"\n')
    try:
        sys.exit(exit_status(_run(job["command"], relays), _failures()))
    except RelayError as error:
        sys.exit(_broken(str(error)))


if __name__ == "__main__":
    main()
