"""Generated C is deterministic, dateless and formatted; files are written whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stagegen.catalogue import Algorithm, applicable
from stagegen.catalogue.cluster_schedules import LEADER_BYTES
from stagegen.catalogue.templates import templates_of
from stagegen.data import TEMPLATES, TOPOLOGIES
from stagegen.errors import GenerateError
from stagegen.generate import (
    Renderer,
    Toolchain,
    measuring_sources,
    run_make,
    session_build,
    write_files,
)
from stagegen.generate.render import c_comment, unbroken
from stagegen.generate.write import write_file
from stagegen.library import library_files
from stagegen.topology import load_topology
from tests.mpi import support
from tests.strategies import make_topology

CLUSTERS = ["fig-3-2", "single-16", "chain-4x4-cyclic", "quickstart", "several-ranks"]
OWN = {"several-ranks": make_topology([1, 2, 2], [0, 1], slots={"n0": 2, "n3": 3})}
FORMATTER = Path(sys.executable).parent / "clang-format"


def renderer(root: Path = TEMPLATES) -> Renderer:
    return Renderer("a command", "name", "0" * 64, "1" * 64, templates_of(root))


def generated(name: str) -> dict[str, str]:
    topology = OWN.get(name) or load_topology(TOPOLOGIES / f"{name}.yaml")
    files = library_files(topology, support.CATALOGUE, support.decision(topology))
    session = measuring_sources(session_build(topology, support.CATALOGUE), renderer())
    return {**files, **{f"session/{name}": text for name, text in session.items()}}


@pytest.fixture(scope="module", params=CLUSTERS)
def files(request) -> dict[str, str]:
    return generated(request.param)


def test_the_same_inputs_give_the_same_bytes(request):
    script = (
        "import sys, json; sys.path.insert(0, '.');"
        "from tests.generate.test_generate import generated;"
        "print(json.dumps(generated('fig-3-2')))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            check=True,
            cwd=request.config.rootpath,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 10000


def test_files_have_no_dates_and_no_paths(files):
    for name, text in files.items():
        assert not re.search(r"\b20[2-9]\d-\d\d-\d\d\b|__DATE__|__TIME__", text), name
        paths = re.findall(r"(?<![\w.$)}*])/(?:home|root|tmp|work|usr|var)/\S*", text)
        assert set(paths) <= {"/usr/local"}, name
        assert str(TEMPLATES.parent) not in text, name


def test_every_c_file_says_what_made_it_and_one_for_which_cluster(files):
    for name, text in files.items():
        if re.match(r"(src|include)/.*\.[ch]$", name):
            head = text[: text.index("*/")]
            assert "stagegen tune --topology topology.yaml --from-log" in " ".join(
                line.strip(" *") for line in head.splitlines()
            ), name
            of_cluster = re.search(r"topology [0-9a-f]{16}, catalogue [0-9a-f]{16}", head)
            assert (of_cluster is not None) == (name == "src/cluster.c"), name


def bare(text: str) -> str:
    """A text, perhaps of a C comment, without its blanks and the frame of the comment."""
    return "".join(word for line in text.splitlines() for word in line.strip(" *").split())


def found_in_call(algorithm: Algorithm) -> str:
    """What a reader of a routine must know of its call."""
    collective = support.CATALOGUE.collective(algorithm.collective)
    if "unprepared" in algorithm.constraints or (algorithm.parts and collective.reduces):
        return "what the application passed, MPI_IN_PLACE included"
    return collective.view


def test_every_routine_says_at_its_head_once_what_it_is(files):
    by_function = {a.routine: a for a in support.CATALOGUE.algorithms}
    for name, text in files.items():
        algorithm = by_function.get(Path(name).stem) if name.startswith("src/") else None
        if algorithm is not None:
            head, whole = bare(text[: text.index("*/")]), bare(text)
            for fact in (
                algorithm.summary,
                f"Wins: {algorithm.wins}" if algorithm.wins else "Cost: ",
                f"Cost: {algorithm.cost}. Asks for: ",
                *(f"Parameter {p.name}: {p.meaning}." for p in algorithm.parameters),
                algorithm.example,
            ):
                assert bare(fact) in head, name
                assert fact == "" or whole.count(bare(fact)) == 1, name
            reference = re.sub(r"\[(doi|arXiv):[^]]*\]", "", text[: text.index("*/")])
            assert bare(f"Reference: {algorithm.reference}.") in bare(reference)
            function = f"int {algorithm.routine}("
            assert text.count(function) == 1
            comment = text[: text.index(function)].rpartition("/*")[2]
            assert bare(found_in_call(algorithm)) in bare(comment), name


@pytest.mark.parametrize("shift", range(0, 60, 3))
@pytest.mark.parametrize(
    "formula", ["(p - 1)(α + nβ) + (p - 2)θ", "2⌈lg p⌉α", "⌊log_k p⌋ × (Xα + (n/m)(β + γ))"]
)
def test_no_line_cuts_a_formula(shift, formula):
    text = f"Cost: {'a' * shift} {formula} for every single message {'b' * 50} and {formula} again"
    lines = c_comment([unbroken(text)]).splitlines()[1:-1]
    assert len(lines) > 1
    assert sum(line.count(formula) for line in lines) == 2


@pytest.mark.skipif(not FORMATTER.exists(), reason="clang-format is not installed")
def test_generated_c_is_formatted(files, tmp_path, request):
    sources = {name: text for name, text in files.items() if re.match(r"(src|include)/", name)}
    write_files(tmp_path, sources)
    shutil.copy(request.config.rootpath / ".clang-format", tmp_path)
    command = [FORMATTER, "--dry-run", "-Werror", *sorted(tmp_path.rglob("*.[ch]"))]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[:3000]


def test_applicable_follows_the_constraints():
    plain = support.CATALOGUE.find("alltoall", "ring")
    picky = replace(plain, name="picky", constraints=("power_of_two",))
    catalogue = replace(support.CATALOGUE, algorithms=(*support.CATALOGUE.algorithms, picky))
    for ranks in (1, 2, 6, 8):
        found = applicable(catalogue, support.cluster(ranks))
        assert plain in found
        assert (picky in found) == (ranks != 6)
        assert ranks > 1 or not any(algorithm.topology_specific for algorithm in found)


def names(topology) -> dict[str, Algorithm]:
    return {algorithm.routine: algorithm for algorithm in applicable(support.CATALOGUE, topology)}


#: Clusters with the rings that are shorter than those of an earlier construction.
RINGS = {
    "a switch": (make_topology([4], []), {"lr1"}),
    "a bare switch between two": (make_topology([0, 2, 2], [0, 0]), {"lr1"}),
    "two hosts on each of two": (make_topology([2, 2], [0]), {"lr1"}),
    "hosts enough for two hops": (make_topology([2, 2, 2], [0, 0]), {"lr1", "lr2"}),
    "a long way back": (make_topology([1, 1, 1, 1, 1], [0, 1, 2, 3]), {"lr1", "lr3"}),
}


@pytest.mark.parametrize(("topology", "constructions"), RINGS.values(), ids=RINGS)
def test_a_ring_is_generated_where_it_is_shorter_than_the_ones_before(topology, constructions):
    found = {name for name in names(topology) if name.startswith("allgather_logical_ring")}
    assert found == {f"allgather_logical_ring_{one}" for one in constructions}
    assert {"allgatherv_logical_ring_lr1", "allreduce_logical_ring_lr1"} <= set(names(topology))


def test_hierarchies_are_for_hosts_with_several_ranks():
    assert "alltoall_hierarchical" not in names(make_topology([2, 2], [0]))
    assert "alltoall_hierarchical" not in names(make_topology([1], [], slots={"n0": 4}))
    assert "alltoall_hierarchical" in names(make_topology([2, 2], [0], slots={"n3": 2}))


def values(topology, routine: str, parameter: str) -> tuple[int, ...]:
    (found,) = (p for p in names(topology)[routine].parameters if p.name == parameter)
    assert found.default in found.values
    return found.values


def test_blocks_of_all_phases_are_not_tried():
    """They are the scheme without tokens, or without barriers."""
    for routine in names(make_topology([2, 2], [0])):
        if "partial" in routine:
            assert values(make_topology([2, 2], [0]), routine, "block_size") == (2,)
            assert values(make_topology([3, 3], [0]), routine, "block_size") == (2, 4, 8)
            assert values(make_topology([1, 1], [0]), routine, "block_size") == (2,)


def test_windows_with_the_same_tokens_are_not_tried_twice():
    assert values(make_topology([1, 1], [0]), "alltoall_aapc_receiver_window", "window") == (1,)
    assert values(make_topology([4, 4], [0]), "alltoall_aapc_sender_window", "window") == (1, 2, 4)


def test_trees_from_all_roots_are_for_256_ranks_at_most():
    binary = support.CATALOGUE.find("bcast", "topology_binary")
    assert binary.works_for(256)
    assert not binary.works_for(257)


TEMPLATE_MISTAKES = {
    "an unknown value": ("line one\n{{ nothing_such }}\n", "'nothing_such' is undefined"),
    "a missing end": ("{% for x in y %}\n", "1: .*end of template"),
    "an unknown filter": ("{{ 1 | sparkle }}\n", "sparkle"),
    "a missing include": ("{% include 'nowhere.j2' %}\n", "nowhere.j2"),
}


@pytest.mark.parametrize(
    ("text", "message"), TEMPLATE_MISTAKES.values(), ids=list(TEMPLATE_MISTAKES)
)
def test_a_wrong_template_is_an_error_that_names_it(tmp_path, text, message):
    (tmp_path / "bcast").mkdir()
    (tmp_path / "bcast" / "bad.c.j2").write_text(text)
    with pytest.raises(GenerateError, match=message) as caught:
        renderer(tmp_path).render("bcast/bad.c.j2", {})
    assert "bad.c.j2" in str(caught.value) or "nowhere.j2" in str(caught.value)


def test_a_missing_plain_file_is_reported(tmp_path):
    with pytest.raises(GenerateError, match=r"scan/view\.c: there is no such file"):
        renderer(tmp_path).unrendered("scan/view.c")


def test_files_that_did_not_change_keep_their_time(tmp_path):
    write_files(tmp_path, {"a/one.c": "1\n", "two.c": "2\n"})
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.c")}
    write_files(tmp_path, {"a/one.c": "1\n", "two.c": "3\n"})
    assert (tmp_path / "a/one.c").stat().st_mtime_ns == before[tmp_path / "a/one.c"]
    assert (tmp_path / "two.c").read_text() == "3\n"
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["one.c", "two.c"]


def test_what_is_no_file_stays_what_it_is(tmp_path):
    """Such as /dev/stdout; and the file behind a link is written, not the link."""
    pipe, target, link = (tmp_path / name for name in ("pipe", "target", "link"))
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    write_file(pipe, "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert pipe.is_fifo()
    target.touch()
    link.symlink_to(target)
    write_file(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    write_files(tmp_path, {"one.c": "old\n"})

    def refuse(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(GenerateError, match=r"cannot write .*one\.c: No space left"):
        write_files(tmp_path, {"one.c": "new\n"})
    assert [p.name for p in tmp_path.iterdir()] == ["one.c"]
    assert (tmp_path / "one.c").read_text() == "old\n"


def test_a_file_in_the_way_of_a_folder_is_an_error(tmp_path):
    (tmp_path / "src").write_text("in the way")
    with pytest.raises(GenerateError, match="cannot write"):
        write_files(tmp_path, {"src/one.c": "1\n"})


def test_what_the_compiler_says_is_in_the_error(tmp_path):
    write_files(tmp_path, {"Makefile": "all:\n\t$(MPICC) -c bad.c\n", "bad.c": "int f( {\n"})
    with pytest.raises(GenerateError, match=r"bad\.c:1"):
        run_make(tmp_path, support.toolchain())


def test_a_missing_compiler_is_an_error_that_says_how_to_get_it(monkeypatch):
    with pytest.raises(
        GenerateError, match="no-such-mpicc was not found; install MPICH or Open MPI"
    ):
        Toolchain.find("no-such-mpicc")
    monkeypatch.setenv("MPICC", "nor-this")
    with pytest.raises(GenerateError, match="nor-this was not found"):
        Toolchain.find()


def test_a_leader_never_needs_more_memory_than_it_may():
    """With 3 ranks on a host of 5 in all it keeps 2 · 3 · 5 messages, and sends 3 · 3 at once."""
    topology = make_topology([2, 1], [0], slots={"n0": 3})
    hierarchical = names(topology)["alltoall_hierarchical"]
    most = hierarchical.max_bytes
    kept, more = (hierarchical.scratch.value({"n": n, "p": 5, "m": 3}) for n in (most, most + 1))
    assert kept <= LEADER_BYTES < more
    assert most * 9 < 2**31
