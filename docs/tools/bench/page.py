"""docs/benchmark.md and the README's table, as text made from the results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from docs.tools.bench.guidelines import TOLERANCE, Verdict
from docs.tools.bench.plan import CLUSTERS, FIXED, KIB, LONGEST, MIB, RATE
from docs.tools.bench.results import Result
from docs.tools.bench.rows import Row
from docs.tools.bench.targets import targets
from stagegen.topology import Topology

HEAD = """# Benchmark

Every row that `make bench` compares (`docs/tools/bench/`), in the lab: on its fixed cluster, and on
three that are drawn at random by a seed, the first ones that give two, three and four switches
(`docs/tools/bench/plan.py`). TCP's congestion control is cubic, Linux's default, or bbr. This page,
and the picture and the table of the README, are made by it.

Each collective is tuned by itself, then native and tuned calls are timed in turn in one job; the
README says how, and on what. Times are medians; [message sizes](interfaces.md#message-sizes) are in
bytes; the bound is the payload's time on the most loaded link. An alltoall of 256 KiB is not tuned:
the rule of 64 KiB serves it. What was not measured yet is not here.

- *AAPC against the rest*: the best AAPC routines by the tuning's log and the best that know no
  topology, native included, timed in turn in one job; the best of either by its median, and the
  median of the ratios of pairs with its 95 % interval.
- *Guidelines*: no collective should take longer than others that do the same together (Träff, Gropp
  and Thakur 2010; the list is `docs/tools/bench/guidelines.py`). Those are listed that do so by
  more than 3 % and by more than the noise: the intervals of both sides are apart.
"""

#: The points of the fixed cluster that the README shows.
README_POINTS = frozenset(
    {
        *((name, 64 * KIB) for name in ("allgather", "gather", "scatter")),
        *((name, MIB) for name in ("allreduce", "bcast", "reduce", "reduce_scatter")),
        *(("alltoall", size) for size in (32 * KIB, 64 * KIB, LONGEST)),
        ("alltoallv", 64 * KIB),
        ("barrier", 0),
    }
)

#: Guidelines that cannot be compared are named where they are no more than this.
NAMED_MOST = 5

#: Between these lines of the README is its table.
BEGIN, END = "<!-- table of make bench -->", "<!-- end of the table -->"


def page(results: Sequence[Result]) -> str:
    """Return docs/benchmark.md."""
    sections = [HEAD]
    for cluster in CLUSTERS.values():
        own = [result for result in results if result.cluster == cluster.name]
        if own:
            sections += [f"## {cluster.name}\n", describe(cluster.topology()), f"{table(own)}\n"]
            sections += [*_families(own), *_guidelines(own), *_overheads(own)]
    sections += ["## Targets\n", *_targets(results)]
    return "\n".join(sections)


def describe(topology: Topology) -> str:
    """Return a sentence about a cluster."""
    on = ", ".join(f"{switch.name} {len(switch.hosts)}" for switch in topology.switches)
    links = ", ".join("–".join(link.ends) for link in topology.links)
    return (
        f"{len(topology.hosts)} hosts on {len(topology.switches)} switches ({on}), links {links}, "
        f"{RATE // 10**6} Mbit/s.\n"
    )


def readme(text: str, results: Sequence[Result]) -> str:
    """Return the README with its table made anew."""
    fixed = [result for result in results if result.cluster == FIXED.name]
    between = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
    return between.sub(lambda _: f"{BEGIN}\n{table(fixed, README_POINTS)}\n{END}", text)


def table(results: Sequence[Result], points: frozenset[tuple[str, int]] | None = None) -> str:
    """Return a Markdown table of one cluster, times in milliseconds.

    Args:
        results: one for each congestion control.
        points: collectives and sizes to show; all if None.
    """
    titles = ["collective", "bytes", "bound ms"]
    for result in results:
        titles += [f"{result.congestion}: MPICH ms", "libcoll ms", "speed-up", "× bound", "by"]
    known = [{(row.collective, row.size): row for row in result.rows} for result in results]
    every = sorted({point for one in known for point in one if points is None or point in points})
    rules = ["---", "---:", "---:", *["---:", "---:", "---:", "---:", "---"] * len(results)]
    lines = [_line(titles), "|" + "|".join(rules) + "|"]
    for point in every:
        rows = [one.get(point) for one in known]
        bound = next(row.bound for row in rows if row)
        cells = [cell for row in rows for cell in _cells(row)]
        lines.append(_line([point[0], str(point[1]), _milliseconds(bound), *cells]))
    return "\n".join(lines)


def _cells(row: Row | None) -> list[str]:
    if row is None:
        return ["–"] * 5
    over = f"{row.over_bound:.2f}" if row.over_bound else "–"
    times = [_milliseconds(row.native.median), _milliseconds(row.tuned.median)]
    return [*times, f"{row.speedup:.2f}", over, row.routine]


def _milliseconds(seconds: float | None) -> str:
    return f"{1e3 * seconds:.4g}" if seconds else "–"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _families(results: Sequence[Result]) -> Iterator[str]:
    lines = [
        _line([result.congestion, str(one.size), one.aapc.routine, f"{one.aapc.over_bound:.2f}",
               one.unaware.routine, f"{one.unaware.over_bound:.2f}",
               f"{one.ratio.median:.3f} [{one.ratio.low:.3f}, {one.ratio.high:.3f}]"])
        for result in results
        for one in result.meetings
    ]  # fmt: skip
    if lines:
        yield "### AAPC against the rest\n"
        titles = ["", "bytes", "AAPC", "× bound", "no topology", "× bound", "AAPC over the other"]
        yield _line(titles)
        yield "|---|---:|---|---:|---|---:|---:|"
        yield "\n".join(lines) + "\n"


def _guidelines(results: Sequence[Result]) -> Iterator[str]:
    verdicts = [(result, result.guidelines()) for result in results]
    if any(verdict.compared for _, verdict in verdicts):
        yield "### Guidelines\n"
        for result, verdict in verdicts:
            yield from _verdict(result.congestion, verdict)


def _verdict(congestion: str, verdict: Verdict) -> Iterator[str]:
    few = 0 < len(verdict.missing) <= NAMED_MOST
    named = f": {', '.join(verdict.missing)}" if few else ""
    yield (
        f"{congestion}: {verdict.compared} comparisons, {len(verdict.broken)} broken by more than "
        f"{TOLERANCE:.0%} and the noise; {len(verdict.missing)} guidelines not comparable "
        f"here{named}.\n"
    )
    if verdict.broken:
        yield _line(["guideline", "bytes", "left ms", "right ms", "by"])
        yield "|---|---:|---:|---:|---:|"
        for one in verdict.broken:
            left = one.left.tuned
            yield _line(
                [
                    one.guideline,
                    str(one.size),
                    _interval(left.median, left.low, left.high),
                    _interval(*one.right_seconds),
                    f"{one.ratio - 1:.1%}",
                ]
            )
        yield ""


def _interval(median: float, low: float, high: float) -> str:
    return f"{_milliseconds(median)} [{_milliseconds(low)}, {_milliseconds(high)}]"


def _overheads(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if result.overheads:
            worst = max(result.overheads, key=lambda name: result.overheads[name])
            yield (
                "A call that goes native, on one rank and without data, takes at most "
                f"{result.overheads[worst]:.1f} ns more ({worst})\n"
                "than the direct call: `make overhead` in a generated folder.\n"
            )
            return


def _targets(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        yield f"{result.name}:\n"
        yield "\n".join(f"- {target}" for target in targets(result)) + "\n"
