"""``python -m docs.tools.bench_arrival``: measure what is left, write the pages, judge.

Needs a machine on which nothing else runs. What was measured is kept, so it may be stopped and
started again. Exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch

from docs.tools.bench_arrival import results
from docs.tools.bench_arrival.experiment import Experiment
from docs.tools.bench_arrival.page import with_report
from docs.tools.bench_arrival.registry import find_experiments


def main() -> int:
    """Return the exit status."""
    every = find_experiments()
    arguments = _arguments(every)
    chosen = [one for one in every.values() if _is_of(one.name, arguments.parts)]
    if not chosen:
        print(f"no such experiment; there are {', '.join(every)}", file=sys.stderr)
        return 2
    if arguments.list:
        _list(chosen)
        return 0
    try:
        if not arguments.page_only:
            _measure(chosen, arguments)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)  # it has said why; what was measured is kept
    except KeyboardInterrupt:
        print("stopped; what was measured is kept: go on likewise", file=sys.stderr)
        return 130
    if not arguments.no_page:
        write_pages(chosen)
    return 0 if judge(chosen) else 1


def write_pages(experiments: Sequence[Experiment]) -> None:
    """Put the reports of experiments with results into their pages."""
    for one in experiments:
        if known := results.found(one):
            text = one.page.read_text(encoding="utf-8")
            one.page.write_text(with_report(text, one.name, one.report(known)), encoding="utf-8")


def judge(experiments: Sequence[Experiment]) -> bool:
    """Print each target beside what was measured; return whether none is missed."""
    missed = False
    for one in experiments:
        for target in one.targets(results.found(one)):
            print(f"{one.name}: {target}")
            missed |= target.met is False
    return not missed


def _measure(experiments: Sequence[Experiment], arguments: argparse.Namespace) -> None:
    begin = time.monotonic()
    for one in experiments:
        for point in one.points:
            if not _is_of(point, arguments.points):
                continue
            if results.is_measured(one, point) and not arguments.anew:
                continue
            if time.monotonic() - begin > arguments.seconds:
                return
            print(f"{one.name}: {point}", file=sys.stderr, flush=True)
            results.measure(one, point)


def _list(experiments: Sequence[Experiment]) -> None:
    for one in experiments:
        print(f"{one.name}: {one.what}")
        for point in one.points:
            print(f"  {'done' if results.is_measured(one, point) else '    '} {point}")


def _is_of(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch(name, pattern) for pattern in patterns)


def _arguments(every: Mapping[str, Experiment]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m docs.tools.bench_arrival", description=__doc__)
    names = ", ".join(every)
    for option, what in (
        ("--parts", f"experiments, by patterns, of {names}; all if empty"),
        ("--points", "their points, by patterns; all if empty"),
    ):
        parser.add_argument(option, type=_patterns, default=(), metavar="A,B", help=what)
    parser.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        metavar="S",
        help="begin no further point after so many seconds",
    )
    parser.add_argument("--list", action="store_true", help="list experiments and their points")
    parser.add_argument("--anew", action="store_true", help="measure again what is there")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    parser.add_argument("--no-page", action="store_true", help="write no pages, only judge")
    return parser.parse_args()


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(pattern.strip() for pattern in text.split(",") if pattern.strip())


if __name__ == "__main__":
    sys.exit(main())
