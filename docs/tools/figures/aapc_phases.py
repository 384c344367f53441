r"""Where the time of an alltoall in phases goes, from the time stamps of its messages.

    CFLAGS="-O2 -DCOLL_STAMPS" LIBCOLL_STAMPS=. stagegen compare --topology cluster.yaml \
      --collective alltoall --algorithms aapc_receiver --sizes 64KiB
    python docs/tools/figures/aapc_phases.py --topology cluster.yaml --size 64KiB .

Every rank leaves a file of its latest call (templates/libcoll/stamps.c). The clocks must be
one, as they are in the lab. Milliseconds are given as least, median, 90th percentile and most.

With --rounds, the stamps are of the segments of `aapc_rounds` or `spreading_rounds`. A rank looks
at a segment when it is its turn to be awaited, so a segment may have arrived somewhat before its
stamp.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from stagegen.schedule import Message, PhaseSchedule, alltoall_schedule, lower_bound
from stagegen.topology import Topology, load_topology
from stagegen.topology.units import parse_size


@dataclass(frozen=True)
class Stamps:
    """When things happened, in seconds since the first rank began.

    Attributes:
        started: each message.
        arrived: its body.
        begun: each rank's call.
        ended: likewise.
    """

    started: dict[Message, float]
    arrived: dict[Message, float]
    begun: tuple[float, ...]
    ended: tuple[float, ...]


@dataclass(frozen=True)
class Segment:
    """A segment of a message, in a routine of rounds."""

    message: Message
    round: int


@dataclass(frozen=True)
class SegmentStamps:
    """As :class:`Stamps`, of every segment.

    Attributes:
        started: each segment.
        arrived: each segment: when its receiver looked, and it was there.
        ended: each rank's call.
    """

    started: dict[Segment, float]
    arrived: dict[Segment, float]
    ended: tuple[float, ...]


def read_segments(folder: Path, ranks: int) -> SegmentStamps:
    """Read the files of all positions, of a routine of rounds."""
    found: dict[str, dict[Segment, float]] = {letter: {} for letter in "BESA"}
    for what, number, message, seconds in _read_lines(folder, ranks):
        found[what][Segment(message, number)] = seconds
    first = min(found["B"].values())
    started, arrived = ({s: at - first for s, at in found[letter].items()} for letter in "SA")
    return SegmentStamps(started, arrived, tuple(at - first for at in found["E"].values()))


def _read_lines(folder: Path, ranks: int) -> Iterator[tuple[str, int, Message, float]]:
    """Yield each stamp: its event, its phase or round, its message, and its time."""
    for rank in range(ranks):
        for line in (folder / f"stamps.{rank}").read_text().splitlines():
            what, number, other, seconds = line.split()
            if int(other) < 0:  # a step without such a message
                continue
            ends = (int(other), rank) if what == "A" else (rank, int(other))
            yield what, int(number), Message(*ends), float(seconds)


def read_stamps(folder: Path, ranks: int) -> Stamps:
    """Read the files of all positions."""
    found: dict[str, dict[Message, float]] = {letter: {} for letter in "BESA"}
    for what, _, message, seconds in _read_lines(folder, ranks):
        found[what][message] = seconds
    first = min(found["B"].values())
    since = {w: {m: at - first for m, at in times.items()} for w, times in found.items()}
    begun, ended = (tuple(since[letter].values()) for letter in "BE")
    return Stamps(since["S"], since["A"], begun, ended)


def bottleneck_users(topology: Topology, schedule: PhaseSchedule) -> list[Message]:
    """Return the messages over the most loaded edge, in the order of the phases."""
    placed = [message for phase in schedule.phases for message in phase]
    load = Counter(edge for message in placed for edge in topology.path(*message))
    busiest = max(load, key=lambda edge: load[edge])
    return [message for message in placed if busiest in topology.path(*message)]


def describe(topology: Topology, stamps: Stamps, size: int) -> Iterable[str]:
    """Yield what the stamps say, a line each."""
    schedule = alltoall_schedule(topology, "receiver")
    bound = lower_bound(topology, "alltoall", size)
    total = max(stamps.ended)
    yield f"all: {1e3 * total:.1f} ms, {total / bound.seconds:.3f} × the bound"
    spans = [stamps.arrived[m] - stamps.started[m] for m in stamps.arrived]
    yield f"a message, from its start to the arrival of its body: {_range(spans)}"
    awaited: dict[Message, float] = {}
    for first, then, _ in schedule.sync.syncs:
        awaited[then] = max(stamps.arrived[first], awaited.get(then, 0))
    waits = [stamps.started[then] - arrival for then, arrival in awaited.items()]
    yield f"a start after the last arrival that it waits for (tokens): {_range(waits)}"
    users = bottleneck_users(topology, schedule)
    gaps = [stamps.started[b] - stamps.arrived[a] for a, b in pairwise(users)]
    yield f"the most loaded link, from an arrival to the next start: {_range(gaps)}"
    yield f"  these gaps together: {1e3 * sum(gaps):.1f} ms in {len(gaps)}"
    last = stamps.arrived[users[-1]]
    yield f"  before its first message: {1e3 * stamps.started[users[0]]:.1f} ms"
    yield f"  after its last one: {1e3 * (total - last):.1f} ms"


def describe_rounds(topology: Topology, stamps: SegmentStamps, size: int) -> Iterable[str]:
    """Yield what the stamps of segments say, a line each."""
    bound = lower_bound(topology, "alltoall", size)
    total = max(stamps.ended)
    yield f"all: {1e3 * total:.1f} ms, {total / bound.seconds:.3f} × the bound"
    spans = [stamps.arrived[s] - stamps.started[s] for s in stamps.arrived]
    yield f"a segment, from its start to when its arrival is seen: {_range(spans)}"
    users = set(bottleneck_users(topology, alltoall_schedule(topology, "receiver")))
    arrivals = sorted(at for s, at in stamps.arrived.items() if s.message in users)
    gaps = [then - first for first, then in pairwise(arrivals)]
    yield f"the most loaded link, from one arrival to the next: {_range(gaps)}"
    one = bound.seconds / len(arrivals)
    yield f"  a segment takes {1e3 * one:.2f} ms at the link's rate, if all are as long"
    yield f"  before its first arrival: {1e3 * arrivals[0]:.1f} ms"
    yield f"  from the first to the last: {1e3 * (arrivals[-1] - arrivals[0]):.1f} ms"
    yield f"  after its last one: {1e3 * (total - arrivals[-1]):.1f} ms"


def _range(seconds: list[float]) -> str:
    points = np.percentile(1e3 * np.array(seconds), [0, 50, 90, 100])
    return " / ".join(f"{point:.1f}" for point in points) + " ms"


def main() -> None:
    """Print what the stamps in a folder say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--topology", required=True)
    parser.add_argument("--size", required=True, type=parse_size)
    parser.add_argument("--rounds", action="store_true", help="of a routine of rounds")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    topology = load_topology(arguments.topology)
    folder, ranks, size = arguments.folder, topology.rank_count, arguments.size
    if arguments.rounds:
        lines = describe_rounds(topology, read_segments(folder, ranks), size)
    else:
        lines = describe(topology, read_stamps(folder, ranks), size)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
