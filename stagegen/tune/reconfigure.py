"""Changes a configured tree step by step, and keeps what is faster.

Bongo, Anshus and Bjørndalen, section 6, do so by hand: look where the time goes, change the tree
there, measure it. Here each step races several changed trees against the one before, and the
tuner's test on launches says whether the best of them is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from stagegen.measure.statistics import is_faster_in_launches, launch_ratios, may_be_faster
from stagegen.topology import Topology
from stagegen.trees import ConfiguredTree
from stagegen.trees.moves import Move, moves
from stagegen.tune.reconfigure_steps import (
    HANDED_BY,
    MESSAGES,
    SHARED,
    Challenger,
    Nodes,
    Setup,
    Step,
    Times,
    ratio_of,
)

#: A challenger is not raced if its first look took longer than this many times the present time.
NEAR = 1.1

#: The FINALISTS challengers with the best first looks are looked at in LOOKS further launches: one
#: look at a call of microseconds says little.
FINALISTS, LOOKS = 3, 5


class Timed(Protocol):
    """Setups that can be timed in turn; :meth:`close` ends it."""

    def look(self) -> list[tuple[float, ...]]:
        """Return some seconds of each setup, from a launch of their own."""

    def launch(self, number: int, places: Sequence[int]) -> list[tuple[float, ...]]:
        """Return the seconds of some setups in a launch of the job."""

    def close(self) -> None:
        """End what runs."""


Look = Callable[[Sequence[Setup]], Timed]
"""Builds a program with setups, and checks them."""

NodeTimes = Callable[[Setup], Nodes]


def reconfigure(
    topology: Topology,
    start: Setup,
    look: Look,
    nodes: NodeTimes,
    gain: float,
    most: int,
    at_once: int,
    launches: int,
    records: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Step]:
    """Yield the steps of a search; the last one that accepted a change has its result.

    After a change that is accepted, the nodes are looked at anew. The search ends if no change of a
    tree is faster, or after ``most`` changes. Nothing is tried twice on the same setup.

    Args:
        topology: the cluster.
        start: the setup to begin with.
        look: makes setups ready to be timed.
        nodes: times of a setup's nodes.
        gain: the least share by which a setup must be faster.
        most: how many changes to try at most.
        at_once: how many changes a step tries.
        launches: of a race.
        records: of a log to go on with; steps that it has are not measured.
    """
    known = list(records)
    present, tried, number = start, 0, 0
    seen = {_key(start)}
    while tried < most:
        has_times = bool(known) and _has_nodes_of(known[0], present)
        times = _nodes_of(known[0]) if has_times else nodes(present)
        untried = [
            one for one in _challengers(topology, present, times) if _key(one.setup) not in seen
        ]
        accepted = False
        while untried and tried < most and not accepted:
            batch, untried = untried[:at_once], untried[at_once:]
            batch = batch[: most - tried]
            number += 1
            record = known.pop(0) if known and _is_of(known[0], present, batch) else None
            if record is None:
                known = []
                step = _raced(number, present, times, batch, look, gain, launches)
            else:
                step = _recorded(number, present, times, batch, record, gain, launches)
            yield step
            tried += len(batch)
            seen |= {_key(one.setup) for one in batch}
            if step.accepted is not None:
                present, accepted = step.accepted.setup, True
        if not accepted:
            return


def _key(setup: Setup) -> tuple[object, int]:
    return setup.tree.nodes, setup.on_host


def shares(topology: Topology, tree: ConfiguredTree) -> bool:
    """Whether ranks of one host hand over data to each other in a tree."""
    hosts = topology.ranks
    ways = (
        *((tree.worker_of(one), node.worker) for one, node in tree.up),
        *tree.down,
    )
    return any(hosts[giver] == hosts[taker] for giver, taker in ways)


def _challengers(topology: Topology, present: Setup, nodes: Nodes) -> Iterator[Challenger]:
    """Yield the other way to hand over data on hosts, then changes, at the hottest nodes first."""
    nothing = Times({}, {})
    if shares(topology, present.tree):
        other = SHARED if present.on_host == MESSAGES else MESSAGES
        what = f"hand over data on hosts by {HANDED_BY[other]}"
        yield Challenger(what, "", replace(present, on_host=other), nothing)
    for move in moves(topology, present.tree, nodes.seconds):
        yield Challenger(move.what, move.node, _after(topology, present, move), nothing)


def _after(topology: Topology, present: Setup, move: Move) -> Setup:
    on_host = present.on_host if shares(topology, move.tree) else MESSAGES
    return Setup(move.tree, on_host)


def _raced(
    number: int,
    present: Setup,
    nodes: Nodes,
    batch: Sequence[Challenger],
    look: Look,
    gain: float,
    launches: int,
) -> Step:
    """Return a step that is measured: looks at all, then launches of the best one."""
    timed = look([present, *(one.setup for one in batch)])
    try:
        looked = {i: {0: seconds} for i, seconds in enumerate(timed.look(), -1)}
        ratios = {i: ratio_of(looked[i], looked[-1]) for i in range(len(batch))}
        first = sorted(ratios, key=ratios.__getitem__)
        near = [i for i in first if ratios[i] < NEAR][:FINALISTS]
        if near:
            _look_again(timed, near, looked, launches)
        ratios |= {i: ratio_of(looked[i], looked[-1]) for i in near}
        order = sorted(near, key=ratios.__getitem__)
        worth = bool(order) and ratios[order[0]] < 1
        raced = _launched(timed, order[0], gain, launches) if worth else {}
    finally:
        timed.close()
    old = Times(looked[-1], raced.get(-1, {}))
    order += [i for i in first if i not in order]
    found = tuple(replace(batch[i], times=Times(looked[i], raced.get(i, {}))) for i in order)
    return Step(number, present, nodes, old, found, _judged(old, found, gain, launches))


def _look_again(
    timed: Timed,
    near: Sequence[int],
    looked: Mapping[int, dict[int, tuple[float, ...]]],
    launches: int,
) -> None:
    """Add further looks at finalists, and at the setup before, which is number -1.

    Their launches are numbered after those of the race.
    """
    for look in range(1, LOOKS + 1):
        seconds = timed.launch(launches + look, [0, *(i + 1 for i in near)])
        for i, times in zip((-1, *near), seconds, strict=True):
            looked[i][look] = times


def _launched(
    timed: Timed, best: int, gain: float, launches: int
) -> dict[int, dict[int, tuple[float, ...]]]:
    """Return the times by launch of the best one and, with the number -1, of the setup before.

    It ends when the best one cannot win any more.
    """
    found: dict[int, dict[int, tuple[float, ...]]] = {-1: {}, best: {}}
    for launch in range(1, launches + 1):
        found[-1][launch], found[best][launch] = timed.launch(launch, [0, best + 1])
        if not may_be_faster(launch_ratios(found[best], found[-1]), launches, gain):
            break
    return found


def _judged(
    old: Times, challengers: Sequence[Challenger], gain: float, launches: int
) -> Challenger | None:
    """Return the change that is kept.

    As in tuning, the test is of one challenger: the best one by the looks, whose times do not count
    in the test.
    """
    best = challengers[0]
    is_whole = len(best.times.raced) >= launches
    is_faster = is_whole and is_faster_in_launches(best.times.raced, old.raced, gain)
    return best if is_faster else None


def _has_nodes_of(record: Mapping[str, Any], present: Setup) -> bool:
    """Whether a record of the log has times of all nodes of this setup."""
    names = {node.name for node in present.tree.nodes}
    return bool(record["before"] == present.to_json() and names <= record["node_s"].keys())


def _nodes_of(record: Mapping[str, Any]) -> Nodes:
    return Nodes(dict(record["node_s"]), record["measured"], dict(record["part_s"]))


def _is_of(record: Mapping[str, Any], present: Setup, batch: Iterable[Challenger]) -> bool:
    """Whether a record of the log is of the same changes of the same setup."""
    told = sorted((one["change"], str(one["after"])) for one in record["tried"])
    asked = sorted((one.change, str(one.setup.to_json())) for one in batch)
    return _has_nodes_of(record, present) and told == asked


def _recorded(
    number: int,
    present: Setup,
    nodes: Nodes,
    batch: Sequence[Challenger],
    record: Mapping[str, Any],
    gain: float,
    launches: int,
) -> Step:
    """Return a step with the times of the log."""
    old = Times.from_json(record["times"])
    by_change = {one.change: one for one in batch}
    found = tuple(
        replace(by_change[form["change"]], times=Times.from_json(form["times"]))
        for form in record["tried"]
    )
    return Step(number, present, nodes, old, found, _judged(old, found, gain, launches))
