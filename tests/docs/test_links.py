"""Every page's links lead somewhere, its tables are whole, and nothing is left to be filled in."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "generated" / "README.md"]
LINK = re.compile(r"\]\((?P<target>[^)#]+)(?:#[^)]*)?\)")
SOURCE = re.compile(r"`((?:templates|stagegen|drivers)/[a-z0-9_./-]+\.(?:py|c|h|j2|yaml))`")
#: What a reader adds, following the page.
ADDED = {"templates/allgather/gather_and_pass_on.c.j2"}
ANCHOR = re.compile(r"\]\((?P<target>[^)#\s]*)#(?P<anchor>[^)\s]+)\)")


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    found: Counter[str] = Counter()
    anchors = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        anchors.add(f"{anchor}-{found[anchor]}" if found[anchor] else anchor)
        found[anchor] += 1
    return anchors


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_and_no_placeholder_is_left(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for match in LINK.finditer(text):
        target = match["target"]
        assert target.startswith("https://") or (page.parent / target).exists(), target
    assert not re.search(r"\b[A-Z]+_TABLE\b|TODO|FIXME", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_a_section_lead_to_one_that_exists(page: Path) -> None:
    for match in ANCHOR.finditer(page.read_text(encoding="utf-8")):
        if not match["target"].startswith("https://"):
            aim = page.parent / match["target"] if match["target"] else page
            assert match["anchor"] in anchors_of(aim), match[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_source_files_that_a_page_names_exist(page: Path) -> None:
    named = set(SOURCE.findall(page.read_text(encoding="utf-8"))) - ADDED
    here = (ROOT, page.parent)  # an example has folders of its own
    missing = (name for name in named if not any((one / name).exists() for one in here))
    assert sorted(missing) == []


def broken_tables(text: str) -> list[str]:
    """Return the tables without a heading, and rows that have other cells than their heading."""
    code = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
    found = []
    for table in re.findall(r"(?:^ *\|.*\|$\n?)+", code.sub("", text), re.MULTILINE):
        heading, *rows = table.splitlines()
        if not rows or not re.fullmatch(r" *\|( *:?-+:? *\|)+", rows[0]):
            found.append(heading)
        else:
            found += [row for row in rows if cells_of(row) != cells_of(heading)]
    return found


def cells_of(row: str) -> int:
    """Return how many cells a row of a table has."""
    return len(re.findall(r"(?<!\\)\|", row)) - 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_table_has_a_heading_and_as_many_cells_in_each_row(page: Path) -> None:
    assert broken_tables(page.read_text(encoding="utf-8")) == []


def test_a_table_that_a_blank_line_cuts_and_a_row_with_another_cell_are_found() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert broken_tables(table) == []
    assert broken_tables(f"{table}\n| 3 | 4 |\n") == ["| 3 | 4 |"]
    assert broken_tables(f"{table}| 3 | 4 | 5 |\n") == ["| 3 | 4 | 5 |"]
    assert broken_tables("| a |\n|---|\n| `x \\| y` |\n") == []
    assert broken_tables("```\n| no table |\n```\n") == []
