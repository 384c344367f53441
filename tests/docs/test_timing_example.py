"""The example of docs/timing.md, tuned with; and what is said of files that are no mechanism."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import takewhile
from pathlib import Path

import pytest

from stagegen.data import DRIVERS
from stagegen.generate import Toolchain
from stagegen.generate.timings import read_mechanism
from tests.cli.test_tune import contents, stagegen
from tests.library.schemas import validate

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "timing" / "arrival.c"
PAGE = ROOT / "docs" / "timing.md"
HEADER = "timing.h"
INCLUDED = f'#include "{HEADER}"\nextern int nothing;\n'

CLUSTER = """\
name: three
defaults: {bandwidth: 100Mbit, latency: 50us}
switches:
  s0: {hosts: "n[0-2]"}
"""

#: A barrier has one size and few routines.
HOW = (
    *("--communicators", "whole", "--collectives", "barrier"),
    *("--metric", "mean", "--iterations", "2"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("cluster") / "three.yaml"
    path.write_text(CLUSTER)
    return path


@pytest.fixture(scope="module")
def tuned(cluster, tmp_path_factory) -> Path:
    """A folder that was tuned with the example, by 3 ranks on this machine."""
    folder = tmp_path_factory.mktemp("tuned")
    words = ("--timing", EXAMPLE, "--computation", "0.2", *HOW)
    result = tune(cluster, folder, *words)
    assert result.returncode == 0, result.stderr
    return folder


def tune(cluster: Path, folder: Path, *words: str | Path):
    launcher = () if "--from-log" in words else ("--launcher", "local")
    return stagegen("tune", "--topology", cluster, *launcher, "--output", folder, *words)


def records(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "measurements.jsonl").read_text().splitlines()]


@pytest.mark.mpi
def test_header_and_records_say_how_it_was_timed(tuned):
    header, *others = records(tuned)
    digest = read_mechanism(EXAMPLE).hash
    assert header["timing"] == {
        "mechanism": "arrival", "hash": digest, "computation": 0, "computation_ms": 0.2,
        "metric": "mean", "iterations": [[1, 2]],
    }  # fmt: skip
    measured = [one for one in others if one["kind"] == "measurement"]
    assert measured
    for one in measured:
        assert (one["timing"], one["timing_hash"]) == ("arrival", digest)
        assert (one["computation_ms"], one["metric"], one["calls"]) == (0.2, "mean", 2)
    rates = [one["rates"] for one in others if one["kind"] == "session" and "rates" in one]
    assert rates
    assert all(len(one) == 3 and min(one) > 0 for one in rates)
    for one in (header, *others):
        validate("measurements", one)


@pytest.mark.mpi
def test_the_log_alone_gives_the_same_library_without_the_file(tuned, cluster, tmp_path):
    result = tune(cluster, tmp_path, "--from-log", tuned / "measurements.jsonl")
    assert result.returncode == 0, result.stderr
    before = {n: d for n, d in contents(tuned).items() if not n.startswith("build/")}
    assert contents(tmp_path) == before


@pytest.mark.mpi
@pytest.mark.parametrize("how", ["--resume", "--from-log"])
def test_a_log_goes_on_with_the_same_mechanism_only(tuned, cluster, tmp_path, how):
    """The same but for comments and layout."""
    log = tmp_path / "measurements.jsonl"
    shutil.copy(tuned / "measurements.jsonl", log)
    before = log.read_bytes()
    words = (how, log) if how == "--from-log" else (how,)
    changed = tmp_path / "arrival.c"
    changed.write_text(EXAMPLE.read_text().replace(">> 8", ">> 9"))
    result = tune(cluster, tmp_path, *words, "--timing", changed)
    assert result.returncode == 2
    assert "--timing differs from what" in " ".join(result.stderr.split())
    changed.write_text("// A comment.\n" + EXAMPLE.read_text())
    assert tune(cluster, tmp_path, *words, "--timing", changed).returncode == 0
    assert log.read_bytes() == before, "nothing was left to measure"


@pytest.mark.mpi
def test_to_resume_the_file_must_be_named(tuned, cluster, tmp_path):
    shutil.copy(tuned / "measurements.jsonl", tmp_path)
    result = tune(cluster, tmp_path, "--resume")
    assert result.returncode == 2
    assert "was measured with arrival.c; name it with --timing" in " ".join(result.stderr.split())


@pytest.mark.mpi
def test_its_decisions_are_measured_again_with_it(tuned, tmp_path):
    folder = shutil.copytree(tuned, tmp_path / "tuned", ignore=shutil.ignore_patterns("build"))
    words = ("--timing", EXAMPLE, "--launcher", "local", "--sample", "1", "--repetitions", "4")
    result = stagegen("validate", folder, *words, "--format", "json")
    assert result.returncode in (0, 1), result.stderr
    assert json.loads(result.stdout)["timing"] == "arrival"
    measured = [one for one in records(folder / "build/validate") if one["kind"] == "measurement"]
    digest = read_mechanism(EXAMPLE).hash
    assert measured
    assert {(one["timing"], one["timing_hash"]) for one in measured} == {("arrival", digest)}


#: A file's name, its text, and what is said of it besides its name.
WRONG = {
    "does not define it": ("mine.c", "static int unused;", "does not define by_mine"),
    "defines it for itself": (
        "mine.c",
        '#include "timing.h"\nstatic const struct timing by_mine; int x(void);\n'
        "int x(void) { return by_mine.each_call; }",
        "does not define by_mine",
    ),
    "calls a function that it does not have": (
        "mine.c",
        '#include "timing.h"\nint other(const struct timed *timed, double *seconds);\n'
        'const struct timing by_mine = {.name = "mine", .repeat = other};',
        "does not define by_mine, or calls a function",
    ),
    "is no C": ("mine.c", "Time everything twice.", "does not compile"),
    "name of another": ("barrier.c", "", "none of barrier"),
    "name is no C": ("my-own.c", "", "expected NAME.c"),
    "is no text": ("mine.c", None, "it is not UTF-8"),
}


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "text", "said"), WRONG.values(), ids=WRONG)
def test_a_file_that_is_no_mechanism_is_reported_with_what_is_expected(
    cluster, tmp_path, name, text, said
):
    file = tmp_path / name
    file.write_bytes(b"\xff\xfe" if text is None else text.encode())
    result = tune(cluster, tmp_path / "out", "--timing", file)
    assert result.returncode == 2
    message = " ".join(result.stderr.split())
    assert message.startswith(f"{file}: ")
    assert said in message
    assert "expected" in message
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_reported_with_what_is_expected(cluster, tmp_path):
    result = tune(cluster, tmp_path / "out", "--timing", tmp_path / "mine.c")
    assert result.returncode == 2
    assert result.stderr.startswith(f"{tmp_path / 'mine.c'}: cannot be read: No such file")
    assert "const struct timing by_mine" in " ".join(result.stderr.split())


@pytest.mark.parametrize("word", ["stopwatch", "arrival.h"])
def test_a_word_that_is_neither_a_name_nor_a_c_file_is_a_usage_error(cluster, tmp_path, word):
    result = tune(cluster, tmp_path, "--timing", word)
    assert result.returncode == 2
    assert "mpptest" in result.stderr


@pytest.mark.parametrize("text", ["sometimes", "0", "8KiB:2,1KiB:3"])
def test_iterations_that_are_none_are_a_usage_error(cluster, tmp_path, text):
    result = tune(cluster, tmp_path, "--iterations", text)
    assert result.returncode == 2
    assert "1:100,8KiB:50" in " ".join(result.stderr.split())


def listed(title: str) -> list[str]:
    """The names in the first column of a table of the page."""
    lines = PAGE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {title} |"))
    rows = takewhile(lambda line: line.startswith("|"), lines[start + 2 :])
    return [name for row in rows for name in re.findall(r"`(\w+)", row.split("|")[1])]


def compiled(folder: Path, text: str, *options: str | Path) -> subprocess.CompletedProcess[str]:
    probe = folder / "probe.c"
    probe.write_text(text)
    words = [Toolchain.find().mpicc, "-std=c11", f"-I{DRIVERS}", *options, probe]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.mpi
@pytest.mark.parametrize("struct", ["struct timing", "struct timed"])
def test_the_page_lists_all_members_and_only_these(tmp_path, struct):
    """The compiler complains of more zeros than there are members, and of fewer."""
    members = listed(f"member of `{struct}`")
    assert len(members) == len(set(members)) > 1
    offsets = ", ".join(f"offsetof({struct}, {name})" for name in members)
    zeros = ", ".join("0" for _ in members)
    text = (
        '#include <stddef.h>\n#include "timing.h"\n'
        f"const size_t offsets[] = {{{offsets}}};\nconst {struct} all = {{{zeros}}};\n"
    )
    options = "-Werror", "-Wmissing-field-initializers", "-c", "-o", tmp_path / "probe.o"
    result = compiled(tmp_path, text, *options)
    assert result.returncode == 0, result.stderr


@pytest.mark.mpi
def test_the_page_lists_all_functions_and_macros_and_only_these(tmp_path):
    """Those that the compiler finds in the header, but for the macro that guards it."""
    found, lists, file = set(), tmp_path / "lists", ""
    for line in compiled(tmp_path, INCLUDED, "-E", "-dD").stdout.splitlines():
        words = line.split(maxsplit=2)
        if line.startswith("# "):
            file = words[2].split('"')[1]
        elif line.startswith("#define ") and Path(file).name == HEADER and len(words) > 2:
            found.add(words[1].partition("(")[0])
    assert found
    options = "-c", "-o", tmp_path / "probe.o"
    assert compiled(tmp_path, INCLUDED, *options).returncode == 0
    if compiled(tmp_path, INCLUDED, "-aux-info", lists, *options).returncode != 0:
        pytest.skip("only gcc lists the functions that a header declares (-aux-info)")
    for line in lists.read_text().splitlines():
        where, _, declaration = line.removeprefix("/* ").partition(" */ ")
        if Path(where.partition(":")[0]).name == HEADER:
            found.add(declaration.partition(" (")[0].split()[-1].lstrip("*"))
    assert set(listed("function")) == found
