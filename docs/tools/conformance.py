"""Makes `docs/conformance.md` from the totals of the last `make check-all`.

With the name of a log it takes the log's runs into `docs/conformance.json` and writes the page;
without, it writes the page again. With ``--check`` it says whether the page has these totals, and
exits with 1 if not.

A log has a line for each run of the check program: `tests/mpi/conformance.py` writes it where
`CONFORMANCE_LOG` names a file. A line says of which commit the run was, as a run may be made again
after a mend.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "conformance.md"
TOTALS = PAGE.with_suffix(".json")

#: The folders whose files are compiled in the runs.
COMPILED = ("templates", "drivers")

INTRODUCTION = """\
# Conformance

All {cases:,} calls gave the same bytes as the MPI library's own.
They were made in {runs} runs with {mpi}, at {revisions}.
`make check-all` makes them again, and with them this page (`docs/tools/conformance.py`).

A run compares every routine of a library, and its `MPI_` functions, with the MPI library's own. It
varies

- counts: 0, 1, odd ones, longer than a segment, and divisible by nothing,
- datatypes: plain types, and derived ones with gaps, permutations, structures and negative lower
  bounds; the two sides of a call may have different ones,
- operations: all predefined ones on all types that they are for, and operations of the check's own,
  some of which do not commute,
- roots, and `MPI_IN_PLACE` wherever it is allowed,
- communicators: `MPI_COMM_WORLD`, and others of other sizes and orders.

There are two levels:

- *Full* is every combination of a datatype, or of an operation of the check's own, with a length, a
  root and a place; all predefined operations have one length.
  - Up to 4 ranks, this holds for every value of a parameter, one parameter at a time. Above that,
    it holds for the default values, and other values get a quick check.
  - Communicators other than `MPI_COMM_WORLD` always get a quick check.
- *Quick* is a selection of these calls, another one for each number of ranks.

Where MPICH itself is wrong, results are compared with what the MPI standard says
(`drivers/trials.h` names these calls), and its functions are not compared with themselves.

MPI asks all ranks of a reduction for the same datatype. The check goes further: ranks may have
datatypes of one signature with other gaps. MPICH's own reduce and allreduce do these calls between
hosts. Where ranks share memory, MPICH 4.3.2 gave wrong results if the operation commutes: after the
first five calls on a communicator, a rank reads the data of others with its own layout
([MPICH's issue 6555](https://github.com/pmodels/mpich/issues/6555)). `tests/mpi/mixed_layouts.c`
shows it without any of our code. So the check leaves out these calls where ranks share memory. All
runs of this page make them, as their ranks exchange messages through TCP.

In the totals below, ranks call together. The tests also run the check with random delays of up to
1 to 5 ms before each rank's call (`--delays` of a built check; `DELAYED` and `NAMED` in
`tests/mpi/test_conformance.py`). These runs compare the routines that watch arrivals, those of
allreduce that are made for late ranks, and all routines of one library. The totals leave them out.
"""


@dataclass(frozen=True)
class Section:
    """A table of the page: some of the runs, and what it says of them."""

    title: str
    text: str
    has: Callable[[dict[str, Any]], bool]


def _is_plain(run: dict[str, Any]) -> bool:
    return bool(run["way"] == "plain")


SECTIONS = (
    Section(
        "The whole cluster",
        "A build for each number of ranks, one on each host; algorithms made for the topology\n"
        "take part.",
        lambda run: _is_plain(run) and run["ranks"] == run["cluster"] and run["slots"] == 1,
    ),
    Section(
        "Some hosts of a cluster",
        "The build for a larger cluster, on a part of its hosts.",
        lambda run: _is_plain(run) and run["ranks"] != run["cluster"],
    ),
    Section(
        "Several ranks on a host",
        "As many as the table says, fewer on the last host; hierarchical algorithms take part.",
        lambda run: _is_plain(run) and run["slots"] > 1,
    ),
    Section(
        "Sanitizers",
        "AddressSanitizer with its search for leaks, and UndefinedBehaviorSanitizer, in routines,\n"
        "runtime and check: `make check SANITIZE=address,undefined` in a generated folder.",
        lambda run: run["way"] == "address, undefined",
    ),
    Section(
        "Synchronous sends",
        "Every message of the routines waits for its receive: `make check SYNCHRONOUS=1`.",
        lambda run: run["way"] == "synchronous",
    ),
    Section(
        "Synchronous sends under sanitizers",
        "Both at once: `make check SANITIZE=address,undefined SYNCHRONOUS=1`.",
        lambda run: run["way"] == "address, undefined; synchronous",
    ),
)


def order(run: dict[str, Any]) -> tuple[Any, ...]:
    """Return where a run is in the totals."""
    return (run["way"], run["slots"], run["cluster"], run["ranks"], run["level"])


def totals(lines: Iterable[str]) -> dict[str, Any]:
    """Return the totals of a log; of runs that were made twice, the last one counts."""
    runs = {order(run): run for run in map(json.loads, lines)}
    libraries = {run.pop("mpi") for run in runs.values()}
    counted = Counter(_revision_of(run) for run in runs.values())
    revisions = [text for text, _ in counted.most_common()]
    made = ({**run, "revision": revisions.index(_revision_of(run))} for run in runs.values())
    return {
        "command": "make check-all",
        "mpi": ", ".join(sorted(libraries)),
        "revisions": list(map(json.loads, revisions)),
        "runs": sorted(made, key=order),
    }


def _revision_of(run: dict[str, Any]) -> str:
    return json.dumps(run.get("revision"), sort_keys=True)


def revision() -> dict[str, str] | None:
    """Return the commit, and the hashes of the C that was run; None outside of git.

    The hashes of folders are git's (`git rev-parse HEAD:templates`): they say what ran even where
    later commits have changed other files.
    """
    names = {"commit": "HEAD", **{folder: f"HEAD:{folder}" for folder in COMPILED}}
    found = {}
    for name, what in names.items():
        command = ["git", "-C", str(PAGE.parents[1]), "rev-parse", "--short=12", what]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None
        found[name] = done.stdout.strip()
    return found


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _mark(number: int) -> str:
    """Return what marks runs of a revision, counted from 0; those of the first have no mark."""
    return f" {number + 1}".translate(_RAISED) if number else ""


def _all_words(found: dict[str, Any]) -> str:
    """Return the revisions as the page says them, that of most runs first."""
    runs, (first, *others) = found["runs"], found["revisions"]
    parts = [_words(first)]
    for number, other in enumerate(others, start=1):
        count = sum(run["revision"] == number for run in runs)
        parts.append(f"and {count} of them, marked{_mark(number)}, at {_words(other)}")
    return ",\n".join(parts)


def _words(found: dict[str, str] | None) -> str:
    """Return a revision as the page says it."""
    if found is None:
        return "an unknown commit"
    folders = " and ".join(f"`{name}` {found[name]}" for name in COMPILED)
    return f"commit {found['commit']}\n(git hashes of {folders})"


def page(found: dict[str, Any]) -> str:
    """Return the whole page as Markdown."""
    runs = found["runs"]
    cases = sum(sum(run["passed"].values()) for run in runs)
    introduction = INTRODUCTION.format(
        cases=cases, runs=len(runs), mpi=found["mpi"], revisions=_all_words(found)
    )
    parts = [section(part, [run for run in runs if part.has(run)]) for part in SECTIONS]
    return "\n".join([introduction, *filter(None, parts)])


def section(part: Section, runs: Sequence[dict[str, Any]]) -> str:
    """Return a table with a row for each run, nothing without any."""
    if not runs:
        return ""
    collectives = sorted(runs[0]["passed"])
    with_slots = any(run["slots"] > 1 for run in runs)
    head = ["p", "of", *(["on a host"] if with_slots else []), "", *collectives]
    lines = [f"## {part.title}\n", f"{part.text}\n", _row(head), _row(["--:"] * len(head))]
    for run in runs:
        slots = [run["slots"]] if with_slots else []
        counts = [run["passed"][name] for name in collectives]
        level = run["level"] + _mark(run["revision"])
        lines.append(_row([run["ranks"], run["cluster"], *slots, level, *counts]))
    return "\n".join([*lines, ""])


def _row(cells: Iterable[object]) -> str:
    words = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells)
    return f"| {' | '.join(words)} |"


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or check it; return the exit status."""
    parser = argparse.ArgumentParser(description="Make the page about conformance.")
    parser.add_argument("log", nargs="?", type=Path, help="take the totals of these runs")
    parser.add_argument("--check", action="store_true", help="only compare")
    options = parser.parse_args(arguments)
    if options.log is not None:
        lines = options.log.read_text(encoding="utf-8").splitlines()
        TOTALS.write_text(json.dumps(totals(lines), indent=1) + "\n", encoding="utf-8")
    text = page(json.loads(TOTALS.read_text(encoding="utf-8")))
    if options.check and PAGE.read_text(encoding="utf-8") != text:
        print(
            f"{PAGE} differs from {TOTALS}: run python docs/tools/conformance.py", file=sys.stderr
        )
        return 1
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
