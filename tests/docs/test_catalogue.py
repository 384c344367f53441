"""The catalogue page says what the front matter of the templates says, and all of it.

The page is made anew, read back, and compared with the YAML of the templates: neither is read with
the code that the page is made with. `make lint` says whether it is the page in docs/.
"""

from __future__ import annotations

import re
import runpy
from collections import Counter, defaultdict
from collections.abc import Mapping
from math import isqrt
from pathlib import Path

import pytest
import yaml

from stagegen.data import TEMPLATES

DOCS = Path(__file__).parents[2] / "docs"
MADE = runpy.run_path(str(DOCS / "tools" / "catalogue.py"))
MAIN = MADE["main"]
TEXT = MADE["page"](MADE["load_catalogue"]())

FRONT_MATTER = re.compile(r"\{#---\n(.*?)\n---#\}", re.DOTALL)
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
#: Name, template, summary and facts of an algorithm.
ENTRY = re.compile(r"^### \[(\w+)\]\(\.\./templates/(\S+)\)\n\n(.+)\n\n((?:- .+\n)+)", re.MULTILINE)

#: What constraints ask for, and where the ranks must be, in the words of the page.
CONSTRAINTS = {
    "commutative": "commutative",
    "dense": "data as plain bytes, so that other data is packed first",
    "power_of_two": "power of two",
}
PLACES = {
    "order": "ranks on hosts of the cluster, any number on each, in any order",
    "leaders": "ranks on several hosts of the cluster, more than one on some, in any order",
    "hosts": "ranks on several hosts of the cluster, more than one on some, in any order",
    "switches": "ranks at several switches of the cluster, more than one at some, in any order",
    "sites": "ranks at several sites of the cluster, more than one at some, in any order",
}
LINK = re.compile(r"\[([^]]*)\]\(https://[^)]*\)")
LIMIT = re.compile(r"at (most|least) ([\d,]+) (ranks|bytes)")
LIMITS = {"max_ranks": ("most", "ranks"), "max_bytes": ("most", "bytes"),
          "min_bytes": ("least", "bytes")}  # fmt: skip

Facts = Mapping[str, list[str]]


def front_matters() -> dict[str, dict]:
    """The keys of every algorithm but the native ones, by its full name; `template` is its file."""
    found = {}
    for path in sorted(TEMPLATES.glob("*/[!_]*.c.j2")):
        head = FRONT_MATTER.match(path.read_text(encoding="utf-8"))
        if head is not None and path.name != "native.c.j2":
            common = {**yaml.safe_load(head[1]), "template": path.relative_to(TEMPLATES).as_posix()}
            rows = common.pop("variants", {path.name.partition(".")[0]: {}})
            for name, own in rows.items():
                full_name = name if "/" in name else f"{path.parent.name}/{name}"
                found[full_name] = {**common, **(own or {})}
    return found


def entries() -> list[tuple[str, str, str, str]]:
    """The full name, template, summary and facts of every algorithm on the page."""
    return [
        (f"{collective}/{name}", template, summary, lines)
        for collective, text in SECTION.findall(TEXT)
        for name, template, summary, lines in ENTRY.findall(text)
    ]


def facts(lines: str) -> Facts:
    """A list of facts, by what stands before the colon."""
    found = defaultdict(list)
    for line in lines.splitlines():
        what, _, text = line.removeprefix("- ").partition(": ")
        found[what].append(text)
    return found


KEYS = front_matters()
TOLD = {name: (template, text, facts(lines)) for name, template, text, lines in entries()}

every_algorithm = pytest.mark.parametrize("name", KEYS)


def a_range(listed: str) -> dict:
    """The range of values such as "1, 2, 4, … up to `p`; **4**", as a front matter has it."""
    match = re.fullmatch(r"(\d+), \d+, (\d+), … up to `(.+)`; \*\*\d+\*\*", listed)
    if match is None:
        return {}
    start, third = int(match[1]), int(match[2])
    steps = {} if third == start + 2 else {"times": isqrt(third // start)}
    return {"from": start, "to": match[3], **steps}


def parameters(told: Facts) -> dict[str, dict]:
    """The parameters in a list of facts, as a front matter has them."""
    found = {}
    for what in told:
        if what.startswith("`"):
            (text,) = told[what]
            meaning, _, listed = text.rpartition(": ")
            (default,) = re.findall(r"\*\*(\d+)\*\*", listed)
            values = a_range(listed) or [int(value.strip("*")) for value in listed.split(", ")]
            found[what.strip("`")] = {"meaning": meaning, "values": values, "default": int(default)}
    return found


def parts(told: Facts) -> list[dict[str, str]]:
    """The parts in a list of facts, as a front matter has them."""
    return [dict(re.findall(r"^(\w+) of `(.+)` bytes$", text)) for text in told["Part"]]


@every_algorithm
def test_every_work_that_is_cited_is_listed_with_its_number(name):
    works = yaml.safe_load((TEMPLATES / "references.yaml").read_text(encoding="utf-8"))
    *_, told = TOLD[name]
    (reference,) = told["Reference"]
    bare = LINK.sub(r"\1", reference)
    cited = [work for work in works if re.search(rf"(?<![\w,] ){re.escape(work)}", bare)]
    assert cited, "it cites no work that is known"
    for work in cited:
        assert f"\n- {work}: {works[work]['work']}" in TEXT
        number = works[work].get("at", "").partition(":")[2]
        assert number in reference


def test_every_algorithm_is_on_the_page_once_and_counted():
    assert sorted(name for name, *_ in entries()) == sorted(KEYS)
    counted = {name: int(number) for name, number in re.findall(r"\[(\w+)\]\(#\1\) (\d+)", TEXT)}
    assert Counter(counted) == Counter(name.partition("/")[0] for name in KEYS)


@every_algorithm
def test_the_page_says_what_the_front_matter_says(name):
    keys, (template, summary, told) = KEYS[name], TOLD[name]
    assert (template, summary) == (keys["template"], keys["summary"])
    assert (told["Cost"], told["Wins"]) == ([keys["cost"]], [keys["wins"]] * ("wins" in keys))
    assert [LINK.sub(r"\1", text) for text in told["Reference"]] == [keys["reference"]]
    assert parameters(told) == keys.get("parameters", {})
    wanted = [{of: str(size) for of, size in part.items()} for part in keys.get("parts", [])]
    assert parts(told) == wanted


@every_algorithm
def test_the_page_says_what_an_algorithm_needs_and_nothing_else(name):
    keys, needs = KEYS[name], list(TOLD[name][2]["Needs"])
    for constraint in keys.get("constraints", ()):
        needs.remove(CONSTRAINTS[constraint])
    limits = {
        (word, unit): int(number.replace(",", ""))
        for need in needs
        for word, number, unit in LIMIT.findall(need)
    }
    assert limits == {what: keys[key] for key, what in LIMITS.items() if key in keys}
    places = [need for need in needs if not LIMIT.fullmatch(need)]
    assert len(places) == ("needs" in keys)
    for place in places:
        word = "scheme" if keys["needs"] in ("aapc", "hosts") else "construction"
        made = f"made from its `{keys['needs']}`, {word} `{keys.get('kind')}`"
        served = PLACES.get(keys["needs"])
        both = f"{served}; made from its `{keys['needs']}`"
        assert place in (served, both) or place.endswith(made)


@pytest.mark.parametrize(
    ("old", "new", "status"), [("", "", 0), ("**8192**", "**4096**", 1), ("## alltoall\n", "", 1)]
)
def test_check_finds_a_stale_page_and_the_script_makes_it_anew(
    old, new, status, tmp_path, monkeypatch, capsys
):
    page = tmp_path / "catalogue.md"
    page.write_text(TEXT.replace(old, new, 1), encoding="utf-8")
    monkeypatch.setitem(MAIN.__globals__, "PAGE", page)
    assert MAIN(["--check"]) == status
    assert ("not up to date" in capsys.readouterr().err) == bool(status)
    assert MAIN([]) == 0
    assert page.read_text(encoding="utf-8") == TEXT
