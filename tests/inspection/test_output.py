"""What `stagegen inspect` prints, and its page."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from stagegen.cli import group
from stagegen.inspection.findings import tree_findings
from stagegen.inspection.look import looks_at
from stagegen.inspection.series import series_of
from stagegen.inspection.trace import read_trace
from stagegen.report.inspection_page import render_inspection
from stagegen.report.units import format_seconds
from tests.inspection import made
from tests.inspection.reading import calls, trace_of, us

#: Of the root: shares in percent by places.
ORDERS = {
    "arrival": [
        ("rank 0", ["100.0", "0.0", "0.0"]),
        ("rank 1", ["0.0", "75.0", "25.0"]),
        ("node of rank 2", ["0.0", "25.0", "75.0"]),
    ],
    "departure": [
        ("node of rank 2", ["100.0", "0.0", "0.0"]),
        ("rank 1", ["0.0", "100.0", "0.0"]),
        ("rank 0", ["0.0", "0.0", "100.0"]),
    ],
}


ENDS = ("fastest", "slowest")


#: What the page has of each file, as the text has: Tables 1 to 4, nodes, hotspots.
PAGE = (
    "Order of arrivals and departures at the node of rank 0",
    "Stages of the fastest rank, 0",
    "Stages of the slowest rank, 3",
    "Parts of the tree",
    "By messages between hosts on the way<",
    "<th>1 message, slowest (3)</th>",
    "<th>wrapper</th>",
    "Hotspots",
)


def test_names_of_routines_are_whole(tmp_path):
    name = f"allreduce/configured_tree_{'n' * 80}"
    assert trace_of(tmp_path, calls(1), routine=name).routines == (name,)


def test_hosts_may_have_names_that_look_like_markup(tmp_path, capsys):
    world = replace(made.TWO_HOSTS, hosts=("[/b]", "[/b]", "[red]", "[red]"))
    file = made.write(tmp_path / "[bold]", "allreduce/tree", calls(2), world)
    group(["inspect", str(file), str(file), "--skip", "0"], standalone_mode=False)
    text = capsys.readouterr().out
    assert all(name in text for name in ("[/b]", "[red]", "[bold]"))


def test_the_last_row_of_the_stages_is_the_time_of_a_call_on_that_rank(tmp_path, capsys):
    """Rank 3 begins 40 later in the second call, in which the others wait for it."""
    two = [*calls(1), made.two_levels(9000.0, {3: 40.0})]
    file = made.write(tmp_path / "events", "allreduce/tree", two, made.TWO_HOSTS)
    (one,) = series_of(read_trace(file), 0).series
    found = tree_findings(one)
    for rank, least, most in ((2, 73, 113), (3, 77, 77)):
        title, spread = found.ranks[rank].spreads()[-1]
        assert title == "time of a call"
        assert (spread.least, spread.greatest) == (us(least), us(most))
        assert (spread.mean, spread.stdev) == (us((least + most) / 2), us((most - least) / 2))
        titles = [title for title, _ in found.ranks[rank].spreads()]
        assert titles[:-1] == [stage.title for stage in found.ranks[rank].stages]
    page = tmp_path / "page.html"
    words = ["inspect", str(file), "--skip", "0"]
    group([*words, "--html", str(page)], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split()[4:] for line in lines if line.startswith(" time of a call ")]
    fast, slow = (
        [cell for value in (s.mean, s.median, s.stdev, s.least, s.greatest, s.low, s.high)
         for cell in format_seconds(value).split()]
        for s in (rank.spreads()[-1][1] for rank in (found.fastest, found.slowest))
    )  # fmt: skip
    assert rows == [fast, slow]
    assert page.read_text(encoding="utf-8").count('<td class="l">time of a call</td>') == 2
    group([*words, "--json"], standalone_mode=False)
    (told,) = json.loads(capsys.readouterr().out)["series"]
    assert told["tree"]["ranks"][2]["call"]["max_s"] == us(113)


def test_text_json_and_page_tell_of_two_files(tmp_path, capsys):
    files = []
    for name, late in (("one", None), ("two", {1: 300.0})):
        files.append(
            str(made.write(tmp_path / name, "allreduce/tree", calls(14, late), made.TWO_HOSTS))
        )
    page = tmp_path / "page.html"
    group(["inspect", *files, "--html", str(page)], standalone_mode=False)
    text = capsys.readouterr().out
    assert "slowest rank (3)" in text
    assert "message between hosts 0, down" in text
    group(["inspect", *files, "--json"], standalone_mode=False)
    form = json.loads(capsys.readouterr().out)
    assert [one["file"] for one in form["series"]] == ["one", "two"]
    assert all(one["calls"] == 4 for one in form["series"])
    drawn = page.read_text(encoding="utf-8")
    assert drawn.count("<svg") == 2 + 1 + 2
    for words in PAGE:
        assert drawn.count(words) == 2, words
    assert render_inspection(looks_at(tmp_path / "one")) == render_inspection(
        looks_at(tmp_path / "one")
    )


def test_text_and_page_have_the_orders_of_each_contributor(tmp_path, capsys):
    """In one of four calls, rank 1 comes after the node of rank 2."""
    mixed = [*calls(3), made.two_levels(9000.0, {1: 500.0})]
    file = str(made.write(tmp_path / "events", "allreduce/tree", mixed, made.TWO_HOSTS))
    page = tmp_path / "page.html"
    group(["inspect", file, "--skip", "0", "--html", str(page)], standalone_mode=False)
    text = " ".join(capsys.readouterr().out.split())
    drawn = re.sub(r"\s+", " ", page.read_text(encoding="utf-8"))
    for word, rows in ORDERS.items():
        assert f"order of {word}s at the node of rank 0 contributor 1. {word[:3]}" in text
        told = " ".join(f"{name} {' '.join(f'{share}%' for share in row)}" for name, row in rows)
        assert told in text
        head = "".join(f"<th>{place}. {word}</th>" for place in (1, 2, 3))
        assert f'<th class="l">contributor</th>{head}' in drawn
        for name, row in rows:
            cells = re.search(rf'<th class="l">{name}</th>((?:<td[^<]*</td>)+)', drawn)
            assert cells is not None
            drawn = drawn[: cells.start()] + drawn[cells.end() :]
            assert re.findall(r">([\d.]+) %<", cells[1]) == row
    assert "<summary>Node of rank 0 on a, 3 contributors</summary>" in drawn
    assert "<summary>Node of rank 2 on b, 2 contributors</summary>" in drawn


def test_a_wide_node_has_as_many_places_in_the_text_as_fit(tmp_path, capsys):
    ranks = range(1, 30)
    root = (*(made.received(r, 10 + r) for r in ranks), *(made.sent(r, 90 + r) for r in ranks))
    others = ((made.sent(0, 1), made.received(0, 200)) for _ in ranks)
    wide = made.MadeCall([0.0] * 30, [300.0] * 30, [root, *others])
    world = made.World(("a",) * 30, (0.0,) * 30)
    file = str(made.write(tmp_path / "events", "allreduce/star", [wide], world))
    group(["inspect", file, "--skip", "0"], standalone_mode=False)
    text = capsys.readouterr().out
    assert text.count("… of 30 places and 30 rows: see --json") == 3
    assert text.count("12. dep") == 2
    assert "13. dep" not in text
    (second,) = re.findall(r"^ 2\. arrival +(.*?) *$", text, re.MULTILINE)
    assert second.split() == ["100.0%"] + ["0.0%"] * 11
