"""Compiler, launcher and running job are of one MPI library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stagegen.errors import GenerateError, MeasurementError
from stagegen.generate import Toolchain
from stagegen.measure.launch.mpi import VARIABLE, mpiexec_beside
from stagegen.measure.launch.registry import make_launcher, with_mpi_of
from stagegen.measure.live import require_library
from tests.measure.fakes import ENVIRONMENT

SAYS = {
    "mpicc.openmpi": "mpicc: Open MPI 4.1.4 (Language: C)",
    "mpicc.mpich": "gcc: error: unrecognized option",
    "mpiexec.openmpi": "mpiexec (OpenRTE) 4.1.4",
    "mpiexec.mpich": "HYDRA build details: Version: 4.0.2",
}


@pytest.fixture
def debian(tmp_path, monkeypatch) -> Path:
    """A folder in PATH with both libraries, and Open MPI's as the default."""
    for name, text in SAYS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{text}'\n")
        (tmp_path / name).chmod(0o755)
    for name in ("mpicc", "mpiexec"):
        (tmp_path / name).symlink_to(f"{name}.openmpi")
    (tmp_path / "make").symlink_to("/bin/true")
    for name in ("MPICC", VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "nowhere" / "python"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    return tmp_path


@pytest.mark.parametrize(
    ("launcher", "compiler", "starter"),
    [
        ("hydra", "mpicc.mpich", "mpiexec.mpich"),
        ("openmpi", "mpicc", "mpiexec"),
        ("local", "mpicc", "mpiexec"),
        ("slurm", "mpicc", "mpiexec"),
    ],
)
def test_a_launcher_gets_a_compiler_of_its_library_and_the_mpiexec_beside_it(
    debian, launcher, compiler, starter
):
    found = make_launcher(launcher)
    toolchain = Toolchain.find(None, found.flavours)
    assert toolchain.mpicc == str(debian / compiler)
    assert with_mpi_of(found, toolchain) == make_launcher(launcher, debian / starter)


def test_a_compiler_of_another_library_is_refused(debian):
    with pytest.raises(
        GenerateError, match=r"builds for Open MPI, but .* programs of MPICH;.*mpicc"
    ):
        Toolchain.find(str(debian / "mpicc"), ("mpich",))


def test_without_a_compiler_of_the_library_the_error_says_how_to_get_one(debian, monkeypatch):
    (debian / "mpicc.mpich").unlink()
    monkeypatch.setenv("PATH", str(debian))
    with pytest.raises(GenerateError, match=r"mpicc of MPICH was not found.*pip install mpich"):
        Toolchain.find(None, ("mpich",))


def test_the_users_own_mpiexec_goes_first(debian, monkeypatch):
    monkeypatch.setenv(VARIABLE, "/opt/mpiexec")
    assert mpiexec_beside(Toolchain(str(debian / "mpicc.mpich"), "make")) is None


@pytest.mark.parametrize(
    ("mpi", "library", "fits"),
    [
        ("mpich", "MPICH Version: 4.3.2", True),
        ("mpich", "Intel(R) MPI Library 2021.9", True),
        ("openmpi", "Open MPI v5.0.10, package: x", True),
        ("mpich", "Open MPI v5.0.10, package: x", False),
        ("openmpi", "MPICH Version: 4.3.2", False),
    ],
)
def test_a_job_of_another_library_than_it_was_started_with_is_refused(mpi, library, fits):
    environment = replace(ENVIRONMENT, mpi=mpi)
    if fits:
        require_library(environment, library)
        return
    with pytest.raises(MeasurementError, match="belong to different MPI libraries"):
        require_library(environment, library)
