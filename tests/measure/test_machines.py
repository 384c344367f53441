"""The hosts of a job, from what their ranks say."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import MeasurementError
from stagegen.measure.live import as_seen
from stagegen.measure.machines import Machine, as_ranges, machines_of
from stagegen.measure.session import Session
from tests.library.schemas import validate
from tests.measure.fakes import ENVIRONMENT, fake_job


def answer(rank: int, host: str = "n0", **changes: object) -> dict[str, object]:
    """Return what a rank says that may use both threads of one core."""
    said = {
        "rank": rank,
        "host": host,
        "kernel": "6.1",
        "cpus": [[0, 0], [2, 0]],
        "governor": "performance",
        "network": {"ipv4.tcp_rmem": "4096 131072 6291456"},
        "variables": {"FI_PROVIDER": "tcp"},
        "controls": {"MPIR_CVAR_DEVICE_COLLECTIVES": "2"},
    }
    return {**said, **changes}


def test_hosts_that_are_alike_are_one_machine_in_the_order_of_their_ranks():
    found = machines_of(answer(rank, f"n{rank}") for rank in (2, 0, 1))
    assert found == (
        Machine(
            ("n0", "n1", "n2"), 1, 1, ("0,2",), "6.1", "performance",
            (("ipv4.tcp_rmem", "4096 131072 6291456"),),
            (("FI_PROVIDER", "tcp"),),
            (("MPIR_CVAR_DEVICE_COLLECTIVES", "2"),),
        ),
    )  # fmt: skip
    validate(
        "measurements",
        {
            "kind": "session",
            "mpi": "an MPI",
            "environment": as_seen(ENVIRONMENT, found, "an MPI", {}).to_json(),
        },
    )


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": "6.2"},
        {"governor": "powersave"},
        {"cpus": [[0, 0], [1, 1]]},
        {"network": {}},
        {"variables": {"FI_PROVIDER": "verbs"}},
        {"controls": {}},
    ],
)
def test_hosts_that_differ_in_something_are_machines_of_their_own(change):
    found = machines_of([answer(0), answer(1, "n1", **change), answer(2, "n2")])
    assert [one.hosts for one in found] == [("n0", "n2"), ("n1",)]


def test_ranks_of_a_host_share_the_cores_of_all_their_cpus():
    """Threads of one core are one core; each rank's CPUs are kept."""
    bound = [[[0, 0]], [[2, 0]], [[1, 1], [3, 1]]]
    (found,) = machines_of(answer(rank, cpus=cpus) for rank, cpus in enumerate(bound))
    assert (found.ranks, found.cores, found.binding) == (3, 2, ("0", "2", "1,3"))
    assert found.is_crowded


def test_what_differs_between_the_ranks_of_a_host_is_named():
    said = (
        answer(0, variables={"UCX_NET_DEVICES": "mlx5_1", "UCX_TLS": "rc"}),
        answer(1, variables={"UCX_NET_DEVICES": "mlx5_0"}, governor="powersave"),
    )
    (found,) = machines_of(said)
    assert found.variables == (("UCX_NET_DEVICES", "mlx5_0 | mlx5_1"), ("UCX_TLS", "rc"))
    assert found.governor == "mixed"


def test_what_a_launcher_sets_anew_for_each_launch_is_no_fact():
    told = {
        "OMPI_MCA_btl": "tcp,self",
        "OMPI_MCA_orte_hnp_uri": "3;tcp://192.0.2.1:7",
        "OMPI_MCA_ess_base_vpid": "4",
        "OMPI_MCA_initial_wdir": "/somewhere",
        "OMPI_MCA_plm_rsh_agent": "/a/shell",
    }
    (found,) = machines_of([answer(0, variables=told)])
    assert found.variables == (("OMPI_MCA_btl", "tcp,self"),)


@given(st.sets(st.integers(0, 200)))
def test_ranges_name_each_number_once(numbers):
    text = as_ranges(numbers)
    ends = [[int(end) for end in run.split("-")] for run in text.split(",") if run]
    listed = [number for run in ends for number in range(run[0], run[-1] + 1)]
    assert listed == sorted(numbers)
    assert all(low[-1] + 1 < high[0] for low, high in itertools.pairwise(ends))


@given(st.lists(st.sampled_from(["n0", "n1", "n2"]), min_size=1, max_size=6))
def test_a_machine_survives_its_json_form(hosts):
    for machine in machines_of(answer(rank, host) for rank, host in enumerate(hosts)):
        assert Machine.from_json(json.loads(json.dumps(machine.to_json()))) == machine


def seen(ranks: int, *, emulated: bool):
    machines = machines_of(answer(rank, cpus=[[0, 0], [1, 1]]) for rank in range(ranks))
    environment = replace(ENVIRONMENT, emulated=emulated)
    return as_seen(environment, machines, "an MPI", {"a.c": "1"})


def test_more_ranks_than_cores_are_not_representative_where_nothing_is_emulated():
    assert seen(2, emulated=False).representative
    assert seen(3, emulated=True).representative
    crowded = seen(3, emulated=False)
    assert not crowded.representative
    assert crowded.notes == ("3 ranks on 2 cores of n0: not representative",)


def test_the_hash_of_the_program_is_that_of_its_sources():
    one, two = (
        as_seen(ENVIRONMENT, (), "an MPI", files).program_hash
        for files in ({"a.c": "1", "b.c": "2"}, {"b.c": "2", "a.c": "1"})
    )
    other = as_seen(ENVIRONMENT, (), "an MPI", {"a.c": "2", "b.c": "1"}).program_hash
    assert one == two != other


def test_a_session_reports_its_hosts(tmp_path):
    lines = [json.dumps(answer(rank)) for rank in range(2)] + ['{"done": true}']
    script = f"input(); print({chr(10).join(lines)!r}, flush=True); input()"
    session = Session(fake_job(script, tmp_path / "stderr"))
    try:
        assert session.environment() == machines_of(answer(rank) for rank in range(2))
    finally:
        session.close()


DAMAGE = [
    {"rank": "0"}, {"host": 3}, {"kernel": None}, {"cpus": [0]}, {"cpus": [[0, 0, 0]]},
    {"cpus": [[0, "0"]]}, {"governor": 0}, {"network": []}, {"variables": {"FI_X": 1}},
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_answer_that_makes_no_sense_is_reported(tmp_path, damage):
    lines = [json.dumps({**answer(0), **damage}), '{"done": true}']
    script = f"input(); print({chr(10).join(lines)!r}, flush=True); input()"
    session = Session(fake_job(script, tmp_path / "stderr"))
    with pytest.raises(MeasurementError, match="environment: unexpected answer"):
        session.environment()
    session.close()
