"""Fortran programs are recorded, by mpif.h, mpi and mpi_f08, with MPICH and with Open MPI."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

from stagegen.generate import Toolchain
from stagegen.recording import read
from stagegen.recording.build import RECORDER, built
from stagegen.recording.calls import align
from tests.mpi import builds, support
from tests.mpi.test_fortran import BARRIERS, FLAVOURS, PROGRAMS, program, shared_library

pytestmark = pytest.mark.mpi

RANKS = 4


@lru_cache
def recorder(mpi: builds.Mpi) -> Path:
    toolchain = Toolchain.find(mpi.mpicc)
    with support.to_be_made(f"recorder-{mpi.flavour}") as (folder, _):
        folder.mkdir(exist_ok=True)
        return built(RECORDER, folder, toolchain)


@pytest.mark.parametrize("source", PROGRAMS)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_calls_of_fortran_programs_are_recorded_at_their_sites(tmp_path, flavour, source):
    mpi = builds.Mpi.of_system(flavour)
    compiled = program(mpi, source)
    variables = {"STAGEGEN_RECORD": str(tmp_path / "out")}
    result = builds.run(mpi, RANKS, compiled, preload=[recorder(mpi)], variables=variables)
    assert result.returncode == 0, result.stdout + result.stderr
    recording = read(tmp_path / "out.parts")
    aligned = align(recording)
    assert aligned.unmatched == 0
    calls = Counter[str]()
    for one in aligned.calls:
        calls[one.collective] += len(one.sequences)
        assert one.site.startswith(compiled.name)
    assert calls["barrier"] == BARRIERS
    assert set(calls) == set(support.CATALOGUE.collectives)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_calls_of_fortran_that_a_program_loads_for_itself_are_recorded(tmp_path, flavour):
    """The functions for Fortran are not among what the program itself is linked with."""
    mpi = builds.Mpi.of_system(flavour)
    loaded = shared_library(mpi, "loaded.f90")
    compiled = builds.compiled(mpi.mpicc, support.HERE / "loads_fortran.c", "-D_GNU_SOURCE")
    variables = {"STAGEGEN_RECORD": str(tmp_path / "out")}
    words = (compiled, str(loaded))
    result = builds.run(mpi, 2, *words, preload=[recorder(mpi)], variables=variables)
    assert result.returncode == 0, result.stdout + result.stderr
    (calls,) = align(read(tmp_path / "out.parts")).calls
    assert (calls.collective, len(calls.sequences)) == ("barrier", 3)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_lines_of_a_fortran_program_are_sites_of_their_own(tmp_path, flavour):
    """Two lines call in turn with one size, and ranks come late to one of them; a third follows."""
    mpi = builds.Mpi.of_system(flavour)
    compiled = program(mpi, "two_sites.f90")
    variables = {"STAGEGEN_RECORD": str(tmp_path / "out")}
    result = builds.run(mpi, RANKS, compiled, preload=[recorder(mpi)], variables=variables)
    assert result.returncode == 0, result.stdout + result.stderr
    balanced, late, longer = align(read(tmp_path / "out.parts")).calls
    assert len({one.site for one in (balanced, late, longer)}) == 3
    assert [one.size for one in (balanced, late, longer)] == [64, 64, 400]
    assert [len(one.sequences) for one in (balanced, late, longer)] == [60, 60, 1]
    assert (late.arrivals[:, 1] - balanced.exits[:, 1]).min() > 1.9e-3  # what rank 1 does before
