"""``python -m docs.tools.experiments GROUP``: measure what is left, write the pages, judge.

Needs a machine on which nothing else runs. What was measured is kept, so it may be stopped and
started again. Exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from docs.tools.experiments import results
from docs.tools.experiments.experiment import Experiment
from docs.tools.experiments.page import with_report
from docs.tools.experiments.registry import find_experiments, find_groups
from stagegen.generate.write import write_file


def main() -> int:
    """Return the exit status."""
    arguments = _arguments()
    every = find_experiments(arguments.group)
    top = results.top_of(arguments.group)
    chosen = [one for one in every.values() if _is_of(one.name, arguments.parts)]
    if not chosen:
        print(f"no such experiment; there are {', '.join(every)}", file=sys.stderr)
        return 2
    if arguments.list:
        _list(chosen, top)
        return 0
    try:
        if not arguments.page_only:
            _measure(chosen, arguments, top)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)  # it has said why; what was measured is kept
    except KeyboardInterrupt:
        print("stopped; what was measured is kept: go on likewise", file=sys.stderr)
        return 130
    if not arguments.no_page:
        write_pages(chosen, top)
    return 0 if judge(chosen, top) else 1


def write_pages(experiments: Sequence[Experiment], top: Path) -> None:
    """Put the reports of experiments with results into their pages; write their pictures."""
    for one in experiments:
        if known := results.found(one, top):
            text = one.page.read_text(encoding="utf-8")
            one.page.write_text(with_report(text, one.name, one.report(known)), encoding="utf-8")
            for file, svg in one.pictures(known).items():
                write_file(file, svg)


def judge(experiments: Sequence[Experiment], top: Path) -> bool:
    """Print each target beside what was measured; return whether none is missed."""
    missed = False
    for one in experiments:
        for target in one.targets(results.found(one, top)):
            print(f"{one.name}: {target}")
            missed |= target.met is False
    return not missed


def _measure(experiments: Sequence[Experiment], arguments: argparse.Namespace, top: Path) -> None:
    begin = time.monotonic()
    for one in experiments:
        for point in one.points:
            if not _is_of(point, arguments.points):
                continue
            if results.is_measured(one, point, top) and not arguments.anew:
                continue
            if time.monotonic() - begin > arguments.seconds:
                return
            print(f"{one.name}: {point}", file=sys.stderr, flush=True)
            results.measure(one, point, top)


def _list(experiments: Sequence[Experiment], top: Path) -> None:
    for one in experiments:
        print(f"{one.name}: {one.what}")
        for point in one.points:
            print(f"  {'done' if results.is_measured(one, point, top) else '    '} {point}")


def _is_of(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch(name, pattern) for pattern in patterns)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m docs.tools.experiments", description=__doc__)
    parser.add_argument("group", choices=find_groups(), help="which experiments")
    for option, what in (
        ("--parts", "experiments, by patterns; all if empty"),
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
