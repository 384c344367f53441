"""The doctor's judgement of what hosts say, and how it reads them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from stagegen.measure.doctor import visit as visits
from stagegen.measure.doctor.facts import Clocks, Facts, read_clocks, read_facts
from stagegen.measure.doctor.judge import Case, judge
from stagegen.measure.doctor.visit import Visit, run_job
from stagegen.measure.launch.base import Job
from stagegen.measure.launch.local import LocalLauncher
from stagegen.topology import Host, Link, RankMap, Switch, Topology
from tests.measure.fakes import ENVIRONMENT

HOSTS = ("a", "b", "c")
TOPOLOGY = Topology(
    "three",
    (Switch("s", HOSTS),),
    tuple(Host(name, "s", 100_000_000, 1e-5, slots=2) for name in HOSTS),
    (),
    RankMap("list", (*HOSTS, "a")),
)
HEALTHY = {
    name: Facts(rank, name, "", f"machine {name}", 4, "token", "yes", "performance", 100)
    for rank, name in enumerate(HOSTS)
}
CLOCKS = Clocks("MPICH", (0.0, 0.1, -0.2, 0.0), (0.0, 0.01, 0.01, 0.01))
CASE = Case(
    TOPOLOGY, replace(ENVIRONMENT, launcher="hydra", representative=True, scale=1.0), False,
    Visit("token", HEALTHY, {}, CLOCKS),
)  # fmt: skip


def with_b(**changes: object) -> Case:
    """The healthy case, with other facts of host b."""
    facts = {**HEALTHY, "b": replace(HEALTHY["b"], **changes)}  # type: ignore[arg-type]
    return replace(CASE, visit=replace(CASE.visit, facts=facts))


def troubles(case: Case) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {one.check: (one.status, one.hosts) for one in judge(case) if one.status != "ok"}


def test_a_healthy_cluster_has_no_trouble_and_one_finding_for_each_check():
    checks = [one.check for one in judge(CASE)]
    page = (Path(__file__).parents[2] / "docs" / "launchers.md").read_text(encoding="utf-8")
    _, _, after = page.partition("## doctor")
    told = re.findall(r"^\| `(\w+)` \|", after.partition("\n## ")[0], re.MULTILINE)
    before_any_host = ["compiler", "launcher"]
    assert sorted([*before_any_host, *checks]) == sorted(told)
    assert troubles(CASE) == {}


@pytest.mark.parametrize(
    ("latency", "how", "status"),
    [
        (13e-3, "none", "warn"),
        (13e-3, "relay", "ok"),
        (13e-3, "real", "ok"),
        (5e-5, "none", "ok"),
    ],
)
def test_a_long_link_without_its_latency_is_reported(latency, how, status):
    switches = (Switch("s", HOSTS), Switch("t", ()))
    topology = replace(TOPOLOGY, switches=switches, links=(Link(("s", "t"), 10**8, latency),))
    environment = replace(CASE.environment, latency=how)
    case = replace(CASE, topology=topology, environment=environment)
    (found,) = (one for one in judge(case) if one.check == "latency")
    assert found.status == status


@pytest.mark.parametrize(
    ("changes", "check", "status"),
    [
        ({"name": "node-b"}, "names", "fail"),
        ({"token": ""}, "folder", "fail"),
        ({"token": "of another day"}, "folder", "fail"),
        ({"loads": "no: libmpi.so.12: cannot open"}, "library", "fail"),
        ({"governor": "powersave"}, "governor", "warn"),
        ({"traffic": 130_000}, "traffic", "warn"),
    ],
)
def test_each_fault_of_a_host_is_found_and_named(changes, check, status):
    assert troubles(with_b(**changes)) == {check: (status, ("b",))}


@pytest.mark.parametrize("changes", [{"name": "B"}, {"name": "x", "slurm": "b"}, {"governor": ""}])
def test_differences_that_the_library_copes_with_are_no_trouble(changes):
    assert troubles(with_b(**changes)) == {}


def test_two_hosts_that_are_one_machine_are_found():
    assert troubles(with_b(machine="machine a")) == {"machines": ("fail", ("a", "b"))}


def test_more_ranks_than_cores_are_found_where_they_are():
    facts = {name: replace(one, cpus=1) for name, one in HEALTHY.items()}
    case = replace(CASE, visit=replace(CASE.visit, facts=facts))
    assert troubles(case) == {"cores": ("warn", ("a",))}


def test_an_idle_link_is_judged_by_its_own_rate():
    """One per cent of 100 Mbit/s is 125,000 bytes in a second."""
    assert troubles(with_b(traffic=124_000)) == {}
    slow = replace(with_b(traffic=124_000), environment=replace(CASE.environment, scale=0.5))
    assert troubles(slow) == {"traffic": ("warn", ("b",))}


@pytest.mark.parametrize(("offset", "error", "found"), [(5, 0.1, True), (5, 4.5, False)])
def test_a_clock_is_wrong_if_it_differs_by_more_than_can_be_an_error(offset, error, found):
    clocks = Clocks("MPICH", (0, offset, 0, 0), (0, error, 0, 0))
    case = replace(CASE, visit=replace(CASE.visit, clocks=clocks))
    assert troubles(case) == ({"clock": ("warn", ("b",))} if found else {})


def test_silent_hosts_fail_and_the_others_are_judged_still():
    facts = {name: one for name, one in HEALTHY.items() if name != "c"}
    seen = Visit("token", facts, {"c": "connection refused"}, None)
    found = {one.check: one for one in judge(replace(CASE, visit=seen))}
    assert found["hosts"].status == "fail"
    assert "connection refused" in found["hosts"].what
    assert found["ranks"].status == found["clock"].status == "warn"
    alone = Visit("token", {}, dict.fromkeys(HOSTS, ""), None)
    assert [one.check for one in judge(replace(CASE, visit=alone))] == ["hosts"]


def test_a_job_that_fails_is_reported_with_its_reason():
    seen = replace(CASE.visit, clocks=None, failure="no answer within 90 s")
    found = {one.check: one for one in judge(replace(CASE, visit=seen))}
    assert found["ranks"].status == "fail"
    assert "no answer within 90 s" in found["ranks"].what


@pytest.mark.parametrize(("ranks", "told"), [(1, "each rank is alone"), (3, "it has 3 ranks")])
def test_ranks_that_do_not_find_each_other_are_a_failure(monkeypatch, tmp_path, ranks, told):
    """Each rank that is alone answers as rank 0 of a job of one."""
    clocks = ", ".join(["[0, 0]"] * ranks)

    def run(launcher, topology, job, patience):
        if job.program[0] == "sh":
            token = Path(job.program[4]).read_text()
            lines = (
                f"doctor\trank={rank}\tname={name}\tslurm=\tmachine={name}\tcpus=4\ttoken={token}"
                "\tloads=yes\tgovernor=\ttraffic=7"
                for rank, name in enumerate(HOSTS)
            )
            return "\n".join(lines), ""
        return f'{{"mpi": "MPICH", "clocks": [{clocks}]}}\n' * TOPOLOGY.rank_count, ""

    monkeypatch.setattr(visits, "run_job", run)
    monkeypatch.setattr(visits, "_build", lambda toolchain, folder: folder / "doctor")
    toolchain = SimpleNamespace(flavour="mpich")
    seen = visits.visit(LocalLauncher(), TOPOLOGY, toolchain, tmp_path)
    found = {one.check: one for one in judge(replace(CASE, visit=seen))}
    assert (found["ranks"].status, found["clock"].status) == ("fail", "warn")
    assert told in found["ranks"].what


def test_a_host_without_the_folder_lacks_the_program_and_maybe_not_the_library():
    found = troubles(with_b(token="", loads="no: not found"))
    assert found == {"folder": ("fail", ("b",)), "library": ("warn", ())}


def test_the_advice_for_a_silent_host_fits_the_launcher():
    seen = Visit("token", {"a": HEALTHY["a"]}, {"b": "", "c": ""}, None)
    of_slurm = replace(CASE.environment, launcher="slurm")
    for environment, word in ((CASE.environment, "log in"), (of_slurm, "srun")):
        case = replace(CASE, environment=environment, visit=seen)
        first = next(iter(judge(case)))
        assert word in (first.advice or "")


LINE = (
    "doctor\trank=1\tname=b\tslurm=\tmachine=m\tcpus=4\ttoken=t \tloads=yes\tgovernor=a b "
    "\ttraffic=7"
)


def test_facts_are_found_among_what_a_launcher_says():
    output = f"srun: hello\n{LINE}\ndoctor\trank=one\n{LINE.replace('traffic=7', '')}\n"
    assert read_facts(output) == [Facts(1, "b", "", "m", 4, "t", "yes", "a b", 7)]


def test_clocks_are_found_among_what_a_launcher_says():
    output = 'hello\n{"other": 1}\n{"mpi": "MPICH", "clocks": [[0, 0], [0.5, 0.1]]}\n'
    assert read_clocks(output) == Clocks("MPICH", (0.0, 0.5), (0.0, 0.1))
    assert read_clocks("hello\n[1]\n") is None


@pytest.mark.mpi
def test_a_job_s_input_stays_open_while_it_runs():
    """Hydra passes the end of input on, and dies of SIGPIPE if the host has ended by then."""
    words = ("sh", "-c", "timeout 0.5 cat; echo status $?")
    output, _ = run_job(LocalLauncher(), TOPOLOGY, Job(words), 60)
    assert output.splitlines() == ["status 124"] * TOPOLOGY.rank_count  # still waiting
