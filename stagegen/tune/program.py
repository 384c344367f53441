"""What a program calls, from its traces: the subjects that are worth tuning for it.

A trace is the file that `LIBCOLL_TRACE=json:FILE` writes (`templates/libcoll/histogram.c`), or a
recording of ``stagegen record``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stagegen.catalogue import Catalogue
from stagegen.errors import InputError, what_is_wrong
from stagegen.measure.entries import entry, natural, number
from stagegen.recording.container import is_recording
from stagegen.topology import WHOLE, Topology
from stagegen.tune.communicators import job_of, name_of
from stagegen.tune.decision import CLUSTER, GROUP, HOSTS, ONE_HOST
from stagegen.tune.part_subjects import part_subjects
from stagegen.tune.recorded_program import recorded_form
from stagegen.tune.scope import Options, Wanted
from stagegen.tune.shapes import Shape

VERSION = 1

#: Calls that take the last share of the time in collectives are not tuned for.
LEFT_OUT = 0.005

#: A size is not measured itself if a more important one is within this factor.
NEAR = 1.15


@dataclass(frozen=True)
class Calls:
    """Calls that count as one.

    Attributes:
        collective: which one.
        communicator: the kind of table that served them, such as `cluster` or `group NAME`.
        ranks: of the communicators.
        hosts: on which they are; None if that is not known.
        size: in bytes.
        calls: how many.
        seconds: what all of them took on rank 0 of their communicators.
    """

    collective: str
    communicator: str
    ranks: int
    hosts: int | None
    size: int
    calls: int
    seconds: float


@dataclass(frozen=True)
class Program:
    """What tuning for a program is to do.

    Attributes:
        wanted: the subjects, those that take the most time first.
        seconds: of all calls of the traces, each times the ranks that are in it.
        covered: likewise of the calls that the subjects are for.
        unknown: likewise of the calls that no table can serve: on hosts that the topology lacks, or
            of collectives that the catalogue lacks.
    """

    wanted: tuple[Wanted, ...]
    seconds: float
    covered: float
    unknown: float


def read_trace(path: Path, topology: Topology) -> tuple[Calls, ...]:
    """Read a trace.

    Raises:
        InputError: the file is no trace, or the trace of another topology.
    """
    try:
        form = _form(path, topology)
        if entry(form, "version", int) != VERSION:
            problem = f"a trace of version {form['version']}, and {VERSION} is needed"
            raise InputError(f"{problem}; trace again with a library of this stagegen", path)
        if entry(form, "topology_hash", str) != topology.hash:
            raise InputError(
                "this trace was written with a library for another topology; name the topology "
                "file of its cluster",
                path,
            )
        return tuple(map(_read_calls, entry(form, "calls", list)))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path) from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(
            f"not a file of LIBCOLL_TRACE=json:FILE: {what_is_wrong(error)}; run the program "
            "again with it",
            path,
        ) from error


def _form(path: Path, topology: Topology) -> Mapping[str, Any]:
    """Return the form of a trace, or of the recording that the file is."""
    if is_recording(path) or path.is_dir():
        return recorded_form(path, topology)
    form: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return form


def _read_calls(form: Mapping[str, Any]) -> Calls:
    hosts = None if form["hosts"] is None else natural(form, "hosts", 1)
    return Calls(
        entry(form, "collective", str),
        entry(form, "communicator", str),
        natural(form, "ranks", 1),
        hosts,
        natural(form, "bytes"),
        natural(form, "calls", 1),
        number(form["seconds"]),
    )


def program_of(traces: Iterable[Calls], topology: Topology) -> Program:
    """Return what to tune for a program.

    Calls count by the time that they took, times their ranks. The least important ones,
    :data:`LEFT_OUT` of the time, are left out. If sizes are near each other (:data:`NEAR`), only
    the most important one counts.

    Raises:
        InputError: no table can serve any of the calls.
    """
    seconds: dict[tuple[str, str, int], float] = defaultdict(float)
    total = unknown = 0.0
    for one in traces:
        spent = one.seconds * one.ranks  # each rank is in the call
        total += spent
        name = _name_of(one, topology)
        if name is None:
            unknown += spent
        else:
            seconds[one.collective, name, one.size] += spent
    if not seconds:
        raise InputError("the traces have no call that a table could serve")
    kept = list(_most_important(seconds))
    subjects: dict[tuple[str, str], list[int]] = defaultdict(list)
    for collective, name, size in kept:
        sizes = subjects[collective, name]
        if not any(_near(size, other) for other in sizes):
            sizes.append(size)
    wanted = (Wanted(*subject, tuple(sorted(sizes))) for subject, sizes in subjects.items())
    return Program(tuple(wanted), total, sum(seconds[key] for key in kept), unknown)


def options_for(
    program: Program, options: Options, catalogue: Catalogue, topology: Topology
) -> Options:
    """Return options that tune what a program calls, and look at what serves parts of that.

    Patterns and classes stay: they are of such calls.
    """
    wanted = (*program.wanted, *part_subjects(program.wanted, catalogue, topology))
    own = [one.communicator for one in program.wanted]
    called = {*(one.collective for one in wanted), *(one.collective for one in options.patterns)}
    sizes = sorted({size for one in program.wanted for size in one.sizes if size > 0})
    return replace(
        options,
        collectives=tuple(sorted(called)),
        communicators=tuple(dict.fromkeys((*own, *map(name_of, options.patterns)))),
        sizes=tuple(sizes) or options.sizes,
        wanted=wanted,
    )


def _most_important(
    seconds: Mapping[tuple[str, str, int], float],
) -> Iterator[tuple[str, str, int]]:
    """Yield the calls that take the most time first, until little of the time is left."""
    left = total = sum(seconds.values())
    for key in sorted(seconds, key=lambda key: (-seconds[key], key)):
        if left > LEFT_OUT * total or left == total:
            yield key
        left -= seconds[key]


def _near(size: int, other: int) -> bool:
    low, high = sorted((size, other))
    return high <= NEAR * low


def _name_of(calls: Calls, topology: Topology) -> str | None:
    """Return the name of the communicator to tune for; None if no table serves the calls."""
    if calls.communicator == CLUSTER:
        return WHOLE
    kind, _, group = calls.communicator.partition(" ")
    if kind == GROUP:
        return group
    if kind not in (HOSTS, ONE_HOST) or calls.hosts is None or calls.ranks < 2:
        return None
    shape = Shape.of(calls.hosts, calls.ranks)
    everything = Shape.of(len(set(topology.ranks)), topology.rank_count)
    # A shape has one communicator for the tables of all ranks that have it.
    return WHOLE if shape == everything else job_of(topology, shape)
