"""`make`, `make install`, `make uninstall`, `make clean`; linking; which symbols are exported."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.mpi import support

RANKS = 4
PREFIX = "/opt/coll"

COLLECTIVES = {f"MPI_{name.capitalize()}" for name in support.CATALOGUE.collectives}
#: Besides collectives: functions that begin or end MPI and communicators.
LIFETIME = {
    "MPI_Comm_disconnect",
    "MPI_Comm_free",
    "MPI_Finalize",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Intercomm_merge",
}
SESSIONS = {"MPI_Comm_create_from_group", "MPI_Session_finalize", "MPI_Session_init"}
#: Where the MPI library can revoke communicators.
REVOKE = {"MPIX_Comm_revoke", "mpix_comm_revoke_f08_"}
ENTRY_POINTS = COLLECTIVES | LIFETIME
LARGE = {f"{name}_c" for name in COLLECTIVES - {"MPI_Barrier"}}
#: MPICH's Fortran calls MPI_ functions, but those of mpi_f08 without buffers call PMPI_.
_FORTRAN = (
    "barrier comm_create_from_group comm_disconnect comm_free finalize init init_thread "
    "intercomm_merge session_finalize session_init"
)
FORTRAN = {f"mpi_{name}_f08_" for name in _FORTRAN.split()}
#: Where the MPI library has persistent collectives and a hook for its progress.
_PLANNED = (
    "allgather allgatherv allreduce alltoall alltoallv bcast gather reduce reduce_scatter "
    "reduce_scatter_block scatter"
)
_STARTS = {"MPI_Start", "MPI_Startall", "MPI_Request_free", "MPI_Cancel"}
PERSISTENT = {
    *(f"MPI_{name.capitalize()}_init{form}" for name in _PLANNED.split() for form in ("", "_c")),
    "MPI_Barrier_init",
    *_STARTS,
    *(f"{name.lower()}_f08_" for name in (*_STARTS, "MPI_Barrier_init")),
}
OWN = {"libcoll_choice", "libcoll_cluster", "libcoll_topology_hash", "libcoll_version"}

INSTALLED = {
    "lib/libcoll.so",
    "lib/libcoll.a",
    "lib/pkgconfig/libcoll.pc",
    "include/libcoll.h",
    "share/libcoll/random/decision.json",
    "share/libcoll/random/manifest.json",
    "share/libcoll/random/topology.yaml",
}


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "-s", "-C", str(folder), f"MPICC={support.toolchain().mpicc}", *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def files(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    copy = tmp_path_factory.mktemp("generated") / "copy"
    shutil.copytree(support.library(RANKS), copy)
    return copy


def test_what_is_installed_is_uninstalled(folder, tmp_path):
    make(folder, "install", f"PREFIX={PREFIX}", f"DESTDIR={tmp_path}")
    assert files(tmp_path / PREFIX.lstrip("/")) == INSTALLED
    assert (tmp_path / "opt/coll/lib/libcoll.so").stat().st_mode & 0o777 == 0o755
    for source in ("decision.json", "manifest.json", "topology.yaml"):
        installed = tmp_path / "opt/coll/share/libcoll/random" / source
        assert installed.read_text() == (folder / source).read_text()
    make(folder, "uninstall", f"PREFIX={PREFIX}", f"DESTDIR={tmp_path}")
    assert files(tmp_path) == set()


def test_a_prefix_may_have_a_space_and_nothing_else_is_removed(folder, tmp_path):
    other = tmp_path / "my" / "thesis"
    other.parent.mkdir()
    other.touch()
    prefix = tmp_path / "my software"
    make(folder, "install", f"PREFIX={prefix}")
    assert files(prefix) == INSTALLED
    make(folder, "uninstall", f"PREFIX={prefix}")
    assert files(tmp_path) == {"my/thesis"}


@pytest.mark.parametrize("target", ["install", "uninstall"])
def test_a_relative_prefix_is_refused(folder, target):
    command = ["make", "-s", "-C", str(folder), f"MPICC={support.toolchain().mpicc}", target]
    result = subprocess.run(
        [*command, "PREFIX=inst"], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 2
    assert "PREFIX=inst does not begin with /; give the whole path" in result.stderr
    assert not (folder / "inst").exists()


def pkg_config(prefix: Path, *options: str) -> list[str]:
    """What pkg-config says, or what the file says where there is no pkg-config."""
    search = prefix / "lib" / "pkgconfig"
    program = shutil.which("pkg-config")
    if program:
        environment = {**os.environ, "PKG_CONFIG_PATH": str(search)}
        command = [program, *options, "libcoll"]
        result = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        )
        return result.stdout.split()
    values = dict(
        line.split("=" if "=" in line.split(":")[0] else ":", 1)
        for line in (search / "libcoll.pc").read_text().splitlines()
        if line
    )
    text = values["Libs" if "--libs" in options else "Cflags"]
    for name in ("includedir", "libdir", "prefix"):
        text = text.replace("${" + name + "}", values[name])
    return text.split()


def test_a_program_links_with_pkg_config(folder, tmp_path):
    make(folder, "install", f"PREFIX={tmp_path}")
    flags = pkg_config(tmp_path, "--cflags")
    assert flags == [f"-I{tmp_path}/include"]
    libraries = pkg_config(tmp_path, "--libs")
    assert libraries == [f"-L{tmp_path}/lib", "-lcoll"]
    program = tmp_path / "choices"
    command = [support.toolchain().mpicc, *flags, f"-I{folder / 'check'}"]
    command += [str(support.HERE / "choices.c"), "-o"]
    command += [str(program), *libraries, f"-Wl,-rpath,{tmp_path}/lib"]
    subprocess.run(command, check=True, timeout=60)
    result = support.run(RANKS, program, "alltoall")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "world alltoall 1 aapc_barrier" in result.stdout


def test_the_library_exports_functions_of_mpi_and_its_own_and_nothing_else(folder):
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", folder / "libcoll.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    exported = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    of_some = [LARGE | SESSIONS, PERSISTENT]
    assert exported == ENTRY_POINTS | OWN | FORTRAN | REVOKE | set().union(*of_some) & exported
    assert all(exported >= names or not names & exported for names in of_some)


def test_the_static_library_defines_no_names_of_others(folder):
    """Its global symbols are MPI's, libcoll's and `coll_`…, or a routine's name."""
    listing = subprocess.run(
        ["nm", "-g", "--defined-only", folder / "libcoll.a"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = {line.split()[-1] for line in listing.splitlines() if len(line.split()) == 3}
    routines = {algorithm.routine for algorithm in support.CATALOGUE.algorithms}
    others = {n for n in names if not n.startswith(("MPI_", "libcoll_", "coll_"))}
    assert others - FORTRAN - REVOKE - PERSISTENT <= routines


def test_clean_leaves_the_sources(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    make(copy, "clean")
    left = files(copy)
    assert not [name for name in left if name.endswith((".o", ".so", ".a"))]
    assert {"Makefile", "src/dispatch.c", "decision.json"} <= left
    make(copy)
    assert {"libcoll.so", "libcoll.a"} <= files(copy)
