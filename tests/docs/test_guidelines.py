"""The table of guidelines names a composition for each, and every composition is in it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from docs.tools.bench.guidelines import BARRIER
from docs.tools.bench.guidelines import GUIDELINES as JUDGED
from stagegen.catalogue import load_catalogue

PAGE = Path(__file__).parents[2] / "docs" / "guidelines.md"
ROW = re.compile(r"^\| (\w+) ≼ ([^|]+?) \| `(of_\w+)` \|$", re.MULTILINE)
CATALOGUE = load_catalogue()
GUIDELINES = [tuple(match) for match in ROW.findall(PAGE.read_text(encoding="utf-8"))]

#: What the catalogue has no collective for: the template does it itself.
BY_ITSELF = {"reduce_local", "scatterv"}


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


#: Guidelines without a candidate, with the reason.
WITHOUT = re.compile(r"^\| (\w+) ≼ ([^|`]+?) \| ([^|]*[^|`\s][^|]*) \|$", re.MULTILINE)


def test_each_judged_guideline_has_a_candidate_or_a_reason():
    judged = {(one.left, " + ".join(part.collective for part in one.right)) for one in JUDGED}
    judged |= {("barrier", " + ".join(names)) for names in BARRIER}
    text = PAGE.read_text(encoding="utf-8")
    _, _, rest = text.partition("## Without a candidate\n")
    reasons = {(left, right) for left, right, _ in WITHOUT.findall(rest.partition("\n## ")[0])}
    # It is judged by a scatter: the catalogue has no scatterv.
    candidates = {(left, right.replace("scatterv", "scatter")) for left, right, _ in GUIDELINES}
    assert judged <= candidates | reasons
    assert not candidates & reasons
    told = {right for left, right in reasons if left == "barrier"}
    assert told == {"alltoall", "reduce + bcast", "gather + bcast"}


TUNED = re.compile(r"^\| [^|]+ \| (\w+) \| ((?:`of_\w+`(?:, )?)+) \| ([^|]*) ?\|$", re.MULTILINE)
SUBROUTINES = TUNED.findall(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("collective", "tuned", "fixed"), SUBROUTINES)
def test_what_the_source_makes_of_others_has_tuned_parts(collective, tuned, fixed):
    """Faraj 2006, §4.1.1.4: each part runs the tuned routine, whatever fixed ones there are."""
    names = [a.name for a in CATALOGUE.of(collective)]
    for name in re.findall(r"`(\w+)`", tuned):
        assert CATALOGUE.find(collective, name).parts
        assert not CATALOGUE.find(collective, name).uses
    for pattern in re.findall(r"`([\w*]+)`", fixed):
        assert [name for name in names if fnmatchcase(name, pattern)]


def test_all_that_use_fixed_routines_have_a_counterpart_with_tuned_ones():
    fixed = {a.full_name for a in CATALOGUE.algorithms if a.uses}
    patterns = [f"{c}/{p}" for c, _, told in SUBROUTINES for p in re.findall(r"`([\w*]+)`", told)]
    assert len(fixed) > 30
    assert not [name for name in fixed if not any(fnmatchcase(name, p) for p in patterns)]
