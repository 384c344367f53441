"""The table of groups in docs/adaptive.md says what the front matter of the templates says."""

from __future__ import annotations

import re
from collections import defaultdict
from operator import ge
from pathlib import Path

import pytest

from stagegen.adaptive.trace import SOURCE_GROUPS
from stagegen.catalogue import load_catalogue

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adaptive.md"


def told():
    """What the page says: by collective and group, the sizes, the aims and the algorithms."""
    text = PAGE.read_text(encoding="utf-8")
    (table,) = re.findall(r"<!-- groups -->\n(.*?)<!-- end of groups -->", text, re.DOTALL)
    _, _, *rows = table.splitlines()
    found = {}
    for row in rows:
        collectives, group, objective, price, sizes, most, names = row.strip("| ").split(" | ")
        assert all((objective, price, sizes))
        usual, _, without_hosts = names.partition(" or ")
        for collective in collectives.split(", "):
            found[collective, int(group)] = (
                None if most == "any" else int(most),
                tuple(re.findall(r"[αβγδθ](?:_[nlsh])?", objective.partition(":")[0])),
                re.findall("`([a-z0-9_]+)`", usual),
                set(re.findall("`([a-z0-9_]+)`", without_hosts)),
            )
    return found


def marked():
    """What the front matter says: by collective and group, the algorithms with their marks."""
    groups = defaultdict(dict)
    for one in load_catalogue().algorithms:
        if one.adaptive is not None and one.adaptive.group:
            groups[one.collective, one.adaptive.group][one.name] = one.adaptive
    return groups


def test_the_page_has_the_groups_of_the_front_matter():
    groups = marked()
    page = told()
    assert set(page) == set(groups)
    for key, (most, aims, usual, without_hosts) in page.items():
        marks = groups[key]
        assert {mark.optimises for mark in marks.values()} == {aims}, key
        assert {mark.max_bytes for mark in marks.values()} == {most}, key
        assert set(usual) == {name for name in marks if not marks[name].without_hosts}, key
        assert without_hosts == {name for name in marks if marks[name].without_hosts}, key
        assert [name for name in usual if marks[name].representative] == usual[:1], key


@pytest.mark.parametrize("collective", SOURCE_GROUPS)
def test_with_hosts_known_no_group_has_fewer_algorithms_than_in_the_source(collective):
    groups = [told()[key] for key in sorted(told()) if key[0] == collective]
    usual = [len(names) for _, _, names, _ in groups]
    assert len(usual) == len(SOURCE_GROUPS[collective])
    assert all(map(ge, usual, SOURCE_GROUPS[collective]))
