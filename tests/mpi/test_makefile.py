"""The library's Makefile, and the names of hosts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stagegen.generate import write_files
from tests.mpi import support

pytestmark = pytest.mark.mpi


def make(folder: Path, *words: str, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "WERROR"}
    command = [support.toolchain().make, "-C", folder, f"MPICC={support.toolchain().mpicc}"]
    result = subprocess.run(
        [*command, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**environment, **variables},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_uninstall_leaves_no_folders_of_ours(tmp_path):
    folder = support.library(3)
    theirs = tmp_path / "lib" / "libother.so"
    theirs.parent.mkdir()
    theirs.touch()
    make(folder, "install", f"PREFIX={tmp_path}")
    assert (tmp_path / "share" / "libcoll").is_dir()
    make(folder, "uninstall", f"PREFIX={tmp_path}")
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == [theirs]
    assert not (tmp_path / "share" / "libcoll").exists()
    assert not (tmp_path / "lib" / "pkgconfig").exists()
    make(folder, "uninstall", f"PREFIX={tmp_path}")


def test_warnings_are_errors_only_on_request():
    folder = support.library(3)
    assert "-Werror" not in make(folder, "-nB")
    assert "-Werror" in make(folder, "-nB", "WERROR=1")
    assert "-Werror" in make(folder, "-nB", WERROR="1")


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("n0.mine.org", 0),
        ("n0", 0),
        ("n0.other.org", -1),
        ("n1", 1),
        ("n1.mine.org", 1),
        ("n1.other.org", 1),
        ("n", -1),
        ("n00", -1),
        ("n00.mine.org", -1),
    ],
)
def test_first_labels_count_only_where_a_name_is_short(tmp_path, name, host):
    """The first of the two hosts goes by its whole name in the topology, the other does not."""
    source = support.library(2) / "src"
    text = (source / "cluster.c").read_text()
    assert '{"n0", "n0"}' in text
    write_files(tmp_path, {"cluster.c": text.replace('"n0"', '"n0.mine.org"')})
    program = tmp_path / "hosts"
    command = [support.toolchain().mpicc, "-D_GNU_SOURCE", f"-I{source}", "-o", program]
    sources = [tmp_path / "cluster.c", source / "hosts.c", support.HERE / "hosts.c"]
    subprocess.run([*command, *sources], check=True)
    result = subprocess.run(
        [program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LIBCOLL_HOST": name},
    )
    assert int(result.stdout) == host
