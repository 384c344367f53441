"""``python -m docs.tools.bench``: measure what is left to be measured, write the pages, judge.

Needs a machine on which nothing else runs. What was measured is kept, so it may be stopped and
started again, or run part by part, on several machines. Exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from docs.tools.bench.page import page, readme
from docs.tools.bench.parts import Tuning, keep_overhead
from docs.tools.bench.picture import plot
from docs.tools.bench.plan import CATALOGUE, CLUSTERS, CONGESTION, FIXED
from docs.tools.bench.results import Result, results
from docs.tools.bench.targets import targets
from stagegen.errors import StagegenError

PAGE, PICTURE, README = Path("docs/benchmark.md"), Path("docs/benchmark.svg"), Path("README.md")


def main() -> int:
    """Return the exit status."""
    arguments = _arguments()
    if not arguments.page_only:
        for tuning in _tunings(arguments):
            try:
                tuning.measure(arguments.anew)
                if tuning.cluster is FIXED:
                    keep_overhead(tuning, arguments.anew)
            except subprocess.CalledProcessError as error:
                # It has said why on standard error; what was measured is kept.
                return int(error.returncode)
            except StagegenError as error:
                print(f"error: {error}", file=sys.stderr)
                return error.exit_status
            except KeyboardInterrupt:
                print("stopped; what was measured is kept: go on likewise", file=sys.stderr)
                return 130
    found = results()
    if not found:
        print("nothing has been measured yet", file=sys.stderr)
        return 1
    if not arguments.no_page:
        _write(found)
    return 0 if judge(found) else 1


def judge(found: Sequence[Result]) -> bool:
    """Print each target beside what was measured; return whether none is missed."""
    missed = False
    for result in found:
        print(f"\n{result.name}")
        for target in targets(result):
            print(f"  {target}")
            missed |= target.met is False
    return not missed


def _write(found: Sequence[Result]) -> None:
    """Write docs/benchmark.md, and of the fixed cluster the README's table and its picture."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    fixed = [result for result in found if result.cluster == FIXED.name]
    if fixed:
        README.write_text(readme(README.read_text(encoding="utf-8"), fixed), encoding="utf-8")
        if missing := _without(fixed):
            print(f"the picture stays: nothing is known of {', '.join(missing)}", file=sys.stderr)
        else:
            plot(fixed, str(PICTURE))


def _without(found: Sequence[Result]) -> list[str]:
    """Return the collectives of the fixed cluster that no result has."""
    known = {row.collective for result in found for row in result.rows}
    return [name for name in FIXED.collectives if name not in known]


def _tunings(arguments: argparse.Namespace) -> list[Tuning]:
    """Return what is asked for: of each cluster its own collectives, unless others are named."""
    return [
        Tuning(CLUSTERS[cluster], congestion, tuple(sorted(collectives)))
        for cluster in arguments.clusters or CLUSTERS
        for collectives in [set(arguments.collectives or CLUSTERS[cluster].collectives)]
        for congestion in arguments.congestion or CONGESTION
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m docs.tools.bench", description=__doc__)
    for name, known in (
        ("clusters", tuple(CLUSTERS)),
        ("congestion", CONGESTION),
        ("collectives", CATALOGUE.collectives),
    ):
        parser.add_argument(
            f"--{name}",
            type=partial(_names, known),
            default=(),
            metavar="A,B",
            help=f"of {', '.join(known)}; all, or a cluster's own, if empty",
        )
    parser.add_argument("--anew", action="store_true", help="measure again what is there")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    parser.add_argument("--no-page", action="store_true", help="write no page, only judge")
    return parser.parse_args()


def _names(known: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the names of a list, which may be empty."""
    names = tuple(filter(None, text.replace(" ", ",").split(",")))
    if unknown := set(names) - set(known):
        raise argparse.ArgumentTypeError(f"unknown {', '.join(sorted(unknown))}")
    return names


if __name__ == "__main__":
    sys.exit(main())
