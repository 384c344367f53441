"""Pages: an experiment's report stands between two lines that name it."""

from __future__ import annotations

import re


def with_report(text: str, name: str, report: str) -> str:
    """Return a page with the report of an experiment in its place.

    Raises:
        ValueError: the page has no place for it.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    between = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if not between.search(text):
        raise ValueError(f"the page has no lines {begin} and {end}")
    return between.sub(lambda _: f"{begin}\n{report.strip()}\n{end}", text)


def table(titles: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; its first column is text, the others are numbers."""
    rules = ["---", *["---:"] * (len(titles) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (titles, rules, *rows))


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds, with four digits."""
    return f"{1e3 * seconds:.4g}"


def interval(median: float, low: float, high: float) -> str:
    """Return the median of a ratio, and the ends of its interval."""
    return f"{median:.2f} [{low:.2f}, {high:.2f}]"
