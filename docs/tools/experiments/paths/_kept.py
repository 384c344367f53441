"""What is kept of a trace: tables, and what the figures draw. Times of figures are in µs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from stagegen.inspection.findings import RankStages, TreeFindings
from stagegen.inspection.stages import MESSAGE, NETWORK, ROOT, UP, Stage
from stagegen.report.inspection_page import RankLine

_US = 1e6


def tables_of(tree: TreeFindings) -> dict[str, Any]:
    """Return Tables 1 to 4: orders, stages of the slowest rank, parts by messages between hosts."""
    busiest, slowest = tree.busiest, tree.slowest
    ends = {"fastest": tree.fastest, "slowest": tree.slowest}
    return {
        "orders": [] if busiest is None else busiest.order_table(),
        "stages": {title: spread.to_json() for title, spread in slowest.spreads()},
        "ends": _parts(ends),
        "parts": _parts(tree.by_messages()),
    }


def _parts(ranks: dict[str, RankStages]) -> dict[str, Any]:
    return {name: {"rank": rank.rank, **rank.parts()} for name, rank in ranks.items()}


def drawn_of(tree: TreeFindings) -> dict[str, Any]:
    """Return what the figures need: lines of the time map, the fastest first, and departures."""
    lines = map(RankLine.of, tree.by_total)
    return {
        "hosts": list(tree.series.hosts),
        "lines": [
            [
                one.rank,
                round(_US * one.seconds, 2),
                [(round(_US * x, 2), round(y, 4)) for x, y in one.points],
            ]
            for one in lines
        ],
        "departures": departures_of(tree),
    }


def departures_of(tree: TreeFindings) -> dict[str, list[float]]:
    """Return when those that wait for a subtree's result depart, from the first to the last.

    Each is the mean over the calls, in µs from when the subtree has the result: its up latencies
    and departure waits (Figs. 10, 16).

    - host: the ranks of the root's host in its host subtree, with messages within the host.
    - root: the hosts, in the cluster-root subtree without messages, as the paper has no proxies.
    """
    hosts = tree.series.hosts
    roots = Counter({node.host: len(node.core) for node in tree.by_size if node.core})
    if not roots:
        return {"host": [], "root": []}
    ((host, _),) = roots.most_common(1)
    of_host = [one for one in tree.ranks.values() if hosts[one.rank] == host]
    firsts = [tree.ranks[hosts.index(name)] for name in dict.fromkeys(hosts)]
    return {
        "host": _by_place([(one, _ways_up(one)[1]) for one in of_host]),
        "root": _by_place(
            [(one, [s for s in _ways_up(one)[0] if s.what != MESSAGE]) for one in firsts]
        ),
    }


def _ways_up(one: RankStages) -> tuple[list[Stage], list[Stage]]:
    """Return the stages of the way up in the cluster-root subtree, and those after it."""
    ups = [stage for stage in one.stages if stage.way == UP]
    shared = [i for i, stage in enumerate(ups) if stage.part in (ROOT, NETWORK)]
    end = shared[-1] + 1 if shared else 0
    return ups[:end], ups[end:]


def _by_place(ways: Sequence[tuple[RankStages, Sequence[Stage]]]) -> list[float]:
    """Return the mean times of the first, the second … of some ways, in µs."""
    times = [
        np.sum([one.stages[stage] for stage in way], axis=0) if way else np.zeros(one.calls)
        for one, way in ways
    ]
    placed = np.sort(np.array(times), axis=0).mean(axis=1)
    return [round(_US * float(time), 2) for time in placed]
