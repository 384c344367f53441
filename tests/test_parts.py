"""A user's own parts: what stagegen.yaml and packages may say, and names that are taken."""

from __future__ import annotations

import errno
import io
import os
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from stagegen.audit import audit_folder
from stagegen.catalogue import applicable, load_catalogue
from stagegen.catalogue.applicable import why_not
from stagegen.catalogue.templates import Root, read_root
from stagegen.cli.verify import command as verify
from stagegen.data import TEMPLATES
from stagegen.errors import GenerateError, InputError, NotFoundError, ScheduleError
from stagegen.generate import Build, Renderer, runtime_sources
from stagegen.parts import Parts, find_parts, templates_beside
from stagegen.parts.find import parts_file
from stagegen.topology import topology_yaml
from tests.strategies import make_topology

FOUR = make_topology([2, 2], [0])
MINE = """{#---
summary: It works.
scratch: 0
cost: α
reference: Faraj 2006, §1
---#}
{{ banner }}
#include "coll.h"

{{ contract }}
{{ signature }} {
    (void)parameters;
    (void)call;
    (void)cc;
    return MPI_SUCCESS;
}
"""
TABLES = MINE.replace("scratch", "needs: tables\ntopology: {hash}\nscratch")


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def catalogue_of(*roots: Root):
    return load_catalogue(added=roots)


def test_without_a_file_there_are_no_parts(tmp_path):
    assert find_parts(tmp_path, FOUR) == Parts()
    assert load_catalogue(added=()).hash == load_catalogue().hash


def test_templates_of_a_folder_are_in_the_catalogue_with_their_file(tmp_path):
    write(tmp_path, **{"stagegen.yaml": "templates: [mine]\n", "mine/bcast/mine.c.j2": MINE})
    catalogue = catalogue_of(*find_parts(tmp_path, FOUR).roots)
    mine = catalogue.find("bcast", "mine")
    assert mine in applicable(catalogue, FOUR)
    assert catalogue.templates.where("bcast/mine.c.j2") == str(tmp_path / "mine/bcast/mine.c.j2")
    assert set(catalogue.hashes) - set(load_catalogue().hashes) == {"bcast/mine"}
    shared = {name: catalogue.hashes[name] for name in load_catalogue().hashes}
    assert shared == load_catalogue().hashes, "the repository's own are what they were"


def test_a_folder_of_templates_that_cannot_be_read_is_reported(tmp_path, monkeypatch):
    (tmp_path / "bcast").mkdir()
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("bcast/"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"cannot be read: .*Permission denied.*bcast"):
        read_root(tmp_path)


def test_a_template_may_use_engines_of_the_repository_and_its_hash_covers_its_own():
    with_engine = MINE.replace('"coll.h"\n', '"coll.h"\n#include "mine.h"\n')
    one, other = (
        catalogue_of(
            Root("u", {"bcast/mine.c.j2": with_engine, "engines/mine.h": f"int f{n};\n"})
        ).hashes["bcast/mine"]
        for n in (1, 2)
    )
    assert one != other


TAKEN = {
    "a file of the repository": {"bcast/linear.c.j2": MINE},
    "an engine of the repository": {"engines/halving.c": ""},
    "a description of the repository": {"bcast/collective.yaml": ""},
    "a file of the library": {"engines/call.c": ""},
    "a driver": {"engines/session.c": ""},
    "the clocks of the session": {"engines/clocks.c": ""},
}


@pytest.mark.parametrize("files", TAKEN.values(), ids=TAKEN)
def test_a_file_whose_name_is_taken_is_reported_with_both_files(files):
    (path,) = files
    with pytest.raises(InputError) as caught:
        catalogue_of(Root("mine", files))
    assert str(caught.value).startswith(f"mine/{path}: ")
    problem, advice = str(caught.value).removeprefix(f"mine/{path}: ").split("; ")
    assert Path(problem.split()[-1]).is_absolute(), problem
    assert advice in ("give one of them another name", "rename it")


def test_an_algorithm_whose_name_is_taken_is_reported_with_both_files():
    text = MINE.replace("{#---\n", "{#---\nvariants:\n  bcast/linear:\n    wins: Never.\n")
    with pytest.raises(InputError) as caught:
        catalogue_of(Root("mine", {"allgather/other.c.j2": text}))
    assert "there is a second bcast/linear" in str(caught.value)
    assert "mine/allgather/other.c.j2" in str(caught.value)
    assert str(TEMPLATES / "bcast/linear.c.j2") in str(caught.value)


def test_two_folders_must_not_have_one_name_either():
    root = {"bcast/mine.c.j2": MINE}
    with pytest.raises(InputError, match=r"two/bcast/mine.c.j2: is also in one/bcast/mine.c.j2"):
        catalogue_of(Root("one", root), Root("two", root))


def test_a_parameter_with_another_meaning_is_reported_with_both_files():
    parameter = "parameters:\n  radix: {meaning: apples, values: [1], default: 1}\n"
    text = MINE.replace("scratch", f"{parameter}scratch")
    with pytest.raises(InputError, match=r"`radix` has another meaning in .*\.c\.j2") as caught:
        catalogue_of(Root("mine", {"scatter/mine.c.j2": text}))
    assert "mine/scatter/mine.c.j2" in str(caught.value)


@pytest.mark.parametrize("folder", ["libcoll", "report"])
def test_the_folders_of_the_library_are_its_own(folder):
    with pytest.raises(InputError, match=f"`{folder}` is a folder of stagegen's own"):
        catalogue_of(Root("mine", {f"{folder}/mine.c.j2": MINE}))


def test_tables_of_its_own_serve_the_very_ranks_that_they_are_for():
    root = Root("mine", {"bcast/mine.c.j2": TABLES.replace("{hash}", FOUR.hash)})
    mine = catalogue_of(root).find("bcast", "mine")
    assert mine.has_tables
    assert why_not(mine, FOUR) is None
    assert "another topology" in why_not(mine, make_topology([3, 2], [0]))
    with pytest.raises(InputError, match="`topology` belongs to `needs: tables`"):
        catalogue_of(
            Root("mine", {"bcast/mine.c.j2": MINE.replace("scratch", "needs: tables\nscratch")})
        )


def test_verify_says_that_tables_of_its_own_are_not_proven(tmp_path):
    text = TABLES.replace("{hash}", FOUR.hash).replace(
        "{{ contract", "static const int own[] = {1};\n{{ contract"
    )
    root = Root("mine", {"bcast/mine.c.j2": text})
    catalogue = catalogue_of(root)
    natives = [a for a in catalogue.algorithms if a.name == "native"]
    build = Build.of(FOUR, catalogue, [catalogue.find("bcast", "mine"), *natives])
    renderer = Renderer("a test", FOUR.name, FOUR.hash, catalogue.hash, catalogue.templates)
    files = {f"src/{name}": code for name, code in runtime_sources(build, renderer).items()}
    write(tmp_path, **files, **{"topology.yaml": topology_yaml(FOUR)})
    with pytest.raises(ScheduleError, match="no proof for its tables"):
        list(audit_folder(tmp_path))
    write(tmp_path, **parts_file((root,)))
    proofs = {proof.routine: proof for proof in audit_folder(tmp_path)}
    assert proofs["bcast_mine"].unproven
    assert not any(p.unproven for name, p in proofs.items() if name != "bcast_mine")
    with redirect_stdout(io.StringIO()) as out:
        verify.main([str(tmp_path)], standalone_mode=False)
    assert "bcast_mine: NOT PROVEN" in out.getvalue()
    routines = tmp_path / "src" / "routines.c"
    code = routines.read_text()
    routines.write_text(code.replace("COLL_NEEDS_CLUSTER", "COLL_ANY"))
    assert routines.read_text() != code
    with pytest.raises(ScheduleError, match="ranks that its tables are not for"):
        list(audit_folder(tmp_path))


# stagegen.yaml

WRONG = {
    "no such key": ("template: [a]\n", 1, "unknown key 'template'"),
    "no list": ("packages: all\ntemplates: a\n", 2, "must be a list"),
    "no such folder": ("templates:\n  - nowhere\n", 2, "there is no folder"),
    "an empty folder": ("templates: [empty]\n", 1, "no templates in"),
    "no such file": ("timings: [nowhere.c]\n", 1, "there is no file"),
    "no function": ("generators:\n  mine:\n    call: mine.py\n", 3, "FILE.py:NAME"),
    "no such function": ("generators:\n  mine:\n    call: mine.py:f\n", 3, "defines no function f"),
    "broken Python": ("launchers:\n  mine: broken.py:f\n", 2, "ZeroDivisionError"),
    "no such generator": ("generators:\n  nobody: {}\n", 2, "no installed package has"),
    "no description": (
        "generators:\n  m: {call: mine.py:empty, description: d}\n",
        2,
        "there is no file",
    ),
    "a strange name": ("launchers:\n  Mine!: mine.py:empty\n", 2, "has to be [a-z]"),
    "a name twice": ("timings: [a.c]\ntimings: [b.c]\n", 2, "already given on line 1"),
    "not YAML": ("templates: [\n", 2, "expected"),
    "nothing": ("", 1, "the file is empty"),
}


@pytest.mark.parametrize(("text", "line", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_reported_with_file_and_line(tmp_path, text, line, message):
    code = "def empty(topology, description):\n    return {}\n"
    write(tmp_path, **{"stagegen.yaml": text, "mine.py": code, "broken.py": "1 / 0\n"})
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as caught:
        find_parts(tmp_path, FOUR)
    assert str(caught.value).startswith(f"{tmp_path / 'stagegen.yaml'}:{line}: ")
    assert message in str(caught.value)


def generated(tmp_path: Path, body: str) -> Parts:
    code = f"from stagegen.errors import *\ndef generate(topology, description):\n    {body}\n"
    text = "generators:\n  mine: {call: mine.py:generate, description: about.txt}\n"
    write(tmp_path, **{"stagegen.yaml": text, "mine.py": code, "about.txt": "twice"})
    return find_parts(tmp_path, FOUR)


def test_a_generator_gets_topology_and_description_and_makes_templates(tmp_path):
    body = "return {'bcast/' + description.read_text() + '.c.j2': topology.name}"
    (root,) = generated(tmp_path, body).roots
    assert root.files == {"bcast/twice.c.j2": FOUR.name}
    assert find_parts(tmp_path, None).roots == (), "without a topology no generator runs"


@pytest.mark.parametrize(
    "body",
    ["return 5", "return {}", "return {'../x': 'y'}", "return {'bcast/x.c.j2': 5}", "return 1 / 0"],
)
def test_a_generator_that_fails_is_reported_with_its_file(tmp_path, body):
    with pytest.raises(GenerateError, match=r"stagegen\.yaml:2: the generator mine"):
        generated(tmp_path, body)


def test_errors_of_a_generator_itself_pass(tmp_path):
    with pytest.raises(InputError, match=r"about\.txt:7: wrong"):
        generated(tmp_path, "raise InputError('wrong', description.name, 7)")
    with pytest.raises(NotFoundError):
        generated(tmp_path / "other", "raise NotFoundError('no such ring')")


def test_copies_of_templates_give_the_same_catalogue(tmp_path):
    mine = Root("mine", {"bcast/mine.c.j2": MINE}, "mine")
    made = Root("made", {"bcast/own.c.j2": TABLES.replace("{hash}", FOUR.hash)}, "made")
    write(tmp_path, **parts_file((mine, made)))
    copies = templates_beside(tmp_path)
    assert load_catalogue(added=copies).hashes == catalogue_of(mine, made).hashes
    assert find_parts(tmp_path, FOUR).roots == copies
    assert parts_file(copies) == parts_file((mine, made))
    assert parts_file(()) == {}


def test_looking_at_templates_alone_runs_no_python(tmp_path):
    text = "templates: [mine]\nlaunchers: {x: evil.py:f}\ngenerators: {y: {call: evil.py:f}}\n"
    evil = f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\ndef f(): pass\n"
    write(tmp_path, **{"stagegen.yaml": text, "evil.py": evil, "mine/bcast/mine.c.j2": MINE})
    (root,) = templates_beside(tmp_path)
    assert root.files == read_root(tmp_path / "mine").files
    assert not (tmp_path / "ran").exists()
    find_parts(tmp_path, None)
    assert (tmp_path / "ran").exists()
