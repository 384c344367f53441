"""Which environments may be put together, and how a log says that others were."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from stagegen.errors import InputError
from stagegen.measure.comparable import (
    FACTS,
    Admission,
    differences,
    mixed_facts,
    require_comparable,
    require_unmixed,
)
from stagegen.measure.launch.base import Environment
from stagegen.measure.machines import Machine
from tests.measure.fakes import ENVIRONMENT

MACHINE = Machine(
    ("n0", "n1"), 2, 4, ("0-1", "2-3"), "6.1", "performance",
    (("ipv4.tcp_slow_start_after_idle", "1"),), (("FI_PROVIDER", "tcp"),), (("coll", ""),),
)  # fmt: skip
KNOWN = replace(ENVIRONMENT, mpi_library="an MPI 1.0", machines=(MACHINE,))

#: A change of each fact.
CHANGES = {
    "launcher": {"launcher": "lab"},
    "scale": {"scale": 0.5},
    "latency": {"latency": "none"},
    "mpi": {"mpi": "openmpi"},
    "mpi_version": {"mpi_version": "9"},
    "mpi_library": {"mpi_library": "an MPI 1.1"},
    "congestion_control": {"congestion_control": "reno"},
    "hosts": {"hosts": ("n0", "n2")},
    "kernel": {"kernel": "6.2"},
    "governor": {"governor": "powersave"},
    "cores": {"cores": 2},
    "binding": {"binding": ("0", "1")},
    "network": {"network": (("ipv4.tcp_slow_start_after_idle", "0"),)},
    "variables": {"variables": ()},
    "controls": {"controls": (("coll", "^tuned"),)},
}


def changed(environment: Environment, fact: str) -> Environment:
    """Return an environment that differs in one fact."""
    change = CHANGES[fact]
    if set(change) <= {field.name for field in fields(Environment)} - {"kernel"}:
        return replace(environment, **change)
    machines = tuple(replace(one, **change) for one in environment.machines)
    return replace(environment, machines=machines)


def test_each_fact_has_a_reason_and_a_change_here():
    assert [fact.name for fact in FACTS] == list(CHANGES)
    assert all(fact.why for fact in FACTS)


@pytest.mark.parametrize("fact", CHANGES)
def test_a_change_of_any_fact_is_refused_unless_allowed(fact):
    other = changed(KNOWN, fact)
    names = {one.fact for one in differences(KNOWN, other)}
    assert fact in names
    assert names <= {fact, *(name for name in CHANGES if fact == "hosts")}
    with pytest.raises(InputError, match=f"measured with .*{fact}") as caught:
        require_comparable(other, [KNOWN])
    assert caught.value.exit_status == 2
    require_comparable(other, [KNOWN], names)


@pytest.mark.parametrize(
    "same",
    [
        {"kernel": "7", "cpus": 64},
        {"notes": ("a note",)},
        {"program_hash": "0" * 64},
        {"representative": False},
        {"congestion_control": None},
        {"mpi_library": None},
        {"machines": ()},
    ],
)
def test_unknown_facts_and_facts_without_effect_match(same):
    """The kernel and the CPUs of the machine that starts the job are of no effect on its ranks."""
    require_comparable(KNOWN, [])
    require_comparable(KNOWN, [KNOWN, replace(KNOWN, **same)])
    require_comparable(replace(KNOWN, **same), [KNOWN])


def test_the_first_host_that_changed_is_named_with_what_changed():
    one, two = replace(MACHINE, hosts=("n0",)), replace(MACHINE, hosts=("n1",))
    slow = replace(two, network=(("ipv4.tcp_slow_start_after_idle", "0"),), kernel="6.2")
    found = differences(replace(KNOWN, machines=(one, two)), replace(KNOWN, machines=(one, slow)))
    assert [difference.text for difference in found] == [
        "kernel 6.1 on n1, this is 6.2",
        "network ipv4.tcp_slow_start_after_idle=1 on n1, this is ipv4.tcp_slow_start_after_idle=0",
    ]


def test_machines_may_be_listed_in_another_way():
    apart = tuple(replace(MACHINE, hosts=(host,)) for host in ("n1", "n0"))
    assert differences(KNOWN, replace(KNOWN, machines=apart)) == ()


def test_all_pairs_of_sessions_count():
    unknown = replace(KNOWN, congestion_control=None)
    other = replace(KNOWN, congestion_control="reno")
    assert mixed_facts([KNOWN, unknown, other]) == ("congestion_control",)
    with pytest.raises(InputError):
        require_unmixed([KNOWN, unknown, other])
    require_unmixed([unknown, other, unknown])


def test_admission_refuses_or_says_what_it_allows_once():
    other = changed(changed(KNOWN, "scale"), "kernel")
    strict = Admission.to([], [KNOWN], mix=False)
    assert strict.admit() == strict.admit(KNOWN) == ()
    with pytest.raises(InputError):
        strict.admit(other)
    assert strict.before == [KNOWN, KNOWN]
    free = Admission.to([], [KNOWN], mix=True)
    assert free.admit() == ()
    (record,) = free.admit(other)
    assert record == {"kind": "mixed", "facts": ["scale", "kernel"]}
    assert free.admit(other) == free.admit(KNOWN) == ()
    again = Admission.to([record], [KNOWN, other], mix=False)
    assert again.admit() == again.admit(other) == ()
    with pytest.raises(InputError, match="governor"):
        again.admit(changed(other, "governor"))
