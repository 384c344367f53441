"""The schedule that the README shows is what its command draws today."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from stagegen.cli import group

pytest.importorskip("matplotlib", reason="pictures need the extra `report`")

README = Path("README.md")
PICTURE = Path("docs/figures/alltoall-chain-4x4-cyclic.svg")
SVG = "{http://www.w3.org/2000/svg}"


def drawn(form: bytes) -> tuple[list[str], dict[str, list[tuple[int, ...]]]]:
    """Return the texts, and of every named group its corners in points: Matplotlib's versions
    differ in how they write them."""
    root = ElementTree.fromstring(form)
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    named = {
        g.get("id", ""): [
            tuple(round(float(n)) for n in re.findall(r"-?\d+\.?\d*", path.get("d", "")))
            for path in g.iter(f"{SVG}path")
        ]
        for g in root.iter(f"{SVG}g")
        if re.match(r"messages|link-|row-|switch-", g.get("id", ""))
    }
    return texts, named


def test_the_command_draws_the_picture(tmp_path):
    (line,) = re.findall(
        rf"stagegen (schedule alltoall [^`]*--output {PICTURE})", README.read_text()
    )
    *arguments, output = shlex.split(line.replace("\\\n", ""))
    assert Path(output) == PICTURE
    result = CliRunner().invoke(group, [*arguments, str(tmp_path / "now.svg")])
    assert result.exit_code == 0, result.output
    texts, named = drawn((tmp_path / "now.svg").read_bytes())
    assert (texts, named) == drawn(PICTURE.read_bytes())
    assert len(named["messages"]) == 16 * 15
    assert f"]({PICTURE})" in README.read_text()
