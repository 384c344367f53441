"""Compare all selection policies on made traces, and write the table of docs/adaptive-policies.md.

Nothing is measured: the traces have a seed. `python docs/tools/adaptive_policies.py` takes 15 s.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

from stagegen.adaptive.policies import policy_names
from stagegen.adaptive.replay import Replayed, replay
from stagegen.adaptive.trace import COURSES, SOURCE_GROUPS, synthetic

PAGE = Path(__file__).resolve().parents[1] / "adaptive-policies.md"
SEEDS = range(1, 9)
BEGIN, END = "<!-- table -->", "<!-- end of table -->"
COLUMNS = (
    "trace",
    "policy",
    "loss",
    "worst loss",
    "loss against own candidates",
    "excess before selection",
    "selected after",
    "meetings",
)
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n"


def played(course: str, policy: str) -> list[Replayed]:
    """Return the replays of a policy on all traces of a course."""
    return [
        replay(synthetic(course, seed=seed, collective=collective), policy)
        for collective in SOURCE_GROUPS
        for seed in SEEDS
    ]


def row(course: str, policy: str, replays: Iterable[Replayed]) -> str:
    """Return a row of the table: means, and medians of counts."""
    found = list(replays)
    losses = [one.loss for one in found]
    own = statistics.mean(one.own_loss for one in found)
    excess = statistics.mean(one.overheads.excess_s for one in found)
    after = statistics.median(one.overheads.selected_after or 0 for one in found)
    meetings = statistics.median(len(one.stages) for one in found)
    shares = (statistics.mean(losses), max(losses), own)
    return (
        f"| {course} | `{policy}` | {' | '.join(f'{one:+.1%}' for one in shares)} | "
        f"{1000 * excess:.0f} ms | {after:.0f} | {meetings:.0f} |\n"
    )


def rows(courses: Iterable[str]) -> Iterator[str]:
    """Yield the rows of traces of some courses."""
    for course in courses:
        for policy in policy_names():
            yield row(course, policy, played(course, policy))


def main() -> None:
    """Write the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(
        f"{before}{BEGIN}\n{HEAD}{''.join(rows(COURSES))}{END}{after}", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
