"""The hosts of a job as its own ranks see them: the answers of drivers/environment.c."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias

from stagegen.measure.entries import entry, natural

#: Settings by name, sorted.
Settings: TypeAlias = tuple[tuple[str, str], ...]

#: Variables of Open MPI's launcher, which differ from launch to launch: addresses, numbers of jobs
#: and of processes, folders, the remote shell.
_OF_THE_LAUNCHER = (
    "OMPI_MCA_ess",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_oob_",
    "OMPI_MCA_orte_",
    "OMPI_MCA_plm_",
    "OMPI_MCA_pmix",
)


@dataclass(frozen=True)
class Machine:
    """A host of a job, or several that are alike.

    Attributes:
        hosts: their names, as they call themselves, by their first ranks.
        ranks: how many each of them has.
        cores: how many cores the ranks of one host may use together.
        binding: the CPUs that each rank of a host may use, such as ``0-3,8``.
        kernel: its release.
        governor: of the CPUs' frequency; ``mixed`` if they differ, empty if there is none.
        network: the kernel's settings for TCP and sockets, by their names below ``net``.
        variables: the environment variables that MPI libraries read; all values if ranks differ.
        controls: what the MPI library itself says of settings that its collectives depend on.
    """

    hosts: tuple[str, ...]
    ranks: int
    cores: int
    binding: tuple[str, ...]
    kernel: str
    governor: str
    network: Settings = ()
    variables: Settings = ()
    controls: Settings = ()

    @property
    def is_crowded(self) -> bool:
        """Whether ranks must share cores."""
        return self.ranks > self.cores

    def to_json(self) -> dict[str, Any]:
        """Return the form of the log."""
        return {
            "hosts": list(self.hosts),
            "ranks": self.ranks,
            "cores": self.cores,
            "binding": list(self.binding),
            "kernel": self.kernel,
            "governor": self.governor,
            "network": dict(self.network),
            "variables": dict(self.variables),
            "controls": dict(self.controls),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> Machine:
        """Read the form of the log.

        Raises:
            KeyError, TypeError, ValueError: it does not have that form.
        """
        return cls(
            _texts(form, "hosts"),
            natural(form, "ranks", 1),
            natural(form, "cores"),
            _texts(form, "binding"),
            entry(form, "kernel", str),
            entry(form, "governor", str),
            _settings(form, "network"),
            _settings(form, "variables"),
            _settings(form, "controls"),
        )


def machines_of(answers: Iterable[Mapping[str, Any]]) -> tuple[Machine, ...]:
    """Return the hosts of a job from what each rank said; those that are alike are one entry.

    Raises:
        KeyError, TypeError, ValueError: an answer does not have the form of the session's.
    """
    by_host: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for answer in sorted(answers, key=lambda one: natural(one, "rank")):
        by_host[entry(answer, "host", str)].append(answer)
    alike: dict[Machine, list[str]] = defaultdict(list)
    for host, ranks in by_host.items():
        alike[_machine(ranks)].append(host)
    return tuple(replace(one, hosts=tuple(hosts)) for one, hosts in alike.items())


def _machine(ranks: Sequence[Mapping[str, Any]]) -> Machine:
    """Return a host without its name, from the answers of its ranks."""
    cpus = [dict(map(_cpu, entry(rank, "cpus", list))) for rank in ranks]
    variables = _merged(_settings(rank, "variables") for rank in ranks)
    return Machine(
        hosts=(),
        ranks=len(ranks),
        cores=len({core for one in cpus for core in one.values()}),
        binding=tuple(map(as_ranges, cpus)),
        kernel=entry(ranks[0], "kernel", str),
        governor=_one_or_mixed(entry(rank, "governor", str) for rank in ranks),
        network=_settings(ranks[0], "network"),
        variables=tuple((n, v) for n, v in variables if not n.startswith(_OF_THE_LAUNCHER)),
        controls=_merged(_settings(rank, "controls") for rank in ranks),
    )


def _cpu(pair: Any) -> tuple[int, int]:
    """Return a CPU and its core.

    Raises:
        TypeError, ValueError: it is no pair of integers.
    """
    cpu, core = pair
    if not type(cpu) is type(core) is int:
        raise TypeError(f"{pair!r} is no CPU with its core")
    return cpu, core


def as_ranges(numbers: Iterable[int]) -> str:
    """Return distinct numbers as the kernel writes lists of CPUs: ``0-3,8``."""
    runs = groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0])
    ends = (([number for _, number in run]) for _, run in runs)
    return ",".join(
        str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in ends
    )  # fmt: skip


def _one_or_mixed(values: Iterable[str]) -> str:
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else "mixed"


def _merged(ranks: Iterable[Settings]) -> Settings:
    """Return the settings of all ranks of a host; several values of one are all named."""
    values: dict[str, set[str]] = defaultdict(set)
    for settings in ranks:
        for name, value in settings:
            values[name].add(value)
    return tuple((name, " | ".join(sorted(values[name]))) for name in sorted(values))


def _settings(form: Mapping[str, Any], key: str) -> Settings:
    values = entry(form, key, dict)
    if not all(isinstance(value, str) for value in values.values()):
        raise TypeError(f"`{key}` must have texts")
    return tuple(sorted(values.items()))


def _texts(form: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = entry(form, key, list)
    if not values or not all(isinstance(value, str) for value in values):
        raise TypeError(f"`{key}` must be texts, at least one")
    return tuple(values)
