"""The sample of `docs/add-an-algorithm.md` works as the page says: one file, and it is there."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from stagegen.data import TEMPLATES
from stagegen.generate import Renderer, build, measuring_sources, write_files
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.live import start_session
from stagegen.repository import load_catalogue
from stagegen.tune.candidates import variants
from tests.mpi import support

pytestmark = pytest.mark.mpi

PAGE = Path(__file__).parents[2] / "docs" / "add-an-algorithm.md"


@pytest.fixture(scope="module")
def catalogue_root(tmp_path_factory) -> Path:
    """A copy of the templates with the page's sample in it, under the name that the page says."""
    text = PAGE.read_text(encoding="utf-8")
    (name,) = re.findall(r"Save it as\s+`templates/([\w/.]+)`", text)
    (sample,) = re.findall(r"^```c\.j2\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    root = tmp_path_factory.mktemp("copy") / "templates"
    shutil.copytree(TEMPLATES, root)
    (root / name).write_text(sample, encoding="utf-8")
    return root


def sample_of(root: Path):
    (sample,) = set(load_catalogue(root).algorithms) - set(load_catalogue().algorithms)
    return sample


def test_the_catalogue_has_it(catalogue_root):
    sample = sample_of(catalogue_root)
    assert sample.routine == "allgather_gather_and_pass_on"
    assert [parameter.name for parameter in sample.parameters] == ["segment_size"]


@pytest.mark.parametrize("ranks", [2, 5])
def test_it_gives_the_same_bytes_as_native(catalogue_root, tmp_path, ranks):
    topology = support.cluster(ranks)
    catalogue = load_catalogue(catalogue_root)
    renderer = Renderer("a test", topology.name, topology.hash, catalogue.hash, catalogue_root)
    write_files(tmp_path, measuring_sources(topology, catalogue, renderer))
    build(tmp_path, support.toolchain())
    candidates = list(variants(sample_of(catalogue_root)))
    assert len(candidates) == 3
    session, _ = start_session(LocalLauncher(), topology, tmp_path / "session", tmp_path)
    with closing(session):
        for check in session.check("allgather", candidates, 120):
            assert check.cases > 10
            assert (check.wrong, check.first_wrong) == (0, "")


def test_the_page_names_every_key_of_front_matters():
    text = PAGE.read_text(encoding="utf-8")
    source = (PAGE.parents[1] / "stagegen/repository/front_matter.py").read_text(encoding="utf-8")
    keys = re.findall(r'values\.take\("(\w+)"', source)
    assert len(keys) > 7
    for key in keys:
        assert f"`{key}`" in text
