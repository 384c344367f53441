"""Programs of others, as they are installed, are recorded: they call at the same places again."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from stagegen.recording import Recording, read
from stagegen.recording.calls import align
from tests.mpi import builds, support

pytestmark = pytest.mark.mpi

RANKS = 4
ROOT = Path(__file__).resolve().parents[2]
#: The input that Debian has for HPCC.
INPUT = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
#: How docs/examples/programs/README.md changes it: lines by their comments.
CHANGES = {"Ns": "200", "Ps": "2", "Qs": "2"}
#: Bytes that a process has of a cube of 8 x 8 x 8 complex numbers, in halves for the other of two.
BLOCK = 16 * 8**3 // RANKS // 2


class Call(NamedTuple):
    """Where a program calls, and with what."""

    collective: str
    site: str
    ranks: tuple[int, ...]
    size: int


def recorded(folder: Path, *words: str | Path) -> Recording:
    """What `stagegen record` keeps of a command that runs in a folder."""
    with support.to_be_made("cache") as (cache, _):
        cache.mkdir(exist_ok=True)
    variables = {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
                 "XDG_CACHE_HOME": str(cache), "OMPI_MCA_mpi_yield_when_idle": "1"}  # fmt: skip
    record = (sys.executable, "-m", "stagegen", "record", "--output", "out", "--")
    done = subprocess.run(
        [*map(str, (*record, *words))], cwd=folder, env={**os.environ, **variables},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    recording = read(folder / "out")
    assert recording.finished
    assert (recording.size, len(recording.ranks)) == (RANKS, RANKS)
    return recording


def calls_of(recording: Recording) -> Counter[Call]:
    """How often each function is called at each site, on which ranks and with which size.

    What a rank calls alone is counted without the rank: HPCC draws it.
    """
    aligned = align(recording)
    assert aligned.unmatched == 0
    found = Counter[Call]()
    for one in aligned.calls:
        ranks = tuple(sorted(one.ranks)) if len(one.ranks) > 1 else ()
        found[Call(one.collective, one.site, ranks, one.size)] += len(one.sequences)
    return found


def test_hpcc_is_recorded_and_calls_at_the_same_sites_again(tmp_path):
    """Some of its loops run for a time, so a few calls are made more often than before."""
    hpcc = shutil.which("hpcc")
    if hpcc is None or not INPUT.exists():
        pytest.skip(f"needs Debian's hpcc, with {INPUT}")
    mpi = builds.Mpi.of_system("openmpi")
    text = INPUT.read_text(encoding="utf-8")
    for comment, value in CHANGES.items():
        text, changed = re.subn(rf"^\S+(?=\s+{comment}$)", value, text, flags=re.MULTILINE)
        assert changed == 1
    runs = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "hpccinf.txt").write_text(text, encoding="utf-8")
        start = (mpi.mpiexec, "--allow-run-as-root", "--oversubscribe", "-n", RANKS)
        runs.append(calls_of(recorded(folder, *map(str, (*start, hpcc)))))
        told = (folder / "hpccoutf.txt").read_text(encoding="utf-8")
        assert "Success=1" in told
        assert "CommWorldProcs=4" in told
    assert runs[0].keys() == runs[1].keys()
    assert sum(runs[0][one] == runs[1][one] for one in runs[0]) > 0.9 * len(runs[0])
    assert {"allreduce", "alltoall", "barrier", "bcast", "gather", "reduce"} <= {
        one.collective for one in runs[0]
    }
    assert all(one.site.startswith("hpcc+0x") for one in runs[0])
    assert {len(one.ranks) for one in runs[0]} >= {0, RANKS}


def test_mpi4py_fft_is_recorded_and_transposes_on_rows_and_columns(tmp_path):
    if importlib.util.find_spec("mpi4py_fft") is None:
        pytest.skip("needs mpi4py-fft: pip install mpi4py-fft, with Debian's libfftw3-dev")
    mpi = builds.Mpi.of_environment()
    program = support.HERE / "programs" / "transform.py"
    words = (mpi.mpiexec, "-n", str(RANKS), sys.executable, program)
    runs = [calls_of(recorded(tmp_path, *words)) for _ in range(2)]
    assert runs[0] == runs[1]
    pairs = ((0, 1), (0, 2), (1, 3), (2, 3))
    (site,) = {one.site for one in runs[0] if one.collective == "alltoallw"}
    there_and_back = {Call("alltoallw", site, pair, BLOCK): 2 for pair in pairs}
    assert {one: n for one, n in runs[0].items() if one.site == site} == there_and_back
