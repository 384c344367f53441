"""Mamidala, Liu and Panda 2004, §5.3: the synchronization delay of barrier and allreduce."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import milliseconds, table
from docs.tools.experiments.stagegen import answer

PAGE = Path("docs/wide-area.md")

#: One switch, as in the source. A message takes 4 ms: less would be hidden by the time in which two
#: CPUs wake as many ranks.
TOPOLOGY = """\
name: one-switch
defaults: {{bandwidth: 10Mbit, latency: 2ms}}
launcher: lab
switches:
  s0: {{hosts: "n[0-{last}]"}}
"""

#: The source's degree of the tree, and the least, which makes the deepest tree.
ARITIES = (8, 2)

#: By collective, what is compared; the source has a tree that adapts, one that does not, and this.
OTHER = {"barrier": "dissemination", "allreduce": "recursive_doubling"}

#: 128 doubles, as in the source; a barrier has no size, and any will do.
SIZES = {"barrier": 1, "allreduce": 1 << 10}

EXPERIMENTS = 8


@dataclass(frozen=True)
class _Setting:
    """A collective, how many ranks call it, how many of them are late, and by how many ms."""

    collective: str
    ranks: int
    late: int
    delay: int

    @property
    def name(self) -> str:
        return f"{self.collective} {self.ranks} ranks {self.late} late by {self.delay} ms"

    @property
    def plan(self) -> str:
        """The last rank is late; if two are, rank 1 as well (§5.3.2, §5.3.4)."""
        if not self.late:
            return "imbalance:1us"  # below 1 µs nobody is late, and yet all is measured likewise
        ranks = (self.ranks - 1, 1)[: self.late]
        return "replay:" + ",".join(f"{rank}={self.delay}ms" for rank in ranks)


SETTINGS = [
    _Setting(collective, ranks, *how)
    for collective in OTHER
    for ranks, patterns in {
        4: [(1, 40)],
        8: [(1, 40)],
        16: [(0, 0), (1, 10), (1, 40), (2, 40)],
        32: [(1, 40)],
    }.items()
    for how in patterns
]


def _algorithms(setting: _Setting) -> list[str]:
    """Return the candidates; a rank of 4 cannot have 8 children."""
    trees = [
        f"{tree}:arity={min(arity, setting.ranks - 1)}"
        for arity in ARITIES
        for tree in ("fixed_tree", "token_tree")
    ]
    return ["native", OTHER[setting.collective], *trees]


def _measure(setting: _Setting, folder: Path) -> Any:
    path = folder / "topology.yaml"
    path.write_text(TOPOLOGY.format(last=setting.ranks - 1), encoding="utf-8")
    return answer(
        "compare",
        *("--topology", path, "--collective", setting.collective),
        *("--sizes", SIZES[setting.collective], "--algorithms", ",".join(_algorithms(setting))),
        *("--timing", setting.plan, "--metric", "last", "--repetitions", EXPERIMENTS),
        *("--iterations", 3),
        *("--output", folder.parent / f"{setting.collective}-{setting.ranks}"),
    )


def _summary(result: Mapping[str, Any]) -> list[float]:
    """Return the medians of the last exits, in the order of the candidates."""
    return [statistics.median(row["late"]["rounds"]["last"]) for row in result["rows"]]


def _report(found: Found) -> str:
    sections = [_section(collective, found) for collective in OTHER]
    return "\n\n".join(section for section in sections if section)


def _section(collective: str, found: Found) -> str:
    rows = [
        [str(one.ranks), _who(one), *_cells(found[one.name])]
        for one in SETTINGS
        if one.collective == collective and one.name in found
    ]
    if not rows:
        return ""
    trees = [f"{tree}, k = {k}" for k in ARITIES for tree in ("fixed", "token")]
    gains = [f"fixed / token, k = {k}" for k in ARITIES]
    titles = ["ranks", "late", "native", OTHER[collective].replace("_", " "), *trees, *gains]
    return (
        f"{collective}: from the last arrival to the last exit, ms (medians)\n\n"
        f"{table(titles, rows)}"
    )


def _who(setting: _Setting) -> str:
    return f"{setting.late}, by {setting.delay} ms" if setting.late else "nobody"


def _cells(seconds: Sequence[float]) -> list[str]:
    """Return the medians in the order of the candidates, then the gains of the token."""
    gains = [f"{seconds[at] / seconds[at + 1]:.2f}" for at in (2, 4)]
    return [*map(milliseconds, seconds), *gains]


EXPERIMENT = Experiment(
    "skew",
    "synchronization delay of trees with late ranks (Mamidala, Liu and Panda 2004, §5.3)",
    {setting.name: partial(_measure, setting) for setting in SETTINGS},
    _report,
    PAGE,
    summary=_summary,
)
