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
from tests.mpi.test_fortran import BARRIERS, FLAVOURS, PROGRAMS, program

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
