"""Judges what the hosts said: one finding for each thing that a tuning depends on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stagegen.measure.doctor.facts import Facts
from stagegen.measure.doctor.visit import Visit
from stagegen.measure.launch.base import Environment
from stagegen.topology import Topology
from stagegen.topology.host_names import host_named

#: Seconds by which clocks may differ: logs of several hosts still tell what came first.
SKEW = 1.0

#: The latency of a link, in seconds, from which on it decides which algorithm wins.
LONG = 1e-3

#: The part of a host's link, and the bytes in a second, above which it is not idle.
SHARE, QUIET = 0.01, 10_000

OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report.

    Attributes:
        check: what was looked at.
        status: `ok`, `warn` or `fail`.
        what: what was found.
        advice: what to do about it; None if nothing.
        hosts: those that it is about, if not all.
    """

    check: str
    status: str
    what: str
    advice: str | None = None
    hosts: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the canonical JSON form."""
        return {**asdict(self), "hosts": list(self.hosts)}


@dataclass(frozen=True)
class Case:
    """What there is to judge.

    Attributes:
        topology: the cluster.
        environment: of jobs of the launcher.
        emulates: whether the launcher emulates the network.
        visit: what the hosts said.
    """

    topology: Topology
    environment: Environment
    emulates: bool
    visit: Visit

    @property
    def on_one_machine(self) -> bool:
        """Whether all hosts are meant to be this machine."""
        return self.emulates or not self.environment.representative


def judge(case: Case) -> Iterator[Finding]:
    """Yield a finding for each check, in the order in which they matter.

    Where no host answered, there is nothing to judge but that.
    """
    yield _hosts(case)
    if case.visit.facts:
        for check in _CHECKS:
            yield check(case)


def _hosts(case: Case) -> Finding:
    silent = case.visit.silent
    if not silent:
        return Finding("hosts", OK, f"all {len(case.visit.facts)} answer")
    first = next(iter(silent))
    what = f"no answer from {_list([*silent])} ({first}: {silent[first] or 'no reason given'})"
    advice = _IF_SILENT.get(case.environment.launcher, _IF_SILENT["hydra"])
    return Finding("hosts", FAIL, what, advice, tuple(silent))


#: What to do about hosts that do not answer, by launcher; of others, as for `hydra`.
_IF_SILENT = {
    "hydra": "log in to each from here as the launcher does, without a password",
    "slurm": "run `srun --nodelist=NODE hostname` for each, and see `sinfo -R`",
    "lab": "see what `stagegen lab check` says",
    "local": "see what `mpiexec -n 2 hostname` says here",
}


def _names(case: Case) -> Finding:
    odd = {
        host: facts.name
        for host, facts in case.visit.facts.items()
        if host not in (host_named(case.topology, one) for one in (facts.name, facts.slurm))
    }
    if not odd:
        return Finding("names", OK, "as in the topology file")
    if case.on_one_machine and not case.emulates:
        return Finding("names", WARN, "all ranks run on this machine, whose name is another")
    pairs = [f"{host} calls itself {name}" for host, name in odd.items()]
    advice = "write the hosts' own names in the topology file, or set LIBCOLL_HOST on them"
    return Finding("names", FAIL, _list(pairs, "; "), advice, tuple(odd))


def _machines(case: Case) -> Finding:
    machines = Counter(facts.machine for facts in case.visit.facts.values())
    if case.on_one_machine:
        how = "emulated" if case.emulates else "not the cluster: times say nothing about it"
        return Finding("machines", OK if case.emulates else WARN, f"one, this one; {how}")
    twice = [host for host, facts in case.visit.facts.items() if machines[facts.machine] > 1]
    if not twice:
        return Finding("machines", OK, "every host is one of its own")
    advice = "correct the addresses, or give one host several slots"
    return Finding("machines", FAIL, f"one and the same: {_list(twice)}", advice, tuple(twice))


def _folder(case: Case) -> Finding:
    without = _those(case, lambda facts: facts.token != case.visit.token)
    if not without:
        return Finding("folder", OK, "the output folder is the same on all hosts")
    advice = "choose an --output in a folder that all hosts mount under the same path"
    what = f"the output folder is not there, or is another one, on {_list(without)}"
    return Finding("folder", FAIL, what, advice, without)


def _library(case: Case) -> Finding:
    facts = case.visit.facts
    odd = _those(case, lambda one: one.loads != "yes")
    # Where the shared folder is missing, the program is, too: that says nothing of the library.
    without = tuple(host for host in odd if facts[host].token == case.visit.token)
    if not without and odd:
        return Finding("library", WARN, "not tried everywhere", "mend the folder, and ask again")
    if not without:
        return Finding("library", OK, "programs find the MPI library on all hosts")
    said = facts[without[0]].loads.removeprefix("no: ")
    advice = "install the MPI library there under the same path, or set LD_LIBRARY_PATH for all"
    return Finding("library", FAIL, f"on {_list(without)}: {said}", advice, without)


def _ranks(case: Case) -> Finding:
    if case.visit.clocks is not None:
        count = case.topology.rank_count
        return Finding("ranks", OK, f"all {count} find each other; {case.visit.clocks.mpi}")
    if not case.visit.failure:
        return Finding("ranks", WARN, "not tried", "mend what failed above, and ask again")
    advice = "see that hosts reach each other, not only from here: firewall, /etc/hosts, devices"
    return Finding("ranks", FAIL, f"the MPI job failed: {case.visit.failure}", advice)


def _clock(case: Case) -> Finding:
    clocks = case.visit.clocks
    if clocks is None:
        return Finding("clock", WARN, "not compared", "mend what failed above, and ask again")
    ranks = zip(case.topology.ranks, clocks.offsets, clocks.errors, strict=True)
    least = {host: abs(offset) - error for host, offset, error in ranks}
    off = tuple(host for host, seconds in least.items() if seconds > SKEW)
    worst = max(map(abs, clocks.offsets))
    if not off:
        return Finding("clock", OK, f"at most {worst:.3g} s from rank 0's")
    what = f"up to {worst:.3g} s from rank 0's: {_list(off)}"
    return Finding("clock", WARN, what, "let NTP (chrony, timesyncd) set the clocks", off)


def _governor(case: Case) -> Finding:
    slow = _those(case, lambda facts: facts.governor not in ("", "performance"))
    if not slow:
        told = any(facts.governor for facts in case.visit.facts.values())
        return Finding("governor", OK, "performance" if told else "the kernel sets no frequencies")
    what = f"{case.visit.facts[slow[0]].governor} on {_list(slow)}"
    advice = "cpupower frequency-set -g performance, for as long as the tuning lasts"
    return Finding("governor", WARN, what, advice, slow)


def _cores(case: Case) -> Finding:
    facts = case.visit.facts
    if case.emulates:
        return Finding("cores", OK, "shared by all hosts; the lab scales its rates to them")
    ranks = Counter(facts[host].machine for host in case.topology.ranks if host in facts)
    full = _those(case, lambda one: ranks[one.machine] > one.cpus)
    if not full:
        return Finding("cores", OK, "at least one for each rank")
    first = facts[full[0]]
    what = f"{ranks[first.machine]} ranks on {first.cpus} cores: {_list(full)}"
    return Finding("cores", WARN, what, "lower the hosts' slots: waiting ranks take CPUs", full)


def _latency(case: Case) -> Finding:
    how = case.environment.latency
    long = [link.ends for link in case.topology.links if link.latency >= LONG]
    if how != "none" or not long:
        return Finding("latency", OK, _LATENCIES.get(how, how))
    what = f"not emulated on {_list([' - '.join(ends) for ends in long])}"
    advice = "measure on the cluster, or in the lab with STAGEGEN_LAB_LATENCY=relay"
    return Finding("latency", WARN, what, advice)


_LATENCIES = {
    "real": "the links' own",
    "emulated": "emulated on every link (netem)",
    "relay": "emulated on long links (relay)",
    "none": "not emulated; no link is a long one",
}


def _traffic(case: Case) -> Finding:
    def limit(host: str) -> float:
        rate = case.topology.host_by_name[host].bandwidth * case.environment.scale
        return max(QUIET, SHARE * rate / 8)

    busy = tuple(host for host, one in case.visit.facts.items() if one.traffic > limit(host))
    if not busy:
        return Finding("traffic", OK, "the hosts' links are idle")
    worst = max(busy, key=lambda host: case.visit.facts[host].traffic)
    most = case.visit.facts[worst].traffic
    what = f"in an idle second up to {most:,} bytes ({worst}): {_list(busy)}"
    advice = "find who uses the network, or tune when it is quiet"
    return Finding("traffic", WARN, what, advice, busy)


_CHECKS: tuple[Callable[[Case], Finding], ...] = (
    _names,
    _machines,
    _folder,
    _library,
    _ranks,
    _clock,
    _governor,
    _cores,
    _latency,
    _traffic,
)


def _those(case: Case, odd: Callable[[Facts], bool]) -> tuple[str, ...]:
    return tuple(host for host, facts in case.visit.facts.items() if odd(facts))


def _list(words: Sequence[str], between: str = ", ") -> str:
    """Return the words as a list of at most five."""
    more = f"{between}and {len(words) - 5} more" if len(words) > 5 else ""
    return between.join(words[:5]) + more
