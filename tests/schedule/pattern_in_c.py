"""The run-time form of the scheduler of patterns, `templates/libcoll/pattern.c`, from Python."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stagegen.data import TEMPLATES
from stagegen.generate.links import link_tables
from stagegen.schedule.bounds.lower import lower_bound_of_sizes
from stagegen.schedule.model import PatternSchedule, Piece, Wait
from stagegen.topology import Topology

_INT_P, _LONG_P = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int64)


class _Pattern(ctypes.Structure):
    _fields_ = (
        ("nodes", ctypes.c_int),
        ("parent", _INT_P),
        ("rates", _LONG_P),
        ("ranks", ctypes.c_int),
        ("host", _INT_P),
        ("bytes", _LONG_P),
    )


class _Piece(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int) for name in ("source", "to", "part", "parts", "phase"))


class _Wait(ctypes.Structure):
    _fields_ = (("first", ctypes.c_int), ("then", ctypes.c_int))


class _Plan(ctypes.Structure):
    _fields_ = (
        ("pieces", ctypes.c_int),
        ("waits", ctypes.c_int),
        ("piece", ctypes.POINTER(_Piece)),
        ("wait", ctypes.POINTER(_Wait)),
        ("seconds", ctypes.c_double),
        ("operations", ctypes.c_int64),
    )


@dataclass(frozen=True)
class Planned:
    """A schedule that C made, and how many operations it took."""

    schedule: PatternSchedule
    operations: int


@lru_cache
def _library() -> ctypes.CDLL:
    folder = Path(tempfile.mkdtemp(prefix="stagegen-pattern-"))
    source = TEMPLATES / "libcoll" / "pattern.c"
    words = ["cc", "-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    words += ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    subprocess.run([*words, source, "-o", folder / "pattern.so"], check=True)
    return ctypes.CDLL(str(folder / "pattern.so"))


def planned(topology: Topology, sizes: npt.NDArray[np.int64], segment: int) -> Planned:
    """Return the schedule of a pattern that the library makes."""
    links = link_tables(topology)
    nodes = len(links.parents)
    parents, rates = (ctypes.c_int * nodes)(*links.parents), (ctypes.c_int64 * nodes)(*links.rates)
    number = {host.name: links.first_host + k for k, host in enumerate(topology.hosts)}
    hosts = [number[name] for name in topology.ranks]
    blocks = np.ascontiguousarray(sizes, np.int64)
    pattern = _Pattern(
        nodes,
        parents,
        rates,
        len(hosts),
        (ctypes.c_int * len(hosts))(*hosts),
        blocks.ctypes.data_as(_LONG_P),
    )
    plan = _Plan()
    made = _library().coll_pattern_schedule(
        ctypes.byref(pattern), ctypes.c_int64(segment), 1, ctypes.byref(plan)
    )
    assert made == 1
    try:
        return Planned(_schedule(topology, sizes, plan), plan.operations)
    finally:
        _library().coll_pattern_free(ctypes.byref(plan))


def _schedule(topology: Topology, sizes: npt.NDArray[np.int64], plan: _Plan) -> PatternSchedule:
    found = [plan.piece[i] for i in range(plan.pieces)]
    pieces = [Piece(one.source, one.to, one.part, one.parts) for one in found]
    waits = [plan.wait[i] for i in range(plan.waits)]
    together = groupby(zip(found, pieces, strict=True), key=lambda pair: pair[0].phase)
    return PatternSchedule(
        ranks=topology.ranks,
        construction="segments",
        sizes=tuple(tuple(map(int, row)) for row in sizes),
        phases=tuple(tuple(piece for _, piece in own) for _, own in together),
        waits=tuple(Wait(pieces[one.first], pieces[one.then]) for one in waits),
        seconds=plan.seconds,
        bound_seconds=lower_bound_of_sizes(topology, "alltoallv", sizes.tolist()).seconds,
    )
