"""``python -m docs.tools.bench_tuning``: run parts, keep their results, write the page.

In the lab it needs a machine on which nothing else runs; faults and launchers are tried on any.
What was measured is kept, so it may be stopped at any time, and the same command goes on.
Exits with 75 if the time is over before a part is done.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from docs.tools.bench_tuning.by_model import Modelled
from docs.tools.bench_tuning.in_lab import InLab
from docs.tools.bench_tuning.page import PAGE, page
from docs.tools.bench_tuning.plan import CATALOGUE, LAB, MODEL, PARTS, TRIALS, Setting
from docs.tools.bench_tuning.results import (
    Result,
    read_results,
    result_of,
    with_result,
    write_results,
)
from docs.tools.bench_tuning.runs import Clock, OutOfTime
from docs.tools.bench_tuning.trials import try_all
from stagegen.errors import StagegenError
from stagegen.topology import parse_size

#: The exit status of a part that is to be started again, as in sysexits.h.
AGAIN = 75


def main() -> int:
    """Return the exit status."""
    asked = _arguments()
    clock = Clock.of(asked.limit)
    found = read_results()
    status = 0
    for name, make in () if asked.page_only else _work(asked, clock):
        try:
            result = make()
        except OutOfTime:
            print(f"{name}: not done yet; start it again", file=sys.stderr)
            status = AGAIN
        except subprocess.CalledProcessError as error:
            # It has said why on standard error; what was measured is kept.
            return int(error.returncode)
        except StagegenError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return error.exit_status
        except KeyboardInterrupt:
            print("stopped; what was measured is kept: go on likewise", file=sys.stderr)
            return 130
        else:
            found = _keep(result)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    return status


def _work(asked: argparse.Namespace, clock: Clock) -> Iterator[tuple[str, Callable[[], Result]]]:
    """Yield what is to be done, each with a name for people."""
    source = MODEL if asked.model else LAB
    every = PARTS if asked.model else {**PARTS, **TRIALS}
    for part in asked.parts or every:
        if part in TRIALS:
            yield part, partial(try_all, part, clock, asked.output, asked.anew)
        else:
            setting = Setting.of(
                part, source, asked.cluster, asked.collectives, asked.sizes, asked.seed
            )
            yield f"{part} of the {source}", partial(_measured, setting, clock, asked.output)


def _measured(setting: Setting, clock: Clock, output: Path | None) -> Result:
    if setting.source == MODEL:
        return result_of(setting, Modelled(setting).result())
    return result_of(setting, InLab(setting, clock, output).result())


def _keep(new: Result) -> tuple[Result, ...]:
    """Print a result, and keep it with the others, which may be newer than this run."""
    print(f"{new.part}, {new.source}, {new.cluster}: {new.values}", flush=True)
    together = with_result(read_results(), new)
    write_results(together)
    return together


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m docs.tools.bench_tuning", description=__doc__)
    parser.add_argument(
        "--model", action="store_true", help="on a cluster whose true times are known, in seconds"
    )
    for name, known, default in (
        ("parts", (*PARTS, *TRIALS), "all; with --model those that are not tried for real"),
        ("collectives", CATALOGUE.collectives, "all"),
    ):
        parser.add_argument(
            f"--{name}",
            type=partial(_names, known),
            default=(),
            metavar="A,B",
            help=f"of {', '.join(known)}; default: {default}",
        )
    parser.add_argument(
        "--cluster", metavar="NAME", help="of topologies/, or a topology file; default: each part's"
    )
    parser.add_argument("--sizes", type=_sizes, default=(), metavar="A,B", help="of messages")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn; default: 1")
    parser.add_argument(
        "--limit",
        type=float,
        metavar="SECONDS",
        help="stop after so long; what was measured is kept",
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="folder of tunings; default: below generated/bench-tuning-CLUSTER, or -trials",
    )
    parser.add_argument(
        "--anew", action="store_true", help="try again what is kept of faults and launchers"
    )
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    if asked.model and (real := [part for part in asked.parts if part in TRIALS]):
        parser.error(f"{', '.join(real)}: tried for real only, so without --model")
    return asked


def _names(known: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the names of a list, which may be empty."""
    names = tuple(filter(None, text.replace(" ", ",").split(",")))
    if unknown := set(names) - set(known):
        raise argparse.ArgumentTypeError(f"unknown {', '.join(sorted(unknown))}")
    return names


def _sizes(text: str) -> tuple[int, ...]:
    """Return the sizes of a list, ascending; the list may be empty."""
    return tuple(sorted({parse_size(one) for one in text.replace(" ", ",").split(",") if one}))


if __name__ == "__main__":
    sys.exit(main())
