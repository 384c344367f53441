"""The numbers of docs/figures/fig_3_25.json are those that its script makes."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
TOOLS = FIGURES.parent / "tools" / "figures"


def test_the_script_gives_the_first_point_of_the_figure_again():
    pytest.importorskip("matplotlib")
    script = runpy.run_path(str(TOOLS / "fig_3_25.py"))
    numbers = json.loads((FIGURES / "fig_3_25.json").read_text())
    first, *others = script["HOSTS"]
    assert [int(hosts) for hosts in numbers["hops"]] == [first, *others]
    made = json.loads(json.dumps(script["measure"](first)))
    assert made == numbers["hops"][str(first)]
