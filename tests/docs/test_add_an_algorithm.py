"""The sample of `docs/add-an-algorithm.md` works as the page says: one file, and it is there."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from stagegen.catalogue import Algorithm, load_catalogue
from stagegen.data import TEMPLATES
from stagegen.errors import InputError
from stagegen.generate import Renderer, measuring_sources, run_make, session_build, write_files
from stagegen.measure.launch.local import LocalLauncher
from stagegen.measure.live import start_session
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


def test_the_catalogue_has_the_sample(catalogue_root):
    sample = sample_of(catalogue_root)
    assert sample.routine == "allgather_gather_and_pass_on"
    assert [parameter.name for parameter in sample.parameters] == ["segment_size"]


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.slow), 5])
def test_the_sample_gives_the_same_bytes_as_native(catalogue_root, tmp_path, ranks):
    topology = support.cluster(ranks)
    catalogue = load_catalogue(catalogue_root)
    hashes = (topology.hash, catalogue.hash)
    renderer = Renderer("a test", topology.name, *hashes, catalogue.templates)
    write_files(tmp_path, measuring_sources(session_build(topology, catalogue), renderer))
    run_make(tmp_path, support.toolchain())
    candidates = list(variants(sample_of(catalogue_root), 1024, ranks))
    assert len(candidates) == 3
    session, _ = start_session(LocalLauncher(), topology, tmp_path / "session", tmp_path)
    with closing(session):
        for check in session.check("allgather", candidates, 120):
            assert check.cases > 10
            assert (check.wrong, check.first_wrong) == (0, "")


def keys_of_the_page() -> list[str]:
    """The keys in the table of front matters."""
    text = PAGE.read_text(encoding="utf-8")
    table = re.search(
        r"^## The front matter$.*?^\| key \| \|$(.*?)^$", text, re.DOTALL | re.MULTILINE
    )
    assert table
    cells = re.findall(r"^\| (`.*?`) \|", table[1], re.MULTILINE)
    return [key for cell in cells for key in re.findall(r"`(\w+)`", cell)]


def test_the_page_has_a_line_for_all_that_a_front_matter_says_of_an_algorithm():
    """What an algorithm is beyond its place in the folders and its hash is in its front matter."""
    others = {"collective", "name", "template", "hash", "construction"}
    said = {field.name for field in fields(Algorithm)} - others | {"variants", "kind"}
    assert sorted(keys_of_the_page()) == sorted(said)


@pytest.mark.parametrize("key", keys_of_the_page())
def test_each_key_of_the_page_is_read(key, tmp_path):
    """A value that no key may have is refused for what it is, not as that of an unknown key."""
    known = {"summary": "It works.", "cost": "α", "reference": "Faraj 2006, §1", "scratch": 0}
    text = yaml.safe_dump({**known, key: [[]]})
    for folder in ("bcast", "libcoll"):
        (tmp_path / folder).mkdir()
    shutil.copy(TEMPLATES / "bcast" / "collective.yaml", tmp_path / "bcast")
    (tmp_path / "libcoll" / "native.c.j2").write_text(f"{{#---\n{text}---#}}\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"the front matter's `{key}`: "):
        load_catalogue(tmp_path)
