"""Parts of C files that belong to a feature; a library without it has nothing of them."""

from __future__ import annotations

import pytest

from stagegen.adaptive.known import NOTHING_KNOWN
from stagegen.data import TEMPLATES
from stagegen.errors import GenerateError
from stagegen.generate.features import ADAPTIVE, FEATURES, with_features
from stagegen.library import library_files
from tests.mpi import builds, support

TEXT = "a\n#ifdef COLL_ADAPTIVE\nb\n#else\nc\n#endif\n#ifdef OTHER\nd\n#endif\n"
REST = "#ifdef OTHER\nd\n#endif\n"


def test_only_the_parts_of_wanted_features_stay():
    assert with_features(TEXT, {ADAPTIVE}, "name") == f"a\nb\n{REST}"
    assert with_features(TEXT, set(), "name") == f"a\nc\n{REST}"
    assert with_features(REST, set(), "name") == REST


@pytest.mark.parametrize(
    "text",
    ["#ifdef COLL_ADAPTIVE\n", "#ifdef COLL_ADAPTIVE\n#if 1\n#endif\n#endif\n",
     "#ifdef COLL_ADAPTIVE\n#ifdef COLL_ADAPTIVE\n#endif\n"],
)  # fmt: skip
def test_a_part_that_does_not_end_is_an_error_with_its_file(text):
    with pytest.raises(GenerateError, match="name"):
        with_features(text, FEATURES, "name")


def test_a_library_has_no_file_of_adaptive_calls_unless_it_is_asked_for():
    topology, catalogue = support.cluster(4), builds.small_catalogue()
    decision = support.decision(topology, catalogue)
    plain = library_files(topology, catalogue, decision)
    adaptive = library_files(topology, catalogue, decision, NOTHING_KNOWN)
    own = {path.name.removesuffix(".j2") for path in (TEMPLATES / "adaptive").glob("*.[ch]*")}
    assert {name.removeprefix("src/") for name in set(adaptive) - set(plain)} >= own
    assert set(plain) < set(adaptive)
    assert all("#ifdef COLL_ADAPTIVE" not in text for text in adaptive.values())


def test_leaving_out_features_changes_no_other_line():
    """No line that is not of a part changes, whatever features are wanted."""
    for path in sorted((TEMPLATES / "libcoll").iterdir()):
        text = path.read_text(encoding="utf-8")
        without = with_features(text, set(), path.name)
        kept = iter(text.splitlines())
        assert all(line in kept for line in without.splitlines()), path
        assert ADAPTIVE not in without
