"""The library's own C for a few algorithms, for small programs that include parts of it."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path

from stagegen.generate import Build, Renderer, runtime_sources, write_files
from tests.mpi import support


@lru_cache
def runtime_folder(*algorithms: str) -> Path:
    """A folder with the headers and sources of a library of 4 ranks: `collective/algorithm`."""
    topology = support.cluster(4)
    chosen = [support.CATALOGUE.find(*name.split("/")) for name in algorithms]
    renderer = Renderer("a test", topology.name, topology.hash, support.CATALOGUE.hash)
    folder = support.scratch() / "-".join(["runtime", *(one.routine for one in chosen)])
    files = runtime_sources(Build.of(topology, support.CATALOGUE, chosen), renderer)
    write_files(folder, files)
    return folder


def compile_c(source: Path, result: Path, *options: str) -> Path:
    """A C file as a program, or as what the options ask for; includes are of `runtime_folder`."""
    command = [support.toolchain().mpicc, "-std=c11", "-D_GNU_SOURCE", *options]
    subprocess.run([*command, "-o", str(result), str(source)], check=True)
    return result
