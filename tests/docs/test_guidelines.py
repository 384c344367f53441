"""The table of guidelines names a composition for each, and every composition is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stagegen.catalogue import load_catalogue

PAGE = Path(__file__).parents[2] / "docs" / "guidelines.md"
ROW = re.compile(r"^\| (\w+) ≼ ([^|]+?) \| `(of_\w+)` \|$", re.MULTILINE)
CATALOGUE = load_catalogue()
GUIDELINES = [tuple(match) for match in ROW.findall(PAGE.read_text(encoding="utf-8"))]

#: What the catalogue has no collective for: the template does it itself.
BY_ITSELF = {"scatterv"}


@pytest.mark.parametrize(("left", "right", "name"), GUIDELINES, ids=lambda value: value)
def test_each_right_side_is_a_candidate_for_the_left(left, right, name):
    parts = [part.collective for part in CATALOGUE.find(left, name).parts]
    if right == "twice half of it":
        assert parts == [left, left]
    else:
        assert parts == [one for one in right.split(" + ") if one not in BY_ITSELF]


def test_all_compositions_are_guidelines():
    listed = [(left, name) for left, _, name in GUIDELINES]
    known = [(a.collective, a.name) for a in CATALOGUE.algorithms if a.parts]
    assert sorted(listed) == known
    assert len(set(listed)) == len(listed) > 30
