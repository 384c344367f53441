"""``python -m docs.tools.bench_tuning``: do parts, keep what they bring, write the page.

In the lab it needs a machine on which nothing else runs. What was measured is kept, so it may be
stopped at any time, and started again with the same words. Exits with 75 if the time is over
before a part is done.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.bench_tuning.by_model import Modelled
from docs.tools.bench_tuning.in_lab import InLab
from docs.tools.bench_tuning.page import PAGE, page
from docs.tools.bench_tuning.plan import CATALOGUE, LAB, MODEL, PARTS, Setting
from docs.tools.bench_tuning.results import (
    Result,
    read_results,
    result_of,
    with_result,
    write_results,
)
from docs.tools.bench_tuning.runs import Clock, OutOfTime
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
    for setting in () if asked.page_only else _settings(asked):
        try:
            values = _values(setting, clock, asked.output)
        except OutOfTime:
            print(f"{_name(setting)}: not done yet; start it again", file=sys.stderr)
            status = AGAIN
        except subprocess.CalledProcessError as error:
            # It has said why on standard error; what was measured is kept.
            return int(error.returncode)
        except StagegenError as error:
            print(f"{_name(setting)}: {error}", file=sys.stderr)
            return error.exit_status
        except KeyboardInterrupt:
            print("stopped; what was measured is kept: go on likewise", file=sys.stderr)
            return 130
        else:
            found = _keep(found, result_of(setting, values))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    return status


def _values(setting: Setting, clock: Clock, output: Path | None) -> dict[str, Any]:
    if setting.source == MODEL:
        return Modelled(setting).result()
    return InLab(setting, clock, output).result()


def _keep(found: Sequence[Result], new: Result) -> tuple[Result, ...]:
    """Print a result, and keep it with the others."""
    print(f"{new.part} of the {new.source}, {new.cluster}: {new.values}", flush=True)
    together = with_result(found, new)
    write_results(together)
    return together


def _name(setting: Setting) -> str:
    return f"{setting.part} of the {setting.source}"


def _settings(asked: argparse.Namespace) -> list[Setting]:
    source = MODEL if asked.model else LAB
    return [
        Setting.of(part, source, asked.cluster, asked.collectives, asked.sizes, asked.seed)
        for part in asked.parts or PARTS
    ]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m docs.tools.bench_tuning", description=__doc__)
    parser.add_argument(
        "--model", action="store_true", help="on a cluster whose true times are known, in seconds"
    )
    for name, known, default in (
        ("parts", tuple(PARTS), "all"),
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
        help="folder of the lab's tunings; default: below generated/bench-tuning-CLUSTER",
    )
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    return parser.parse_args()


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
