"""Descriptions of collectives: mistakes are reported with their place; what follows from them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from stagegen.catalogue import load_collectives
from stagegen.catalogue.collective import UNITS, sizes_in_words
from stagegen.errors import InputError
from stagegen.measure.records import Timing
from stagegen.tune.scope import Options
from stagegen.tune.sizes import sizes_of

COLLECTIVES = {one.name: one for one in load_collectives()}
GOOD = """summary: The root gets the block of every rank.
arguments: [sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm]
send: one
recv: all
in_place: sendbuf
size: rank
bound: gather
plan: gather
view: send the block
"""

# (what is replaced, by what, line, what the message says)
MISTAKES = {
    "not YAML": ("arguments: [", "arguments: ]", 2, "the description is not YAML"),
    "no summary": ("summary: The root gets the block of every rank.\n", "", 1, "lacks `summary`"),
    "unknown key": (
        "bound: gather",
        "bound: gather\nroot: 0",
        8,
        "unknown in the description: root",
    ),
    "unknown argument": ("sendcount", "howmany", 2, "`arguments`: expected a list of sendbuf"),
    "no list": ("size: rank", "size: [rank]", 6, "`size`: expected one of pair, rank"),
    "twice the same": ("recvcount", "count, recvcount", 2, "two arguments are the same thing"),
    "two kinds of counts": ("sendcount", "sendcount, sendcounts", 3, "`send`: needs sendbuf"),
    "no communicator": ("root, comm", "comm, root", 2, "`arguments`: the last one has to be comm"),
    "nothing to send": ("send: one", "send: nothing", 3, "`send`: needs sendbuf with count"),
    "no type": ("recvtype, ", "", 4, "`recv`: needs a buffer, a count or counts, and a type"),
    "no such buffer": ("in_place: sendbuf", "in_place: buffer", 5, "`in_place`: expected one of"),
    "no data": ("size: rank", "size: none", 6, "`size`: has to be none if there is no data"),
    "no blocks": ("recv: all", "recv: one", 6, "`size`: has to be whole"),
    "one length": ("size: rank", "size: unknown", 6, "is unknown only if blocks differ"),
    "no bound": ("bound: gather", "bound: gossip", 7, "`bound`: expected one of alltoall"),
}


@pytest.mark.parametrize(("old", "new", "line", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_with_its_file_and_line(tmp_path, old, new, line, message):
    path = tmp_path / "gather" / "collective.yaml"
    path.parent.mkdir()
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_collectives(tmp_path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)


def test_a_right_description_is_read(tmp_path):
    path = tmp_path / "gather" / "collective.yaml"
    path.parent.mkdir()
    path.write_text(GOOD, encoding="utf-8")
    assert load_collectives(tmp_path) == (replace(COLLECTIVES["gather"], view="send the block"),)


OPTIONS = Options(tuple(COLLECTIVES), (1, 1024), Timing(), 1.0)


@pytest.mark.parametrize(
    ("collective", "sizes"),
    [
        ("alltoall", (1, 1024)),
        ("alltoallv", (1, 1024)),
        ("barrier", (0,)),
        ("bcast", (1, 1024, 4096)),
        ("reduce_scatter", (1, 1024, 4096)),
        ("reduce_scatter_block", (1, 1024)),
    ],
)
def test_a_collective_is_measured_at_sizes_that_say_what_they_count(collective, sizes):
    assert sizes_of(COLLECTIVES[collective], OPTIONS, 4) == sizes


def test_what_sizes_count_is_listed_in_words():
    few = [COLLECTIVES[name] for name in ("alltoall", "alltoallv", "barrier", "bcast", "gather")]
    told = (
        "per pair of ranks (alltoall, alltoallv), per rank (gather) or of the whole message (bcast)"
    )
    assert sizes_in_words(few) == told
    assert sizes_in_words(few[-1:]) == "per rank (gather)"


def test_the_page_of_interfaces_says_what_sizes_count():
    page = Path(__file__).parents[2] / "docs" / "interfaces.md"
    (section,) = re.findall(
        r"^### Message sizes$(.*?)^#", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    told = {name: text for names, text in rows for name in names.split(", ")}
    for one in COLLECTIVES.values():
        assert told[one.name].startswith(UNITS[one.size])
