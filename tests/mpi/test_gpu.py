"""Where the MPI library takes buffers on a GPU all is native, unless a promise says otherwise."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

RANKS = 3

#: What it answers, and by which function.
SAYS = {
    "SAYS_CUDA": "MPIX_Query_cuda_support",
    "SAYS_ROCM": "MPIX_Query_rocm_support",
    "SAYS_HIP": "MPIX_Query_hip_support",
    "SAYS_ZE": "MPIX_Query_ze_support",
    "SAYS_ANY": "MPIX_GPU_query_support",
}


@pytest.fixture(scope="module")
def library_that(tmp_path_factory):
    def make(says: str) -> Path:
        made = tmp_path_factory.mktemp(says) / "libgpu.so"
        command = [support.toolchain().mpicc, "-shared", "-fPIC", f"-D{says}"]
        command += ["-o", str(made), str(support.HERE / "gpu_aware.c")]
        subprocess.run(command, check=True)
        return made

    return make


def served(program: Path, preload: tuple[Path, ...] = (), **variables: str) -> tuple[set, str]:
    """Return the algorithms that served calls on any rank, and all that was said."""
    settings = {"LIBCOLL_TRACE": "all", **variables}
    result = support.run(RANKS, program, preload=preload, variables=settings)
    assert result.returncode == 0, result.stdout + result.stderr
    lines = re.findall(r"^libcoll: rank \d+: (\w+) +(\w+) +\d+\.\.", result.stderr, re.MULTILINE)
    assert {collective for collective, _ in lines} == set(support.CATALOGUE.collectives)
    return {algorithm for _, algorithm in lines}, result.stderr


def preloaded(stub: Path) -> tuple[Path, tuple[Path, ...]]:
    library = support.library(RANKS)
    words = (support.toolchain().mpicc, support.HERE / "uneven.c", f"-I{library / 'check'}")
    return builds.compiled(*words), (stub, library / "libcoll.so")


def linked(stub: Path) -> tuple[Path, tuple[Path, ...]]:
    return support.compiled("uneven.c", RANKS, "-Wl,--no-as-needed", str(stub)), ()


@pytest.mark.parametrize("how", [preloaded, linked])
@pytest.mark.parametrize("says", SAYS)
def test_all_is_native_where_buffers_may_be_on_a_gpu(library_that, says, how):
    algorithms, said = served(*how(library_that(says)))
    assert algorithms == {"native"}
    reason = f"all calls are native: buffers may be on a GPU, says {SAYS[says]}"
    assert said.count(reason) == RANKS
    of_communicator = f"native: buffers may be on a GPU, says {SAYS[says]}; no private duplicate"
    assert of_communicator in said


@pytest.mark.parametrize("how", [preloaded, linked])
@pytest.mark.parametrize(
    ("says", "variables"),
    [("SAYS_CUDA", {"LIBCOLL_HOST_BUFFERS": "1"}), ("SAYS_NO", {})],
)
def test_not_all_is_native_where_buffers_are_in_memory(library_that, says, variables, how):
    algorithms, said = served(*how(library_that(says)), **variables)
    assert len(algorithms) > 1
    assert "GPU" not in said


def test_a_promise_of_0_is_none(library_that):
    algorithms, _ = served(*linked(library_that("SAYS_CUDA")), LIBCOLL_HOST_BUFFERS="0")
    assert algorithms == {"native"}


@pytest.mark.parametrize("setting", ["LIBCOLL_FORCE", "LIBCOLL_DETERMINISTIC"])
def test_other_settings_do_not_override_it(library_that, setting):
    value = {"LIBCOLL_FORCE": "allreduce=ring"}.get(setting, "1")
    algorithms, _ = served(*linked(library_that("SAYS_CUDA")), **{setting: value})
    assert algorithms == {"native"}


#: What serves the broadcasts that `unlike.c` asks about where libraries serve.
FORCED = {"LIBCOLL_FORCE": "bcast=binomial"}


def on_last_rank_only(stub: Path, **variables: str) -> tuple[dict[str, str], str]:
    """Return which algorithms serve broadcasts of `unlike.c`, and what was said."""
    library = support.library(RANKS)
    program = builds.compiled(
        support.toolchain().mpicc, support.HERE / "unlike.c", f"-I{library / 'check'}"
    )
    last = f'[ "$PMI_RANK" = {RANKS - 1} ] && COLL="$STUB:$COLL"; '
    words = ("/bin/sh", "-c", f'{last}export LD_PRELOAD="$LD_PRELOAD:$COLL"; exec "$0"', program)
    settings = {"STUB": str(stub), "COLL": str(library / "libcoll.so"), **FORCED, **variables}
    result = support.run(RANKS, *words, variables=settings, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
    return dict(line.split() for line in result.stdout.splitlines()), result.stderr


@pytest.mark.parametrize("says", SAYS)
def test_if_one_rank_may_have_buffers_on_a_gpu_all_that_have_it_are_native(library_that, says):
    """A node without a GPU beside nodes with one: communicators of like ranks are served."""
    found, said = on_last_rank_only(library_that(says))
    assert found.pop("part") == "binomial"
    assert set(found.values()) == {"native"}
    differs = f"rank {RANKS - 1} of MPI_COMM_WORLD differs from rank 0 in LIBCOLL_HOST_BUFFERS:"
    assert said.count("differs") == said.count(differs) == 1


def test_if_one_rank_may_have_buffers_on_a_gpu_a_promise_of_all_ranks_holds(library_that):
    found, said = on_last_rank_only(library_that("SAYS_CUDA"), LIBCOLL_HOST_BUFFERS="1")
    assert set(found.values()) == {"binomial"}
    assert "differs" not in said
