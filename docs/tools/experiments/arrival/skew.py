"""Mamidala, Liu and Panda 2004, §5.3: the synchronization delay of barrier and allreduce."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from docs.tools.experiments.experiment import Experiment, Found
from docs.tools.experiments.page import interval, milliseconds, table
from docs.tools.experiments.stagegen import answer
from docs.tools.target import Target
from stagegen.measure.statistics import paired_ratio

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

#: The tree that does not adapt, and those that do, with their names in the report. The first one
#: that adapts is the source's. The source leaves the others open: the semi-dynamic tree, without
#: and with a token, and several tokens.
FIXED = "fixed_tree"
ADAPTIVE = {
    "token_tree": "token",
    "token_tree_semi_dynamic": "semi-dynamic",
    "token_tree_remembering": "remembering",
    "token_tree_several": "several",
}
TREES = {FIXED: "fixed", **ADAPTIVE}
_TREE = re.compile(r"(\w+):.*?arity=(\d+)")

#: By collective, what is compared; the source has a tree that adapts, one that does not, and this.
OTHER = {"barrier": "dissemination", "allreduce": "recursive_doubling"}

#: 128 doubles, as in the source; a barrier has no size, and any will do.
SIZES = {"barrier": 1, "allreduce": 1 << 10}

EXPERIMENTS = 8

#: The group of releases by multicast.
GROUP = "239.77.0.1"


@dataclass(frozen=True)
class _Setting:
    """A collective, how many ranks call it, how many of them are late, and by how many ms.

    With multicast, the trees release by it.
    """

    collective: str
    ranks: int
    late: int
    delay: int
    multicast: bool = False

    @property
    def name(self) -> str:
        how = " with multicast" if self.multicast else ""
        return f"{self.collective} {self.ranks} ranks {self.late} late by {self.delay} ms{how}"

    @property
    def plan(self) -> str:
        """The last rank is late; if two are, another one below another child of the root.

        Of ranks 6 and 15, and of 6 and 31, this holds with either degree of the tree, as it does in
        the source's tree for its ranks 1 and 15 (§5.3.2, §5.3.4).
        """
        if not self.late:
            return "imbalance:1us"  # by less than 1 µs no rank is late, but all is measured alike
        ranks = (self.ranks - 1, 6)[: self.late]
        return "replay:" + ",".join(f"{rank}={self.delay}ms" for rank in ranks)


#: By ranks: how many are late, and by how many ms.
PATTERNS = {
    4: [(0, 0), (1, 40)],
    8: [(0, 0), (1, 40)],
    16: [(0, 0), (1, 10), (1, 40), (2, 40)],
    32: [(0, 0), (1, 10), (1, 40), (2, 40)],
}
SETTINGS = [
    _Setting(collective, ranks, *how, multicast)
    for collective in OTHER
    for multicast in (False, True)
    for ranks, patterns in PATTERNS.items()
    for how in patterns
]


def _arity(setting: _Setting, most: int) -> int:
    """Return the most children of a tree; a rank of 4 cannot have 8."""
    return min(most, setting.ranks - 1)


def _algorithms(setting: _Setting) -> list[str]:
    trees = [f"{tree}:arity={_arity(setting, k)}" for k in ARITIES for tree in TREES]
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
        variables={"LIBCOLL_MULTICAST": GROUP} if setting.multicast else {},
    )


#: What is kept of a point: by candidate, seconds after the last arrival and, of a tree that adapts,
#: the time of the fixed one over its own (by pairs: the median, and the ends of its interval).
_Kept = Mapping[str, Mapping[str, Any]]


def _summary(result: Mapping[str, Any]) -> _Kept:
    rounds = {}
    for row in result["rows"]:
        tree = _TREE.match(row["routine"])
        name = _tree(tree[1], int(tree[2])) if tree else row["routine"].partition(":")[0]
        rounds[name] = row["late"]["rounds"]["last"]
    kept: dict[str, dict[str, Any]] = {}
    for name, seconds in rounds.items():
        kept[name] = {"last_s": statistics.median(seconds)}
        tree, _, how = name.partition(":")
        if tree in ADAPTIVE and (fixed := f"{FIXED}:{how}") in rounds:
            gain = paired_ratio(rounds[fixed], seconds)
            kept[name]["gain"] = [gain.median, gain.low, gain.high]
    return kept


def _tree(tree: str, arity: int) -> str:
    return f"{tree}:arity={arity}"


def _known(collective: str, found: Found) -> Iterator[tuple[_Setting, _Kept]]:
    for setting in SETTINGS:
        if setting.collective == collective and setting.name in found:
            yield setting, found[setting.name]


def _report(found: Found) -> str:
    sections = [_section(collective, found) for collective in OTHER]
    return "\n\n".join(section for section in sections if section)


def _section(collective: str, found: Found) -> str:
    known = list(_known(collective, found))
    if not known:
        return ""
    others = ["native", OTHER[collective]]
    trees = [(tree, most) for most in ARITIES for tree in TREES]
    adaptive = [who for who in trees if who[0] != FIXED]
    seconds, gains, saved = [], [], []
    for one, kept in known:
        head = [str(one.ranks), _late(one)]
        names = [*others, *(_tree(tree, _arity(one, most)) for tree, most in trees)]
        times = [kept[name]["last_s"] if name in kept else None for name in names]
        seconds.append([*head, *(milliseconds(time) if time else "" for time in times)])
        gains.append([*head, *(_gain(kept, tree, _arity(one, most)) for tree, most in adaptive)])
        told = found.get(replace(one, multicast=True).name)
        if told is not None and not one.multicast:
            ratios = (_saved(kept, told, name) for name in names[len(others) :])
            saved.append([*head, *ratios])
    head, of_trees = ["ranks", "late"], [*map(_title, trees)]
    titles = [*(other.replace("_", " ") for other in others), *of_trees]
    told_so = (
        f"\n\n{collective}: release along the tree / by multicast, too (medians of two jobs)\n\n"
        f"{table([*head, *of_trees], saved)}"
    )
    return (
        f"{collective}: from the last arrival to the last exit, ms (medians)\n\n"
        f"{table([*head, *titles], seconds)}\n\n"
        f"{collective}: fixed / this (medians of pairs, with 95 % intervals; else of medians)\n\n"
        f"{table([*head, *map(_title, adaptive)], gains)}"
        f"{told_so if saved else ''}"
    )


def _gain(kept: _Kept, tree: str, arity: int) -> str:
    """Return the time of the fixed tree over that of another one; earlier runs kept no pairs."""
    own, fixed = kept.get(_tree(tree, arity)), kept.get(_tree(FIXED, arity))
    if own is None or fixed is None:
        return ""
    if "gain" not in own:
        return f"{fixed['last_s'] / own['last_s']:.2f}"
    return interval(*own["gain"])


def _saved(kept: _Kept, told: _Kept, name: str) -> str:
    """Return how much faster a tree is with multicast, if it was measured in both ways."""
    if name not in kept or name not in told:
        return ""
    return f"{kept[name]['last_s'] / told[name]['last_s']:.2f}"


def _title(who: tuple[str, int]) -> str:
    tree, most = who
    return f"{TREES[tree]}, k = {most}"


def _late(setting: _Setting) -> str:
    late = f"{setting.late}, by {setting.delay} ms" if setting.late else "nobody"
    return f"{late}; multicast" if setting.multicast else late


#: The targets are for 16 ranks: with one that is late by more than a call takes, and with none.
TOKENS = ("token_tree", "token_tree_several")
ONE_LATE, NOBODY = (16, 1, 40), (16, 0, 0)
WORSE = 1.05


def _targets(found: Found) -> Sequence[Target]:
    ways = product(TOKENS, OTHER, (False, True))
    return [target for way in ways for target in _promises(*way, found)]


def _promises(tree: str, collective: str, multicast: bool, found: Found) -> Iterator[Target]:
    late, nobody = (_Setting(collective, *how, multicast) for how in (ONE_LATE, NOBODY))
    shallow, deep = ARITIES
    what = f"{collective}, 16 ranks{', multicast' if multicast else ''}"
    grows = f"{what}, one late: fixed / {ADAPTIVE[tree]} grows with the depth, from above 1"
    low, high = (_adapted(found, late, tree, most) for most in (shallow, deep))
    if low and high:
        seen = f"{interval(*low)} (k = {shallow}), {interval(*high)} (k = {deep})"
        yield Target(1 < low[0] < high[0], f"{grows}: {seen}")
    else:
        yield Target(None, grows)
    gains = {f"k = {most}": _adapted(found, nobody, tree, most) for most in ARITIES}
    costs = {k: 1 / gain[0] for k, gain in gains.items() if gain}
    yield Target.at_most(WORSE, costs, f"{what}, nobody late: {ADAPTIVE[tree]} / fixed")


def _adapted(found: Found, setting: _Setting, tree: str, most: int) -> Sequence[float]:
    """Return the gain of a tree that adapts; nothing if it was not measured in pairs."""
    kept: _Kept = found.get(setting.name, {})
    gain: Sequence[float] = kept.get(_tree(tree, _arity(setting, most)), {}).get("gain", ())
    return gain


EXPERIMENT = Experiment(
    "skew",
    "synchronization delay of trees with late ranks (Mamidala, Liu and Panda 2004, §5.3)",
    {setting.name: partial(_measure, setting) for setting in SETTINGS},
    _report,
    PAGE,
    _targets,
    _summary,
)
