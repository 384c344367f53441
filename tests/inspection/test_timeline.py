"""Steps, phases, links and their idle time."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest

from stagegen.cli import group
from stagegen.inspection.look import looks_at
from stagegen.inspection.nodes import nodes_of
from stagegen.inspection.series import Call
from stagegen.inspection.timeline import OUTSIDE, covered, link_uses, messages_of, step_findings
from stagegen.inspection.trace import NO_DATA, EventType
from stagegen.report.inspection_page import render_inspection
from tests.generate.runtime import compile_c, runtime_folder
from tests.inspection import made
from tests.inspection.reading import US, events, series, us
from tests.strategies import make_topology


def test_rings_and_segments_have_no_tree():
    around = Call(
        (0.0,) * 3,
        (40 * US,) * 3,
        tuple(
            events(
                made.sent((rank + 1) % 3, 1),
                made.received((rank - 1) % 3, 5),
                made.sent((rank + 1) % 3, 6),
                made.received((rank - 1) % 3, 9),
            )
            for rank in range(3)
        ),
    )
    assert nodes_of("allreduce", around) is None
    found = messages_of(around)
    assert [(one.step, one.sender) for one in found] == [(k, r) for k in range(2) for r in range(3)]
    assert {round((one.end - one.start) / US) for one in found} == {4, 3}


def test_phases_on_links_and_their_idle_time():
    topology = make_topology([2, 2], [0])
    hosts = topology.ranks
    first = (EventType.STARTED, 2, 0, 0), (EventType.ARRIVED, 0, 0, 10)
    second = (EventType.STARTED, 3, 1, 30), (EventType.ARRIVED, 1, 1, 40)
    call = Call(
        (0.0,) * 4,
        (40 * US,) * 4,
        (events(first[0]), events(second[0]), events(first[1]), events(second[1])),
    )
    assert [(one.sender, one.receiver, one.step) for one in messages_of(call)] == [
        (0, 2, 0),
        (1, 3, 1),
    ]
    busiest, *others = link_uses(call, hosts, topology)
    assert busiest.messages == 2
    assert busiest.idle == pytest.approx(0.5)
    assert all(use.messages == 1 for use in others)
    assert all(use.idle == pytest.approx(0.75) for use in others)


@pytest.mark.parametrize(
    ("hosts", "stranger"),
    [
        (("a", "b"), ""),
        (("A.cluster.local", "10.0.0.2"), ""),
        (("a", "elsewhere"), "no host elsewhere; messages from and to it count on no link"),
    ],
)
def test_hosts_of_the_events_are_found_as_the_library_finds_its_own(
    tmp_path, capsys, hosts, stranger
):
    topology = tmp_path / "two.yaml"
    topology.write_text(
        "name: two\ndefaults: {bandwidth: 1Gbit}\nswitches:\n  s0: {hosts: [a, b]}\n"
        "hosts:\n  a: {slots: 2}\n  b: {slots: 2, address: 10.0.0.2}\n"
    )
    one = made.MadeCall([0.0] * 4, [100.0] * 4, BY_LEADERS)
    world = replace(made.TWO_HOSTS, hosts=tuple(hosts[number] for number in (0, 0, 1, 1)))
    made.write(tmp_path / "events", "alltoall/hierarchical", [one], world)
    words = ["inspect", "--skip", "0", "--topology", topology, tmp_path / "events"]
    group([str(word) for word in words], standalone_mode=False)
    told = capsys.readouterr()
    assert ("a → s0" in told.out) == (not stranger)
    assert stranger in told.err
    assert bool(told.err) == bool(stranger)


#: A gather on each host, a phase of three segments between hosts with a token back, and a scatter.
#: Ranks 0 and 1 are on one host. The last segment leaves after the others have arrived.
BY_LEADERS = (
    (
        made.received(1, 10),
        (EventType.STARTED, 2, 0, 20), made.sent(2, 20), made.sent(2, 25), made.sent(2, 52),
        (EventType.RECEIVED, 2, 3, 60), (EventType.ARRIVED, 2, 0, 70), made.received(2, 70),
        made.sent(1, 90),
    ),
    (made.sent(0, 5), made.received(0, 100)),
    (
        made.received(3, 15),
        (EventType.STARTED, 0, 0, 30), made.sent(0, 30),
        made.received(0, 40), made.received(0, 50), (EventType.ARRIVED, 0, 0, 50),
        (EventType.SENT, 0, 3, 50), made.received(0, 58), made.sent(3, 80),
    ),
    (made.sent(2, 0), made.received(2, 85)),
)  # fmt: skip


def test_messages_outside_of_phases_count_once_and_tokens_do_not():
    call = Call((0.0,) * 4, (100 * US,) * 4, tuple(events(*own) for own in BY_LEADERS))
    found = messages_of(call)
    assert [(one.sender, one.receiver, one.step) for one in found] == [
        (3, 2, OUTSIDE),
        (1, 0, OUTSIDE),
        (0, 2, 0),
        (2, 0, 0),
        (2, 3, OUTSIDE),
        (0, 1, OUTSIDE),
    ]
    assert [(us(one.start / US), us(one.end / US)) for one in found][2] == (us(20), us(50))


def test_messages_of_other_parts_of_a_composition_are_outside_of_phases():
    """A message before the phases and one after them, between ranks that have one in a phase."""
    told = (
        (made.sent(1, 5), (EventType.PART, 3, 1, 10), (EventType.STARTED, 1, 0, 20),
         made.sent(1, 20), (EventType.PART, -1, 1, 40), made.sent(1, 50)),
        (made.received(0, 8), made.received(0, 30), (EventType.ARRIVED, 0, 0, 30),
         made.received(0, 60)),
    )  # fmt: skip
    call = Call((0.0,) * 2, (100 * US,) * 2, tuple(events(*own) for own in told))
    assert [one.step for one in messages_of(call)] == [OUTSIDE, 0, OUTSIDE]


def test_what_is_outside_of_phases_is_no_idle_time(tmp_path, capsys):
    one = made.MadeCall([0.0] * 4, [100.0] * 4, BY_LEADERS)
    name = "alltoall/hierarchical"
    found = step_findings(series(tmp_path, [one], routine=name))
    assert found.has_phases
    # Rank 0: 5 to 10, 20 to 70, 90 to 100. Rank 2: 0 to 15, 20 to 70, 80 to 85.
    assert found.idle == pytest.approx((0.35, 0.85, 0.30, 0.80), abs=1e-6)
    assert [(step.title, step.messages) for step in found.steps] == [("outside", 4), ("0", 2)]
    assert [step["step"] for step in found.to_json()["steps"]] == [None, 0]
    file = made.write(tmp_path / "events", name, [one], made.TWO_HOSTS)
    page = tmp_path / "page.html"
    words = ["inspect", str(file), "--skip", "0", "--html", str(page)]
    group(words, standalone_mode=False)
    assert re.search(r"^ outside +4 ", capsys.readouterr().out, re.MULTILINE)
    drawn = page.read_text(encoding="utf-8")
    assert drawn.count("<title>outside of phases: rank ") == 2 * 4
    assert "<tr><td>outside</td><td>4</td>" in drawn


@pytest.mark.mpi
def test_messages_without_data_have_the_tags_that_the_library_gives_them(tmp_path):
    source = tmp_path / "tags.c"
    source.write_text(
        '#include <stdio.h>\n#include "coll.h"\n'
        'int main(void) { printf("%d %d", COLL_TAG_TOKEN, COLL_TAG_DUMMY); }\n'
    )
    program = compile_c(source, tmp_path / "tags", f"-I{runtime_folder()}")
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert tuple(map(int, printed.split())) == NO_DATA


def test_idle_time_of_a_link_is_named_as_what_it_is(tmp_path):
    """The first message begins after 10 of 100 µs, and the last one ends after 50."""
    told = ((made.sent(2, 10), made.sent(2, 40)), (), (made.received(0, 20), made.received(0, 50)))
    one = made.MadeCall([0.0] * 4, [100.0] * 4, (*told, ()))
    topology = make_topology([2], [], slots={"n0": 2, "n1": 2})
    world = replace(made.TWO_HOSTS, hosts=topology.ranks)
    file = made.write(tmp_path / "events", "alltoall/ring", [one], world)
    drawn = render_inspection(looks_at(file, skip=0, topology=topology))
    told = "n0 → s0: idle 50% of the time from the first message to the last</title>"
    assert drawn.count(told) == 2


def test_covered_time_is_the_union():
    assert covered([(0, 4), (2, 3), (3, 5), (7, 8)]) == 6
    assert covered([]) == 0
