"""docs/bench-tuning.md, from what was measured so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.tools.bench_tuning.plan import LAB, PARTS, TRIALS
from docs.tools.bench_tuning.results import SLOWER, Result

PAGE = Path("docs/bench-tuning.md")

#: Characters of a cell of what was tried.
LONGEST = 320

#: Between these lines the tool writes; the rest of the page is written by hand.
BEGIN, END = "<!-- begin of results -->", "<!-- end of results -->"


def page(text: str, found: Sequence[Result]) -> str:
    """Return the page with these results."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = [_part(part, [one for one in found if one.part == part]) for part in PARTS]
    parts += [_trial(part, [one for one in found if one.part == part]) for part in TRIALS]
    return f"{before}{BEGIN}\n\n{_missing(found)}" + "\n".join(parts) + f"\n{END}{after}"


def _missing(found: Sequence[Result]) -> str:
    """Return a line about the parts that the lab has not done, if there are any."""
    done = {one.part for one in found if one.source == LAB}
    left = ", ".join(f"`{part}`" for part in PARTS if part not in done)
    return f"Not measured in the lab yet: {left}.\n\n" if left else ""


def _part(part: str, found: Sequence[Result]) -> str:
    heading = f"## {PARTS[part][0].upper()}{PARTS[part][1:]}\n\n"
    if not found:
        return f"{heading}Not measured yet.\n"
    titles, cells = _COLUMNS[part]
    first = ["of", "cluster", "collectives", "sizes", "seed"]
    rows = [[*first, *titles, "goal"], ["---"] * len(first) + ["---:"] * len(titles) + ["---"]]
    rows += [[*_setting(one), *cells(one.values), _goal(one)] for one in found]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    more = "".join(_more(one) for one in found)
    return f"{heading}{table}\n{more}"


def _trial(part: str, found: Sequence[Result]) -> str:
    """Return the section of what was tried for real."""
    heading = f"## {TRIALS[part][0].upper()}{TRIALS[part][1:]}\n\n"
    if not found:
        return f"{heading}Not tried yet.\n"
    titles, cells, aim, is_good = _OF_TRIALS[part]
    rows = [row for one in found for row in one.values["rows"]]
    table = [titles, ["---"] * len(titles), *map(cells, rows)]
    lines = "\n".join(f"| {' | '.join(map(_in_cell, row))} |" for row in table)
    good, tried = sum(map(is_good, rows)), sum(not row["unavailable"] for row in rows)
    met = "met" if good == tried else "**missed**"
    return f"{heading}{lines}\n\nGoal: {aim}: {met}, by {good} of {tried}.\n"


def _fault(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a fault."""
    first = [row["fault"], row["done"]]
    if reason := row["unavailable"] or row["wrong"]:
        went = "cannot be tried here" if row["unavailable"] else "**it went wrong**"
        return [*first, f"{went}: {reason}", "", "", "", ""]
    words = f"“{row['said']}”" if row["said"] else "–"
    resumed = "–" if row["kept"] is None else f"with {row['kept']} of {row['records']} records"
    same = "yes" if row["same"] else f"**no**: {', '.join(_not_the_same(row))}"
    return [*first, _status(row["status"]), words, resumed, same, f"{row['lost']:.1f}"]


def _not_the_same(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reasons why a tuning's table is not that of an undisturbed run."""
    if row["again"]:
        yield f"it ended with {_status(row['again'])}"
    if not row["intact"]:
        yield "its log lost records"
    yield from row["differs"]


def _status(number: int) -> str:
    return str(number) if number >= 0 else f"signal {-number}"


def _launcher(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a launcher."""
    ended = "yes" if _has_table(row) else f"**no**: {row['why']}"
    if row["unavailable"]:
        ended = f"cannot be tried here: {row['unavailable']}"
    hosts, ranks = (str(row[name] or "–") for name in ("hosts", "ranks"))
    library = f"{row['library']} ({row['kind']})" if row.get("kind") else row["library"]
    return [f"`{row['launcher']}`", library, row["tools"] or "–", hosts, ranks, ended]


def _has_table(row: Mapping[str, Any]) -> bool:
    return bool(row["table"] and not row["why"])


def _in_cell(text: str) -> str:
    """Return a text in one line that ends no cell, shortened."""
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


#: By trial: titles, the cells of a row, what is aimed at, and whether a row has it.
_OF_TRIALS: Mapping[
    str,
    tuple[
        list[str],
        Callable[[Mapping[str, Any]], list[str]],
        str,
        Callable[[Mapping[str, Any]], bool],
    ],
] = {
    "faults": (
        [
            "fault",
            "done",
            "status",
            "what it said",
            "resumed",
            "the same table",
            "seconds lost",
        ],
        _fault,
        "each tuning ends with the same table",
        lambda row: bool(row["same"]),
    ),
    "launchers": (
        ["launcher", "MPI library", "with", "hosts", "ranks", "a table"],
        _launcher,
        "each launcher that can be tried here ends with a table",
        _has_table,
    ),
}


def _setting(one: Result) -> list[str]:
    of = "the lab" if one.source == LAB else "the model"
    lists = (text.replace("+", ", ") for text in (one.collectives, one.sizes))
    return [of, one.cluster, *lists, str(one.seed)]


def _whole(values: Mapping[str, Any]) -> list[str]:
    seconds, least = values["seconds"], values["least_seconds"]
    return [_minutes(seconds), _minutes(least), f"{seconds / least:.1f} ×", _runs(values)]


def _exhaustive(values: Mapping[str, Any]) -> list[str]:
    shares = {name: share for name, share in values["by_collective"].items() if share is not None}
    worst = max(shares, key=lambda name: shares[name])
    sizes = f"{values['compared']} of {values['of']}" if "of" in values else "all"
    return [sizes, _percent(values["loss"]), f"{worst} {_percent(shares[worst])}"]


def _twice(values: Mapping[str, Any]) -> list[str]:
    ways = [_percent(values.get(name)) for name in ("paired", "a_in_b", "b_in_a", "worst")]
    return [*ways, *map(_minutes, values["seconds"])]


def _worst_way(values: Mapping[str, Any]) -> float:
    """Return what the worse of two tunings loses: in pairs, or else by the log of the other."""
    if (share := values.get("paired")) is not None:
        return max(share, 1 / (1 + share) - 1)
    return max(values["a_in_b"], values["b_in_a"])


def _budget(values: Mapping[str, Any]) -> list[str]:
    half = _at_half(values)
    times = [_minutes(values["full_seconds"]), _minutes(half["seconds"])]
    return [*times, _percent(half["loss"]), _percent(half.get("paired"))]


def _lost(values: Mapping[str, Any]) -> float:
    """Return what was lost: in pairs, or else by a log."""
    lost: float = values["loss"] if (share := values.get("paired")) is None else share
    return lost


def _at_half(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the result within half of the full time."""
    found: Mapping[str, Any] = next(one for one in values["steps"] if one["share"] == 0.5)
    return found


def _program(values: Mapping[str, Any]) -> list[str]:
    share = values["seconds"] / values["full_seconds"]
    times = [_minutes(values[name]) for name in ("seconds", "full_seconds")]
    return [str(values["called"]), *times, f"{share:.0%}", _percent(values["loss"])]


def _shapes(values: Mapping[str, Any]) -> list[str]:
    share = values["seconds"] / values["whole_seconds"]
    times = [_minutes(values[name]) for name in ("seconds", "whole_seconds")]
    return [str(values["communicators"]), *times, f"{share:.2f} ×"]


def _jobs(values: Mapping[str, Any]) -> list[str]:
    worst = min(values["worst"].values(), key=lambda one: one["speedup"])
    counts = [str(values.get(name, "–")) for name in ("jobs", "compared", "again", "slower")]
    return [*counts, f"{worst['speedup']:.2f}"]


_COLUMNS: Mapping[str, tuple[list[str], Callable[[Mapping[str, Any]], list[str]]]] = {
    "whole": (["tuning", "the least", "tuning over the least", "runs"], _whole),
    "exhaustive": (["compared at", "loss", "the most"], _exhaustive),
    "twice": (
        ["in pairs", "first in second", "second in first", "the most", "first", "second"],
        _twice,
    ),
    "budget": (["without a budget", "half", "loss within half", "in pairs"], _budget),
    "program": (["calls", "with --for", "full", "share", "loss"], _program),
    "shapes": (["communicators", "all", "whole cluster", "all over whole"], _shapes),
    "jobs": (["jobs", "calls", "timed again", f"below {SLOWER}", "the least speed-up"], _jobs),
}


#: What is aimed at, in words, and whether a result has it.
_GOALS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "whole": ("at most 20 min", lambda of: of["seconds"] <= 20 * 60),
    "exhaustive": ("at most 3 %", lambda of: of["loss"] <= 0.03),
    "twice": ("at most 3 %", lambda of: _worst_way(of) <= 0.03),
    "budget": (
        "at most 3 % within half of the time",
        lambda of: _lost(_at_half(of)) <= 0.03,
    ),
    "program": (
        "at most 20 % of the time, at most 3 % lost",
        lambda of: of["seconds"] <= 0.2 * of["full_seconds"] and of["loss"] <= 0.03,
    ),
    "shapes": ("at most 2 ×", lambda of: of["seconds"] <= 2 * of["whole_seconds"]),
    "jobs": (f"none below {SLOWER}", lambda of: of["slower"] == 0),
}


def _goal(one: Result) -> str:
    """Return the goal, and whether it is met; the time of tuning has one for all collectives."""
    if one.part == "whole" and (one.collectives, one.sizes) != ("all", "default"):
        return "–"
    text, is_met = _GOALS[one.part]
    return f"{text}: {'met' if is_met(one.values) else '**missed**'}"


def _more(one: Result) -> str:
    """Return what a row has no room for."""
    if one.part == "exhaustive":
        shares = one.values["by_collective"]
        listed = ", ".join(f"{name} {_percent(share)}" for name, share in shares.items())
        return f"\nBy collective, of {_setting(one)[0]}: {listed}.\n"
    if one.part == "budget":
        rows = "\n".join(map(_step, one.values["steps"]))
        head = "| share | budget | taken | loss | at most, as stated | estimates that held |"
        return f"\nOf {_setting(one)[0]}:\n\n{head}\n|---:|---:|---:|---:|---:|---:|\n{rows}\n"
    if one.part == "jobs":
        lines = "\n".join(_worst(one.values))
        head = "| collective | calls below | the least speed-up | bytes | by | ranks on each of |\n"
        title = f"\nOf {_setting(one)[0]}, on {one.cluster}:\n\n"
        return f"{title}{head}|---|---:|---:|---:|---|---|\n{lines}\n"
    return ""


def _worst(values: Mapping[str, Any]) -> Iterator[str]:
    for name, row in values["worst"].items():
        count = values["slower_by"][name]
        yield (
            f"| {name} | {count} | {row['speedup']:.2f} | {row['size']} | {row['routine']} "
            f"| {row['job']} |"
        )


def _step(one: Mapping[str, Any]) -> str:
    """Return the row of one budget."""
    times = (_minutes(one[name]) for name in ("budget", "seconds"))
    stated = f"{_percent(one['stated'])}, {one['unknown']} sizes unknown"
    held = _percent(one["held"])
    cells = (f"{one['share']:.0%}", *times, _percent(one["loss"]), stated, held)
    return f"| {' | '.join(cells)} |"


def _runs(values: Mapping[str, Any]) -> str:
    return str(values.get("runs", 1))


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
