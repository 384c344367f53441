"""Everything that can be wrong in a topology file: the line, and words of the message."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.errors import InputError
from stagegen.topology import load_topology

GOOD = """\
name: good
defaults: {bandwidth: 100Mbit, latency: 50us}
switches:
  s0: {hosts: [n0, n1]}
  s1: {hosts: "n[2-3]"}
  core: {}
links:
  - {ends: [s0, core]}
  - {ends: [core, s1], bandwidth: 1Gbit, count: 2}
hosts:
  n3: {slots: 2, address: 10.0.0.3}
ranks: block
launcher: lab
groups:
  left: [n0, n1]
  two-four: "n[1,3]"
sites:
  west: [s0, core]
  east: s1
"""

REPLACED = [
    # (what is replaced in the good file, by what, line, part of the message)
    ("name: good", "title: good", 1, "unknown key 'title' in the topology"),
    ("name: good", "nam: good", 1, "unknown key 'nam' in the topology; did you mean 'name'?"),
    ("name: good\n", "", 1, "has no 'name'"),
    ("name: good", "name: Good", 1, "must consist of a-z, 0-9"),
    ("name: good", "name: ../x", 1, "must consist of a-z, 0-9"),
    ("name: good", "name: -x", 1, "must consist of a-z, 0-9"),
    ("name: good", "name: 12", 1, 'write "12"'),
    ("name: good", "name: [good]", 1, "single value"),
    ("name: good", "name:", 1, "empty"),
    ("launcher: lab", "launcher: Lab", 13, "launcher 'Lab' must consist of a-z, 0-9"),
    ("launcher: lab", "name: twice", 13, "'name' is already given on line 1"),
    ("100Mbit", "100MB", 2, "unknown unit 'MB'"),
    ("100Mbit", "100MBps", 2, "'100MBps' is in bytes per second"),
    ("100Mbit", "-100Mbit", 2, "not positive"),
    ("100Mbit", "0", 2, "not positive"),
    ("100Mbit", "fast", 2, "'fast' is no bandwidth"),
    ("50us", "50", 2, "has no unit"),
    ("50us", "-1us", 2, "negative"),
    ("latency: 50us", "latncy: 50us", 2, "did you mean 'latency'?"),
    ("latency: 50us", "bandwidth: 1bit", 2, "already given on line 2"),
    ("defaults: {bandwidth: 100Mbit, latency: 50us}", "defaults: 100Mbit", 2, "must be a mapping"),
    ("{hosts: [n0, n1]}", "[n0, n1]", 4, "switch s0 must be a mapping"),
    ("{hosts: [n0, n1]}", "{host: [n0, n1]}", 4, "did you mean 'hosts'?"),
    ("[n0, n1]", "[n0, n0]", 4, "host n0 is already under switch s0 (line 4)"),
    ("[n0, n1]", "[n0, s1]", 4, "s1 is a switch already (line 5)"),
    ("[n0, n1]", "[n0, N2]", 5, "hosts N2 (line 4) and n2 differ only in case"),
    ("[n0, n1]", "[n0, n/1]", 4, "must consist of letters"),
    ("[n0, n1]", "[n0, -n]", 4, "must consist of letters"),
    ("[n0, n1]", "[n0, 1]", 4, 'write "1"'),
    ("[n0, n1]", "[n0, no]", 4, 'write "no"'),
    ("[n0, n1]", "[n0, null]", 4, "empty"),
    ("[n0, n1]", "[n0, [n1]]", 4, "single value"),
    ("[n0, n1]", "{n0: n1}", 4, "single value"),
    ('"n[2-3]"', '"n[1-3]"', 5, "host n1 is already under switch s0 (line 4)"),
    ('"n[2-3]"', '"n[3-2]"', 5, "backwards"),
    ('"n[2-3]"', '"n[2-3"', 5, "not closed"),
    ("  s1: {", "  s0: {", 5, "'s0' is already given on line 4"),
    ("  core: {}", "  co re: {}", 6, "must consist of letters"),
    ("  core: {}", "  7: {}", 6, 'write "7"'),
    ("[s0, core]", "[s0, cor]", 8, "unknown switch 'cor'; did you mean 'core'?"),
    ("[s0, core]", "[s0, n2]", 8, "n2 is a host"),
    ("[s0, core]", "[s0, s0]", 8, "linked to itself"),
    ("[s0, core]", "[s0]", 8, "two ends, not 1"),
    ("[s0, core]", "[s0, core, s1]", 8, "two ends, not 3"),
    ("[s0, core]", "s0", 8, "ends must be a list"),
    ("{ends: [s0, core]}", "[s0, core]", 8, "a link must be a mapping"),
    ("{ends: [s0, core]}", "{bandwidth: 1Gbit}", 8, "has no 'ends'"),
    ("{ends: [s0, core]}", "{end: [s0, core]}", 8, "did you mean 'ends'?"),
    ("[core, s1]", "[core, s0]", 9, "already linked on line 8"),
    ("[core, s1]", "[s0, s1]", None, None),
    ("  - {ends: [s0, core]}\n", "", 5, "not connected to switch s0: s1, core"),
    ("count: 2", "count: 0", 9, "at least 1"),
    ("count: 2", "count: two", 9, "whole number"),
    ("count: 2", "count: 1.5", 9, "whole number"),
    ("count: 2", "count: 1000001", 9, "1,000,001 cables of 1Gbit are more than 1000Tbit together"),
    ("100Mbit", "1001Tbit", 2, "'1001Tbit' is more than 1000Tbit"),
    ("links:\n", "links:\n  - {ends: [s0, s1]}\n", 10, "s1–s0, s0–core, core–s1 form a cycle"),
    ("links:\n", "links: {}\nlaunch:\n", 8, "did you mean 'launcher'?"),
    ("  n3: {slots", "  n9: {slots", 11, "host n9 is under no switch"),
    ("  n3: {slots", "  3: {slots", 11, 'write "3"'),
    ("slots: 2", "slots: 0", 11, "at least 1"),
    ("slots: 2", "slots: -1", 11, "at least 1"),
    ("slots: 2", "slots: many", 11, "whole number"),
    ("slots: 2", "slots: 99999999", 11, "at most 4,096"),
    ("slots: 2", "slots: 99999999999", 11, "at most 4,096"),
    ("slots: 2", "slots: 1" + "0" * 5000, 11, "at most 4,096"),
    ("slots: 2", "<<: {slots: 2}", 11, "which merges mappings; write its keys out"),
    ("slots: 2", "slot: 2", 11, "did you mean 'slots'?"),
    ("address: 10.0.0.3", "address: a b", 11, "neither a host name nor an IP address"),
    ("address: 10.0.0.3", "address: -oProxyCommand=x", 11, "neither a host name nor an IP"),
    ("  n3:", "  n2: {address: 10.0.0.3}\n  n3:", 12, "already that of host n2 (line 11)"),
    ("  n3:", "  n2: {address: root@10.0.0.3}\n  n3:", 12, "already that of host n2 (line 11)"),
    ("address: 10.0.0.3", "address: N0", 11, "the name of another host, n0 (line 4)"),
    ("  n3: {slots", '  "n[2-3]": {slots', 11, "one address cannot serve 2 hosts"),
    ("ranks: block", "  n3: {}\nranks: block", 12, "'n3' is already given on line 11"),
    ("ranks: block", '  "n[3]": {}\nranks: block', 12, "already described on line 11"),
    ("ranks: block", "ranks: blok", 12, "unknown ranks 'blok'; did you mean 'block'?"),
    ("ranks: block", "ranks: [n0, n8]", 12, "unknown host 'n8'"),
    ("ranks: block", "ranks: [n0, n0]", 12, "names host n0 2 times, but it has slots: 1"),
    ("ranks: block", "ranks: []", 12, "empty list"),
    ("ranks: block", "ranks: {n0: 1}", 12, "single value"),
    ("ranks: block", "spanning_tree: {root: x}", 12, "root 'x' is no switch"),
    ("ranks: block", "spanning_tree: {}", 12, "has no 'root'"),
    ("ranks: block", "ranks: [n0, n1", 13, "expected ',' or ']'"),
    ("  s1: {", "\ts1: {", 5, "tab"),
    ("ranks: block", "ranks: &a *a", 12, None),
    ("ranks: block", "ranks: !!python/object:os.system block", 12, None),
    ("groups:", "group:", 14, "did you mean 'groups'?"),
    ("left:", "Left:", 15, "group 'Left' must consist of a-z, 0-9 and '-'"),
    ("left:", "le_ft:", 15, "must consist of a-z, 0-9 and '-', as in left-half"),
    ("left:", "-left:", 15, "must consist of a-z"),
    ("left:", "7:", 15, 'write "7"'),
    ("left:", "whole:", 15, "the group whole is all ranks; give this one another name"),
    ("two-four:", "left:", 16, "'left' is already given on line 15"),
    ("left: [n0, n1]", "left: [n0, n8]", 15, "group left names the unknown host 'n8'"),
    ("left: [n0, n1]", "left: [n0, s0]", 15, "group left names the unknown host 's0'"),
    ("left: [n0, n1]", "left: [n0, n1, n0]", 15, "group left names host n0 twice"),
    ("left: [n0, n1]", 'left: "n[0-1"', 15, "not closed"),
    ("left: [n0, n1]", "left: {n0: n1}", 15, "single value"),
    ("left: [n0, n1]", "left:", 15, "empty"),
    ("left: [n0, n1]", "left: []", 15, "group left has no rank; name hosts with two ranks"),
    ("left: [n0, n1]", "left: [n0]", 15, "group left has one rank only"),
    ("left: [n0, n1]", 'left: "n[0-3]"', 15, "has the same hosts as whole, which is always there"),
    ('two-four: "n[1,3]"', "two-four: [n1, n0]", 16, "the same hosts as left (line 15)"),
    ("ranks: block", "ranks: [n0, n1, n2]", 16, "group two-four: host n3 has no rank"),
    ("sites:", "site:", 17, "did you mean 'sites'?"),
    ("west:", "West:", 18, "site 'West' must consist of a-z, 0-9 and '-'"),
    ("west:", "7:", 18, 'write "7"'),
    ("east:", "west:", 19, "'west' is already given on line 18"),
    (
        "west: [s0, core]",
        "west: [s0, s2]",
        18,
        "site west names the unknown switch 's2'",
    ),
    ("west: [s0, core]", "west: [s0, n0]", 18, "site west names the unknown switch 'n0'"),
    ("west: [s0, core]", "west: [core, core]", 18, "switch core is already in site west (line 18)"),
    ("west: [s0, core]", "west: [core]", 18, "site west has no hosts; name a switch with hosts"),
    ("west: [s0, core]", "west:", 18, "empty"),
    ("east: s1", "east: s0", 19, "switch s0 is already in site west (line 18)"),
    ("  east: s1\n", "", 18, "one site makes no difference; name two or more"),
    ("east: s1", "east: {s1: 1}", 19, "single value"),
    ("launcher: lab", "--- \nname: x", 13, "single document"),
    ("launcher: lab", "launcher: \x07", 13, "control character"),
]

WHOLE = [
    ("", 1, "empty"),
    ("# nothing\n", 1, "empty"),
    ("- a\n", 1, "the topology must be a mapping"),
    ("hello\n", 1, "the topology must be a mapping"),
    ("name: a\n", 1, "has no 'switches'"),
    ("name: a\nswitches:\n", 2, "switches must be a mapping"),
    ("name: a\nswitches: {}\n", 2, "no switch"),
    ("name: a\nswitches: {s0: {}}\n", 2, "no switch has a host"),
    (
        "name: a\nswitches:\n  s0:\n  s1: {hosts: []}\nlinks: [{ends: [s0, s1]}]\n",
        3,
        "no switch has",
    ),
    ("name: a\nswitches:\n  s0: {hosts: [a]}\n  s1: {hosts: [b]}\n", 4, "not connected"),
    ("[" * 5000, 1, "nested too deeply"),
]


def fail_to_load(path, data: bytes) -> InputError:
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_topology(path)
    assert caught.value.exit_status == 2
    assert caught.value.file == path
    return caught.value


def test_the_good_file_is_good(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    assert load_topology(path).rank_count == 5


@pytest.mark.parametrize(("old", "new", "line", "part"), REPLACED)
def test_a_mistake_is_reported_with_its_line(tmp_path, old, new, line, part):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if line is None:
        (tmp_path / "t.yaml").write_text(text)
        assert load_topology(tmp_path / "t.yaml").rank_count == 5
        return
    error = fail_to_load(tmp_path / "t.yaml", text.encode())
    assert error.line == line, error
    assert str(error).startswith(f"{tmp_path / 't.yaml'}:{line}: ")
    assert part is None or part in error.message
    assert "\n" not in error.message


@pytest.mark.parametrize(("text", "line", "part"), WHOLE)
def test_a_wrong_file_is_reported_with_its_line(tmp_path, text, line, part):
    error = fail_to_load(tmp_path / "t.yaml", text.encode())
    assert (error.line, part in error.message) == (line, True), error


def test_what_is_not_utf8_is_reported_with_its_line(tmp_path):
    error = fail_to_load(tmp_path / "t.yaml", GOOD.replace("n1]", "n\xe9]").encode("latin-1"))
    assert error.line == 4
    assert "UTF-8" in error.message


def test_a_missing_file_and_a_folder_cannot_be_read(tmp_path):
    for path in (tmp_path / "no.yaml", tmp_path):
        with pytest.raises(InputError) as caught:
            load_topology(path)
        assert str(path) in str(caught.value)
        assert "cannot read it" in str(caught.value)


@given(st.data())
def test_no_damage_gives_a_traceback(tmp_path_factory, data):
    """Whatever is cut out of or put into a file, the loader answers or says what is wrong."""
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, min(len(GOOD), start + 30)))
    junk = data.draw(st.text("{}[]:,-&*!|>'\"\n \t#%@`s0n19\x00é", max_size=8))
    path = tmp_path_factory.getbasetemp() / "damaged.yaml"
    path.write_text(GOOD[:start] + junk + GOOD[end:], encoding="utf-8")
    with contextlib.suppress(InputError):
        load_topology(path)
