"""Which environments may be put into one table: those that differ in nothing that times depend on.

A fact that a record does not have, as in old logs, matches any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeAlias

from stagegen.errors import InputError
from stagegen.measure.entries import entry
from stagegen.measure.launch.base import Environment
from stagegen.measure.machines import Machine

#: The kind of a record with which the user allows that facts differ between a log's sessions.
MIXED = "mixed"

#: A fact of an environment: of the whole, by host, or None if it is unknown.
Value: TypeAlias = object | Mapping[str, object] | None


@dataclass(frozen=True)
class Fact:
    """A fact by which environments are told apart.

    Attributes:
        name: as messages, logs and decision tables name it.
        why: what changes with it.
        of: finds it.
    """

    name: str
    why: str
    of: Callable[[Environment], Value]


def _own(name: str, why: str) -> Fact:
    """Return a fact that is an attribute of the environment."""
    return Fact(name, why, lambda environment: getattr(environment, name))


def _of_hosts(name: str, why: str, of: Callable[[Machine], object]) -> Fact:
    """Return a fact that each host has."""

    def by_host(environment: Environment) -> Value:
        return {
            host: of(machine) for machine in environment.machines for host in machine.hosts
        } or None

    return Fact(name, why, by_host)


#: The facts that make environments different.
#:
#: These do not: the kernel and the CPUs of the machine that starts the job, as it may run no rank;
#: the hash of the session program, as each routine has a hash of its own (``validity.py``); the
#: hash of the topology, as a log of another topology is refused altogether; and the notes.
FACTS: tuple[Fact, ...] = (
    _own("launcher", "decides how ranks are started, placed and bound, and on what they run"),
    _own("scale", "multiplies the rates of all links"),
    _own("latency", "is part of every message's time"),
    _own("mpi", "is the other side of every comparison, and moves the messages"),
    _own("mpi_version", "as for mpi"),
    _own("mpi_library", "as for mpi, also where a library is not of the mpiexec that starts it"),
    _own("congestion_control", "decides how fast TCP sends after a pause and after a loss"),
    Fact(
        "hosts",
        "are the cluster: no two hosts are alike in every cable and every neighbour",
        lambda e: sorted(host for machine in e.machines for host in machine.hosts) or None,
    ),
    _of_hosts("kernel", "has TCP and the scheduler in it", lambda m: m.kernel),
    _of_hosts("governor", "decides how fast a CPU is after it has waited", lambda m: m.governor),
    _of_hosts("cores", "are what ranks share or have to themselves", lambda m: m.cores),
    _of_hosts("binding", "decides which caches and memory a rank uses", lambda m: m.binding),
    _of_hosts("network", "has the sizes of buffers and the behaviour of TCP", lambda m: m.network),
    _of_hosts("variables", "choose transports and algorithms in MPI", lambda m: m.variables),
    _of_hosts("controls", "choose how native collectives run", lambda m: m.controls),
)


@dataclass(frozen=True)
class Difference:
    """A fact that two environments do not share.

    Attributes:
        fact: its name.
        text: what it was and what it is, in words.
    """

    fact: str
    text: str


def differences(then: Environment, now: Environment) -> tuple[Difference, ...]:
    """Return the facts in which two environments differ, as far as both are known."""
    found = ((fact, fact.of(then), fact.of(now)) for fact in FACTS)
    return tuple(
        Difference(fact.name, f"{fact.name} {_in_words(was, is_now)}")
        for fact, was, is_now in found
        if None not in (was, is_now) and was != is_now
    )


def _in_words(was: Value, is_now: Value) -> str:
    """Return what a fact was and is; of facts by host, at the first host that has changed."""
    if not isinstance(was, Mapping) or not isinstance(is_now, Mapping):
        return f"{_short(was, is_now)}, this is {_short(is_now, was)}"
    host = next((h for h in was if was[h] != is_now.get(h)), None)
    if host is None or host not in is_now:
        return "of other hosts"
    return f"{_short(was[host], is_now[host])} on {host}, this is {_short(is_now[host], was[host])}"


def _short(value: Any, other: Any) -> str:
    """Return a value in words; of a list, the entries that the other does not have."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return str(value)
    own = [one for one in value if one not in other]
    return ", ".join("=".join(one) if isinstance(one, tuple) else str(one) for one in own) or "none"


def mixed_facts(environments: Iterable[Environment]) -> tuple[str, ...]:
    """Return the names of the facts in which any two environments differ, in their order here."""
    distinct = tuple(dict.fromkeys(environments))
    differ = {one.fact for pair in combinations(distinct, 2) for one in differences(*pair)}
    return tuple(fact.name for fact in FACTS if fact.name in differ)


def allowed_facts(records: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the facts that may differ between the sessions of a log, as its user has asked."""
    return frozenset(
        name for record in records if record["kind"] == MIXED for name in record["facts"]
    )


def mixed_record(facts: Iterable[str]) -> dict[str, Any]:
    """Return the record that allows that these facts differ."""
    return {"kind": MIXED, "facts": list(facts)}


@dataclass
class Admission:
    """Decides which sessions may add to a log.

    Attributes:
        before: the environments of the sessions that it has.
        allowed: the facts in which they may differ.
        mix: whether the user allows any.
    """

    before: list[Environment] = field(default_factory=list)
    allowed: set[str] = field(default_factory=set)
    mix: bool = False

    @classmethod
    def to(
        cls, records: Iterable[Mapping[str, Any]], environments: Iterable[Environment], *, mix: bool
    ) -> Admission:
        """Return the admission to a log with these records, of sessions in these environments."""
        return cls(list(environments), set(allowed_facts(records)), mix)

    def admit(self, *more: Environment) -> tuple[dict[str, Any], ...]:
        """Admit more sessions; return the records that allow what was not allowed before.

        Without an argument, it decides about those that the log has.

        Raises:
            InputError: the environments differ in a fact in which they may not.
        """
        environments = [*self.before, *more]
        new = [fact for fact in mixed_facts(environments) if fact not in self.allowed]
        if not self.mix:
            require_unmixed(environments, self.allowed)
        self.before = environments
        self.allowed.update(new)
        return (mixed_record(new),) if new else ()


def read_mixed(record: Mapping[str, Any]) -> None:
    """Check a record that allows facts to differ.

    Raises:
        KeyError, TypeError: it is not a valid one.
    """
    if not all(isinstance(name, str) for name in entry(record, "facts", list)):
        raise TypeError("`facts` must be names")


def require_comparable(
    now: Environment, before: Sequence[Environment], allowed: Iterable[str] = ()
) -> None:
    """Refuse to put measurements of different environments together.

    Args:
        now: of the session that begins.
        before: of the sessions that there were.
        allowed: names of facts that may differ.

    Raises:
        InputError: the environments differ; says in what.
    """
    for then in before:
        _require_none([one for one in differences(then, now) if one.fact not in allowed])


def require_unmixed(environments: Sequence[Environment], allowed: Iterable[str] = ()) -> None:
    """Refuse a log whose sessions ran in different environments.

    Raises:
        InputError: the environments differ; says in what.
    """
    distinct = tuple(dict.fromkeys(environments))
    for place, now in enumerate(distinct):
        require_comparable(now, distinct[:place], allowed)


def _require_none(found: Sequence[Difference]) -> None:
    if found:
        told = "; ".join(one.text for one in found)
        raise InputError(
            f"environments are not mixed: the log was measured with {told}; go on as it was begun, "
            "measure again, or ask for --mix-environments"
        )
