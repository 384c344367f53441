"""The results in docs/benchmark.md and the README's table, made anew between their marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from docs.tools.bench.guidelines import TOLERANCE, Verdict
from docs.tools.bench.plan import CLUSTERS, FIXED, KIB, LONGEST, MIB, RATE
from docs.tools.bench.results import Result
from docs.tools.bench.rows import Row
from docs.tools.bench.targets import SPEEDUP_LEAST, targets
from stagegen.topology import Topology

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

#: Between these lines of docs/benchmark.md are the results; the rest is written by hand.
PAGE_BEGIN, PAGE_END = "<!-- begin of results -->", "<!-- end of results -->"


def page(text: str, results: Sequence[Result]) -> str:
    """Return docs/benchmark.md with its results made anew."""
    return _between(text, PAGE_BEGIN, sections(results), PAGE_END)


def sections(results: Sequence[Result]) -> str:
    """Return a section for each cluster, what was promised, and what is left of an earlier run."""
    found = []
    for cluster in CLUSTERS.values():
        own = [result for result in results if result.cluster == cluster.name]
        if own:
            found += [f"## {cluster.name}\n", describe(cluster.topology()), f"{table(own)}\n"]
            found += [*_families(own), *_guidelines(own), *_slow(own), *_overheads(own)]
    found += ["## Targets\n", *_targets(results), *_earlier(results)]
    return "\n".join(found).rstrip("\n")


def describe(topology: Topology) -> str:
    """Return a sentence about a cluster."""
    on = ", ".join(f"{switch.name} {len(switch.hosts)}" for switch in topology.switches)
    links = ", ".join("–".join(link.ends) for link in topology.links)
    return (
        f"{len(topology.hosts)} hosts on {len(topology.switches)} switches ({on}), links {links}, "
        f"{RATE // 10**6} Mbit/s.\n"
    )


def readme(text: str, results: Sequence[Result]) -> str:
    """Return the README with its table made again."""
    fixed = [result for result in results if result.cluster == FIXED.name]
    return _between(text, BEGIN, summary(fixed), END)


def _between(text: str, begin: str, new: str, end: str) -> str:
    """Return a text with something new between two of its lines.

    Raises:
        ValueError: it lacks these lines.
    """
    between = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if not between.search(text):
        raise ValueError(f"the page has no lines {begin} and {end}")
    return between.sub(lambda _: f"{begin}\n{new}\n{end}", text)


def table(results: Sequence[Result]) -> str:
    """Return a Markdown table of one cluster, times in milliseconds.

    Args:
        results: one for each congestion control.
    """
    titles = ["collective", "bytes", "bound ms"]
    rules = ["---", "---:", "---:", *["---:", "---:", "---:", "---:", "---"] * len(results)]
    for result in results:
        titles += [f"{result.congestion}: MPICH ms", "libcoll ms", "speed-up", "× bound", "by"]
    lines = [_line(titles), "|" + "|".join(rules) + "|"]
    for (collective, size), rows in _by_point(results):
        bound = next(row.bound for row in rows if row)
        cells = [cell for row in rows for cell in _cells(row)]
        lines.append(_line([collective, str(size), _milliseconds(bound), *cells]))
    return "\n".join(lines)


def summary(results: Sequence[Result]) -> str:
    """Return the README's table: what one cluster gains, and how near the bound it is.

    Args:
        results: one for each congestion control.
    """
    titles = ["collective", "bytes"]
    for result in results:
        titles += [f"{result.congestion}: speed-up", "× bound"]
    lines = [_line(titles), "|" + "|".join(["---", *["---:"] * (len(titles) - 1)]) + "|"]
    for (collective, size), rows in _by_point(results):
        if (collective, size) in README_POINTS:
            cells = [cell for row in rows for cell in _gain(row)]
            lines.append(_line([collective, str(size), *cells]))
    return "\n".join(lines)


def _by_point(
    results: Sequence[Result],
) -> Iterator[tuple[tuple[str, int], list[Row | None]]]:
    """Yield each collective and size that was measured, with its row of each result."""
    known = [{(row.collective, row.size): row for row in result.rows} for result in results]
    for point in sorted({point for one in known for point in one}):
        yield point, [one.get(point) for one in known]


def _cells(row: Row | None) -> list[str]:
    if row is None:
        return ["–"] * 5
    times = [_milliseconds(row.native.median), _milliseconds(row.tuned.median)]
    return [*times, *_gain(row), row.routine]


def _gain(row: Row | None) -> list[str]:
    if row is None:
        return ["–"] * 2
    return [f"{row.speedup:.2f}", f"{row.over_bound:.2f}" if row.over_bound else "–"]


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
    if verdict.suspects:
        yield _line(["guideline", "bytes", "left ms", "right ms", "by", "again",
                     "right below the bound"])  # fmt: skip
        yield "|---|---:|---:|---:|---:|---:|---|"
        for one in sorted(verdict.suspects, key=lambda one: not one.is_broken):
            left = one.left.tuned
            yield _line(
                [
                    one.guideline,
                    str(one.size),
                    _interval(left.median, left.low, left.high),
                    _interval(*one.right_seconds),
                    f"{one.ratio - 1:.1%}",
                    _again([ratio - 1 for ratio in one.launches], ".1%")
                    + ("" if one.is_broken else ", cleared"),
                    "yes" if one.is_below_bound else "",
                ]
            )
        yield ""


def _slow(results: Sequence[Result]) -> Iterator[str]:
    lines = [
        _line([result.congestion, row.collective, str(row.size), row.routine,
               f"{row.speedup:.3f}", _again(row.launches.speedups if row.launches else (), ".3f")])
        for result in results
        for row in sorted(result.rows, key=lambda row: row.judged_speedup)
        if min(row.speedup, row.judged_speedup) < SPEEDUP_LEAST
    ]  # fmt: skip
    if lines:
        yield f"### Speed-ups below {SPEEDUP_LEAST} in one job or in further launches\n"
        yield _line(["", "collective", "bytes", "by", "in one job", "again"])
        yield "|---|---|---:|---|---:|---:|"
        yield "\n".join(lines) + "\n"


def _again(found: Sequence[float], form: str) -> str:
    """Return the median of further launches with the least and the greatest."""
    if not found:
        return "–"
    middle, low, high = (f"{one:{form}}" for one in (median(found), min(found), max(found)))
    return f"{middle} [{low}, {high}]"


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


def _earlier(results: Sequence[Result]) -> Iterator[str]:
    """Yield the rows of an earlier run: a table for each cluster and congestion control."""
    left = [replace(result, rows=result.earlier) for result in results if result.earlier]
    if left:
        yield "## Other collectives: an earlier run\n"
    for result in left:
        yield (
            f"`make bench` has not measured these anew. The rows are of {result.cluster} with "
            f"{result.congestion}, from before the lab kept CPUs awake.\n"
        )
        yield f"{table([result])}\n"
