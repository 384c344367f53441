"""Every page's links lead somewhere, and nothing is left to be filled in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "generated" / "README.md"]
LINK = re.compile(r"\]\((?P<target>[^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere_and_no_placeholder_is_left(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for match in LINK.finditer(text):
        target = match["target"]
        assert target.startswith("https://") or (page.parent / target).exists(), target
    assert not re.search(r"\b[A-Z]+_TABLE\b|TODO|FIXME", text)
