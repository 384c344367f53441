"""The parts that try something for real on this machine: no times count, so other load may run.

Each row is kept when it is there, so a trial that was stopped goes on. It begins anew only when it
is told to.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from docs.tools.bench_tuning import faults, launchers
from docs.tools.bench_tuning.faulty import SIZE
from docs.tools.bench_tuning.plan import HERE
from docs.tools.bench_tuning.results import Result
from docs.tools.bench_tuning.runs import Clock, kept
from docs.tools.bench_tuning.tunings import CLUSTER

#: Where rows and tunings are kept unless told otherwise.
FOLDER = Path("generated") / "bench-tuning-trials"

#: Makes a row, in an empty folder.
MakeRow = Callable[[Path], dict[str, Any]]


def try_all(part: str, clock: Clock, output: Path | None = None, anew: bool = False) -> Result:
    """Return what all rows of a trial say.

    Args:
        part: a key of :data:`docs.tools.bench_tuning.plan.TRIALS`.
        clock: of this run; it counts between rows.
        output: where rows and tunings are kept; None is :data:`FOLDER`.
        anew: whether to make the rows again that are kept.

    Raises:
        OutOfTime: the clock says so; start it again.
    """
    folder = (output or FOLDER).absolute() / part
    collective, sizes, make = _TRIALS[part]
    rows = {re.sub(r"[^\w.-]+", "-", name): row for name, row in make().items()}
    if anew:
        clock.require_time()
        shutil.rmtree(folder, ignore_errors=True)
    return Result(
        part, HERE, CLUSTER, collective, sizes, 1,
        {"rows": [_kept(folder, name, row, clock) for name, row in rows.items()]},
    )  # fmt: skip


def _kept(folder: Path, name: str, make_row: MakeRow, clock: Clock) -> dict[str, Any]:
    """Return a row, made now unless it is kept."""

    def make() -> dict[str, Any]:
        clock.require_time()
        shutil.rmtree(folder / name, ignore_errors=True)  # of a trial that was stopped
        return make_row(folder / name)

    found: dict[str, Any] = kept(folder / f"{name}.json", make)
    return found


def _faults() -> dict[str, MakeRow]:
    return {name: partial(_fault, name) for name in faults.FAULTS}


def _fault(name: str, folder: Path) -> dict[str, Any]:
    return faults.form(faults.try_fault(name, folder))


def _launchers() -> dict[str, MakeRow]:
    return {pair.name: partial(_launcher, pair, toolchain) for pair, toolchain in launchers.pairs()}


def _launcher(pair: launchers.Tried, toolchain: Any, folder: Path) -> dict[str, Any]:
    return launchers.form(launchers.try_launcher(pair, toolchain, folder))


#: By part: what is tuned, at which sizes, and its rows by their names.
_TRIALS: Mapping[str, tuple[str, str, Callable[[], dict[str, MakeRow]]]] = {
    "faults": ("bcast", f"1+{SIZE}", _faults),
    "launchers": ("barrier", "0", _launchers),
}
