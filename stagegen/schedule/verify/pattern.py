"""Checks the schedule of a pattern; for :mod:`stagegen.schedule.verify`.

It takes paths from the checker's own network, and what has arrived as sets (bits of integers).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import chain, pairwise
from math import floor, isclose

from stagegen.errors import ScheduleError
from stagegen.schedule.model import Message, PatternSchedule, Piece
from stagegen.schedule.verify.paths import Network, require, require_same_ranks
from stagegen.schedule.verify.proof import Proof
from stagegen.topology import Edge, Topology


def verify_pattern(topology: Topology, schedule: PatternSchedule) -> Proof:
    """Check the schedule of an alltoallv's pattern.

    Raises:
        ScheduleError: a property does not hold.
    """
    require_same_ranks(topology, schedule.ranks)
    pieces = list(chain.from_iterable(schedule.phases))
    _check_pieces(schedule, pieces)
    paths = _paths(topology, schedule.sizes)
    carries = _carries(topology)
    _check_capacities(schedule, paths, carries)
    users = _users(pieces, paths)
    before = _read_waits(schedule, pieces)
    _check_order(pieces, users, carries, before)
    _check_times(topology, schedule, pieces, paths, carries)
    return Proof(
        collective="alltoallv",
        ranks=len(schedule.ranks),
        phases=len(schedule.phases),
        bound_phases=None,
        syncs=len(schedule.waits),
        checked=(
            "every message that is not empty is sent exactly once, and no other",
            "no network edge carries more messages at a time than it can",
            "messages with contention follow each other's arrival (receiver-based tokens)",
            "no synchronisation follows from others",
            "tokens between two ranks cannot be mistaken for each other",
            f"data alone takes {schedule.seconds:.6g} s, {_above(schedule.gap)}",
        ),
    )


def _above(gap: float | None) -> str:
    return "and no link carries any" if gap is None else f"{gap:.2%} above the bound"


def _check_pieces(schedule: PatternSchedule, pieces: list[Piece]) -> None:
    """Check that the pieces are those of all messages that are not empty, each once."""
    count = len(schedule.ranks)
    require(
        len(schedule.sizes) == count and all(len(row) == count for row in schedule.sizes),
        f"the pattern is not one of {count} ranks",
    )
    seen: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for piece in pieces:
        for rank in piece[:2]:
            require(0 <= rank < count, f"{piece}: there is no rank {rank}")
        require(0 <= piece.part < piece.parts, f"{piece}: there is no such part")
        own = seen.setdefault((piece.source, piece.destination), set())
        require(piece[2:] not in own, f"{piece} is sent twice")
        own.add((piece.part, piece.parts))
    for u, row in enumerate(schedule.sizes):
        for v, size in enumerate(row):
            own = seen.get((u, v), set())
            wanted = u != v and size > 0
            require(bool(own) == wanted, f"{u}→{v} of {size} bytes has {len(own)} pieces")
            cuts = {parts for _, parts in own}
            require(len(cuts) <= 1 and len(own) == sum(cuts), f"{u}→{v} lacks a piece")


def _paths(
    topology: Topology, sizes: tuple[tuple[int, ...], ...]
) -> dict[tuple[int, int], list[Edge]]:
    network = Network(topology)
    return {
        (u, v): network.path(Message(u, v))
        for u, row in enumerate(sizes)
        for v, size in enumerate(row)
        if size and u != v
    }


def _carries(topology: Topology) -> dict[Edge, tuple[int, Fraction]]:
    """Return how many pieces each edge carries at a time, and the rate of each of them."""
    used = Counter(topology.ranks)
    slowest = min(host.bandwidth for host in topology.hosts if host.name in used)
    fastest = max(topology.rates.values())
    found: dict[Edge, tuple[int, Fraction]] = {}
    for (one, other), rate in topology.rates.items():
        alone = used[one] == 1 or used[other] == 1  # the link of a rank: one message at a time
        count = 1 if alone else max(1, floor(Fraction(rate, slowest)))
        found[one, other] = count, Fraction(rate, count)
    for rank, host in enumerate(topology.ranks):
        if used[host] > 1:
            for edge in ((f"rank {rank}", host), (host, f"rank {rank}")):
                found[edge] = 1, Fraction(fastest)
    return found


def _check_capacities(
    schedule: PatternSchedule,
    paths: dict[tuple[int, int], list[Edge]],
    carries: dict[Edge, tuple[int, Fraction]],
) -> None:
    for phase, pieces in enumerate(schedule.phases):
        use = Counter(edge for piece in pieces for edge in paths[piece[:2]])
        for edge, count in use.items():
            require(
                count <= carries[edge][0],
                f"phase {phase}: {count} messages use the edge {edge[0]}→{edge[1]}, which carries "
                f"{carries[edge][0]}",
            )


def _users(pieces: list[Piece], paths: dict[tuple[int, int], list[Edge]]) -> dict[Edge, list[int]]:
    """Return the numbers of the pieces on each edge, in their order."""
    users: dict[Edge, list[int]] = {}
    for number, piece in enumerate(pieces):
        for edge in paths[piece[:2]]:
            users.setdefault(edge, []).append(number)
    return users


def _read_waits(schedule: PatternSchedule, pieces: list[Piece]) -> list[list[int]]:
    """Return the pieces that each piece waits for; the tokens between ranks are in order."""
    number = {piece: place for place, piece in enumerate(pieces)}
    phase_of = {piece: place for place, own in enumerate(schedule.phases) for piece in own}
    before: list[list[int]] = [[] for _ in pieces]
    streams: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for first, then in schedule.waits:
        for piece in (first, then):
            require(piece in number, f"{then} waits for {first}: there is no {piece}")
        require(
            phase_of[first] < phase_of[then],
            f"{then} waits for {first}, which does not come in an earlier phase",
        )
        before[number[then]].append(number[first])
        stream = streams.setdefault((first.destination, then.source), [])
        stream.append((number[first], number[then]))
    for (giver, taker), stream in streams.items():
        stream.sort()
        for (_, one), (_, other) in pairwise(stream):
            require(
                one <= other,
                f"the tokens from rank {giver} to rank {taker} for {pieces[one]} and "
                f"{pieces[other]} can be mistaken for each other",
            )
    return before


def _check_order(
    pieces: list[Piece],
    users: dict[Edge, list[int]],
    carries: dict[Edge, tuple[int, Fraction]],
    before: list[list[int]],
) -> None:
    """Check that all pieces with contention are in order, and that each wait is needed.

    When a piece starts, those that it waits for have arrived, with all that had arrived when these
    started. So has what its sender had waited for before its last send.
    """
    needed: list[list[tuple[int, Edge]]] = [[] for _ in pieces]
    for edge, own in users.items():
        apart = carries[edge][0]
        for one, other in zip(own, own[apart:], strict=False):
            needed[other].append((one, edge))
    arrived: list[int] = []  # bit k: piece k has arrived when this one starts
    last: dict[int, int] = {}
    for place, piece in enumerate(pieces):
        told = [(one, arrived[one] | 1 << one) for one in before[place]]
        started = arrived[last[piece.source]] if piece.source in last else 0
        known = started
        for _, bits in told:
            known |= bits
        for one, edge in needed[place]:
            if not known >> one & 1:
                raise ScheduleError(
                    f"nothing makes {piece} wait for {pieces[one]}, with which it shares the edge "
                    f"{edge[0]}→{edge[1]}"
                )
        for one, _ in told:
            ways = sum(bits >> one & 1 for _, bits in told) + (started >> one & 1)
            require(ways == 1, f"{piece} waits for {pieces[one]} anyway; its token is superfluous")
        arrived.append(known)
        last[piece.source] = place


def _check_times(
    topology: Topology,
    schedule: PatternSchedule,
    pieces: list[Piece],
    paths: dict[tuple[int, int], list[Edge]],
    carries: dict[Edge, tuple[int, Fraction]],
) -> None:
    """Check the bound and the time, which are computed anew."""
    _require_close("bound", schedule.bound_seconds, _bound(topology, schedule.sizes, paths))
    _require_close("time", schedule.seconds, _time(schedule.sizes, pieces, paths, carries))


def times_of(
    topology: Topology,
    sizes: tuple[tuple[int, ...], ...],
    phases: tuple[tuple[Piece, ...], ...],
) -> tuple[float, float]:
    """Return how long an order's data takes, and at least takes in any order, in seconds.

    Raises:
        ScheduleError: a piece is none of the pattern.
    """
    paths = _paths(topology, sizes)
    pieces = list(chain.from_iterable(phases))
    for piece in pieces:
        require(piece[:2] in paths and piece.parts > 0, f"{piece} is none of the pattern")
    return _time(sizes, pieces, paths, _carries(topology)), _bound(topology, sizes, paths)


def _bound(
    topology: Topology,
    sizes: tuple[tuple[int, ...], ...],
    paths: dict[tuple[int, int], list[Edge]],
) -> float:
    loads: Counter[Edge] = Counter()
    for (u, v), path in paths.items():
        for edge in path:
            loads[edge] += sizes[u][v]
    rates = topology.rates
    shares = (Fraction(8 * load, rates[e]) for e, load in loads.items() if e in rates)
    return float(max(shares, default=0))


def _time(
    sizes: tuple[tuple[int, ...], ...],
    pieces: list[Piece],
    paths: dict[tuple[int, int], list[Edge]],
    carries: dict[Edge, tuple[int, Fraction]],
) -> float:
    ends: dict[Edge, list[float]] = {}
    latest = 0.0
    for piece in pieces:
        path = paths[piece[:2]]
        start = 0.0
        for edge in path:
            own, count = ends.setdefault(edge, []), carries[edge][0]
            start = max(start, own[-count]) if len(own) >= count else start
        size = sizes[piece.source][piece.destination]
        length = size * (piece.part + 1) // piece.parts - size * piece.part // piece.parts
        end = start + 8 * length / float(min(carries[edge][1] for edge in path))
        for edge in path:
            ends[edge].append(end)
        latest = max(latest, end)
    return latest


def _require_close(what: str, said: float, found: float) -> None:
    require(
        isclose(said, found, rel_tol=1e-9, abs_tol=1e-15),
        f"the {what} is {found:.9g} s, not {said:.9g} s",
    )
