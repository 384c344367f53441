"""Starts a command in a freshly built lab network, or explains why that is not allowed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from stagegen.errors import InputError, LaunchError
from stagegen.measure.launch.base import Streams
from stagegen.measure.launch.helpers import relay_program
from stagegen.measure.launch.lab.latency import NETEM, RELAY, VARIABLE, Delay, read_delay
from stagegen.measure.launch.lab.network import NetworkPlan, minimal_plan
from stagegen.measure.launch.lifeline import READY, ChildProcess, start_child

CONGESTION_VARIABLE = "STAGEGEN_LAB_CONGESTION"

_INIT = Path(__file__).with_name("init_process.py")
_TOOLS = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "tc": "iproute2"}

# Settings that forbid what the lab needs: file below /proc/sys, value that forbids, advice.
_SETTINGS = (
    ("kernel/unprivileged_userns_clone", "0", "set kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "set user.max_user_namespaces to 1000 or more"),
    ("user/max_net_namespaces", "0", "set user.max_net_namespaces to 1000 or more"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "set kernel.apparmor_restrict_unprivileged_userns=0 "
        "(or give unshare an AppArmor profile that allows userns)",
    ),
)

_CONTAINER = (
    "namespaces are refused here; inside a container, allow it user namespaces and an unmasked "
    "/proc and /sys (Docker: --security-opt seccomp=unconfined "
    "--security-opt systempaths=unconfined), or run as root"
)

# The kernel's answers if a part of it is missing or forbidden, and what they mean.
_ANSWERS = (
    ("tbf", "the kernel has no token bucket filter: load or build module sch_tbf"),
    ("veth", "the kernel has no virtual Ethernet pairs: load or build module veth"),
    ("bridge", "the kernel has no Ethernet bridge: load or build module bridge"),
    ("netem", "the kernel has no delays: load or build module sch_netem"),
)


def _search_path() -> str:
    """Return PATH with the folders in which administrators' tools are kept."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def _unshare() -> list[str]:
    own = [] if os.geteuid() == 0 else ["-Ur"]
    program = shutil.which("unshare", path=_search_path()) or "unshare"
    return [program, *own, "-nm", "--fork", "--pid", "--mount-proc", "--kill-child"]


def start_in_network(
    plan: NetworkPlan,
    command: Sequence[str],
    variables: Mapping[str, str],
    streams: Streams,
) -> ChildProcess:
    """Build a network and start a command in its outer namespace.

    Args:
        plan: the network.
        command: what to run.
        variables: added to this process's environment for it.
        streams: its standard input, output and error.

    Raises:
        LaunchError: the lab cannot be built here; says why and which setting would help.
    """
    child, answer = _start(plan, command, variables, streams)
    if answer != READY:
        child.stop()
        raise LaunchError(f"the lab cannot run here: {_explain(answer)}")
    return child


def _start(
    plan: NetworkPlan, command: Sequence[str], variables: Mapping[str, str], streams: Streams
) -> tuple[ChildProcess, str]:
    environment = {**os.environ, **variables, "PATH": _search_path()}
    environment.pop("LD_PRELOAD", None)
    relay = str(relay_program()) if plan.relays else ""
    message = json.dumps({"network": asdict(plan), "relay": relay, "command": list(command)})
    return start_child(
        lambda channel, lifeline: [
            *_unshare(),
            *(sys.executable, "-I", "-S", str(_INIT), str(channel), str(lifeline)),
        ],
        (streams.stdin, streams.stdout, streams.stderr),
        environment,
        message,
    )


@lru_cache(maxsize=1)
def why_no_lab() -> str | None:
    """Try the smallest lab; return why it cannot run here, or None. Asked once per process."""
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=_search_path()) is None]
    if missing:
        packages = ", ".join(sorted({_TOOLS[tool] for tool in missing}))
        return f"{', '.join(missing)} not found: install {packages}"
    return try_plan(minimal_plan())


@lru_cache(maxsize=1)
def netem_possible() -> bool:
    """Return whether the kernel can delay packets (netem)."""
    return why_no_lab() is None and try_plan(minimal_plan(NETEM)) is None


def lab_delay() -> Delay:
    """Return what emulates latency here: netem where the kernel has it, or else the relay.

    STAGEGEN_LAB_LATENCY overrides it.

    Raises:
        InputError: the variable has a wrong value, or asks for what the kernel lacks.
    """
    asked = os.environ.get(VARIABLE)
    if not asked:
        return NETEM if netem_possible() else RELAY
    delay = read_delay(asked)
    if delay == NETEM and not netem_possible():
        raise InputError(f"{VARIABLE}={asked}: the kernel has no netem; relay works without it")
    return delay


def machine_congestion_control() -> str:
    """Return the TCP congestion control that this machine uses, such as `cubic`."""
    return _setting("net/ipv4/tcp_congestion_control") or "unknown"


def congestion_control() -> str | None:
    """Return the TCP congestion control that STAGEGEN_LAB_CONGESTION asks for.

    None leaves the hosts the machine's own, which a new namespace inherits.

    Raises:
        InputError: the kernel lacks the one that the variable names.
    """
    here = (_setting("net/ipv4/tcp_available_congestion_control") or "").split()
    wanted = os.environ.get(CONGESTION_VARIABLE)
    if wanted and wanted not in here:
        raise InputError(f"{CONGESTION_VARIABLE}={wanted}: this kernel only has {', '.join(here)}")
    return wanted or None


def try_plan(plan: NetworkPlan) -> str | None:
    """Build a network and take it down; return what was wrong, or None."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, errors="replace") as complaints:
        try:
            child, answer = _start(plan, ["true"], {}, Streams(-3, -3, write_end))
        except LaunchError as error:
            return str(error)
        finally:
            os.close(write_end)
        child.stop()
        return None if answer == READY else _explain(answer or complaints.read().strip())


def _explain(answer: str) -> str:
    """Turn a failure of the set-up into a sentence that names the setting to change."""
    for sign, advice in _ANSWERS:
        if sign in answer and "Operation not permitted" not in answer:
            return f"{advice} ({answer})"
    settings = [text for path, bad, text in _SETTINGS if _setting(path) == bad]
    return f"{'; '.join(settings or [_CONTAINER])} ({answer or 'unshare was refused'})"


def _setting(path: str) -> str | None:
    try:
        return (Path("/proc/sys") / path).read_text().strip()
    except OSError:
        return None
