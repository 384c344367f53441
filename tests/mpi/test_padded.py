"""Vectors that are cut into equally long blocks: the last block is filled up."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.folders import write_folder
from tests.mpi import support
from tests.strategies import make_topology

pytestmark = pytest.mark.mpi


def test_as_many_elements_as_an_int_counts_are_filled_up(tmp_path):
    """For two ranks, that is one element more than an int counts."""
    folder = tmp_path / "g"
    write_folder(make_topology([2], []), folder, "allreduce_of_reduce_scatter_block_and_allgather")
    program = tmp_path / "padded"
    words = [support.toolchain().mpicc, "-std=c11", "-Wall", "-Wextra", "-Werror"]
    words += ["-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{folder / 'src'}"]
    sources = [str(support.HERE / "padded.c"), str(folder / "src" / "padded.c")]
    subprocess.run([*words, *sources, "-o", str(program)], check=True)
    told = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert told.stdout == "1073741824 elements a block, 2 copies, the last to 2147483647\n"
