"""What to tune, as the user asks for it and as the log's header keeps it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from stagegen.catalogue.selection import EVERYTHING, Selection
from stagegen.errors import InputError, what_is_wrong
from stagegen.measure.entries import CALLED, entry, natural, number
from stagegen.measure.timing import Timing
from stagegen.patterns import Pattern
from stagegen.patterns.model import DEFAULT_SCALES
from stagegen.topology import WHOLE
from stagegen.tune.communicators import name_of
from stagegen.tune.protocol import Protocol

#: Message sizes of Faraj 2006, §4.1.1.4, in bytes; beyond the last one they double on.
SIZES = (1, 64, 512, *(1024 << k for k in range(9)))

T = TypeVar("T", str, int)


@dataclass(frozen=True)
class Wanted:
    """A collective on a communicator, and the sizes at which a program calls it.

    Attributes:
        collective: its name.
        communicator: its name, as in :mod:`stagegen.tune.communicators`.
        sizes: in bytes, ascending.
        part: whether it only serves parts of what the program calls, at these sizes
            (:mod:`stagegen.tune.part_subjects`).
    """

    collective: str
    communicator: str
    sizes: tuple[int, ...]
    part: bool = False


@dataclass(frozen=True)
class Options:
    """What to tune.

    Attributes:
        collectives: sorted names.
        sizes: message sizes in bytes, ascending.
        timing: the timing mechanism.
        budget: seconds of measured time for a size after which no repetitions are added.
        communicators: names of the ones to tune for, as in :mod:`stagegen.tune.communicators`.
        selection: the algorithms that compete.
        protocol: how often to measure, and which differences count.
        wanted: what a program calls, if only that is to be tuned; empty for all sizes of all
            collectives on all communicators.
        total: seconds for the whole tuning; None for no limit.
        patterns: each is tuned for besides all else; the communicators name them.
        scales: the factors by which the blocks of each pattern are made longer or shorter.
    """

    collectives: tuple[str, ...]
    sizes: tuple[int, ...]
    timing: Timing
    budget: float
    communicators: tuple[str, ...] = (WHOLE,)
    selection: Selection = EVERYTHING
    protocol: Protocol = field(default_factory=Protocol)
    wanted: tuple[Wanted, ...] = ()
    total: float | None = None
    patterns: tuple[Pattern, ...] = ()
    scales: tuple[float, ...] = DEFAULT_SCALES

    def pattern_of(self, communicator: str) -> Pattern | None:
        """Return the pattern of the calls on a communicator; None if calls there have any."""
        return next((one for one in self.patterns if name_of(one) == communicator), None)

    def wants(self, collective: str, communicator: str) -> bool:
        """Whether a collective is tuned on a communicator."""
        pattern = self.pattern_of(communicator)
        if pattern is not None:
            return pattern.collective == collective
        return not self.wanted or any(
            (one.collective, one.communicator) == (collective, communicator) for one in self.wanted
        )

    def is_part(self, collective: str, communicator: str) -> bool:
        """Whether a collective there only serves parts of what a program calls."""
        return any(
            one.part and (one.collective, one.communicator) == (collective, communicator)
            for one in self.wanted
        )

    def sizes_on(self, collective: str, communicator: str) -> tuple[int, ...]:
        """Return the sizes at which a program calls a collective there; else those for all."""
        for one in self.wanted:
            if (one.collective, one.communicator) == (collective, communicator):
                return one.sizes
        return self.sizes

    def to_json(self) -> dict[str, Any]:
        """Return the form of the log's header."""
        return {
            "collectives": list(self.collectives),
            "sizes": list(self.sizes),
            "timing": self.timing.to_json(),
            "budget": self.budget,
            **({"total_budget": self.total} if self.total is not None else {}),
            "communicators": list(self.communicators),
            "selection": _selection_form(self.selection),
            "protocol": self.protocol.to_json(),
            **({"wanted": list(map(_wanted_form, self.wanted))} if self.wanted else {}),
            **(self._patterns_form() if self.patterns else {}),
        }

    def _patterns_form(self) -> dict[str, Any]:
        return {"patterns": list(map(pattern_form, self.patterns)), "scales": list(self.scales)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Options:
        """Read the form of the log's header.

        Raises:
            InputError: it is damaged.
        """
        try:
            return cls(
                _ascending(data, "collectives", str),
                _ascending(data, "sizes", int),
                Timing.from_json(entry(data, "timing", dict)),
                math.inf if data["budget"] == math.inf else number(data["budget"]),
                _communicators(data),
                _selection(data),
                Protocol.from_json(data),
                tuple(map(_read_wanted, data.get("wanted", ()))),
                number(data["total_budget"]) if "total_budget" in data else None,
                tuple(map(read_pattern, data.get("patterns", ()))),
                tuple(map(number, data.get("scales", DEFAULT_SCALES))),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"the header of the log is damaged: {what_is_wrong(error)}; measure again, or use "
                "an undamaged copy"
            ) from error


def _communicators(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the communicators' names; old logs, which know only one, have none.

    Raises:
        TypeError, ValueError: they are not names.
    """
    if "communicators" not in data:
        return (WHOLE,)
    names: list[str] = entry(data, "communicators", list)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError("`communicators` must be names, at least one")
    return tuple(names)


def pattern_form(pattern: Pattern) -> dict[str, Any]:
    """Return what is kept of a pattern: its content and its ranks, and not its origin."""
    return {
        "name": pattern.name,
        "collective": pattern.collective,
        **({"class": True} if pattern.is_class else {}),
        **({"scales": list(pattern.scales)} if pattern.scales else {}),
        **({"group": pattern.group} if pattern.group is not None else {}),
        "bytes": [list(row) for row in pattern.sizes],
    }


def read_pattern(form: Mapping[str, Any]) -> Pattern:
    """Read the form of a pattern.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    rows = tuple(
        tuple(natural({"bytes": size}, "bytes") for size in row)
        for row in entry(form, "bytes", list)
    )
    pattern = Pattern(
        entry(form, "name", str),
        entry(form, "collective", str),
        rows,
        is_class="class" in form and entry(form, "class", bool),
        scales=tuple(map(number, form.get("scales", ()))),
        group=entry(form, "group", str) if "group" in form else None,
    )
    count = len(rows[0]) if rows else 0
    if not count or [len(row) for row in rows] != [count] * (count if pattern.is_matrix else 1):
        raise ValueError(
            "`bytes` must have a row for each sender, and in it a number for each rank"
        )
    return pattern


def _wanted_form(wanted: Wanted) -> dict[str, Any]:
    form = {**asdict(wanted), "sizes": list(wanted.sizes)}
    if not wanted.part:
        del form["part"]
    return form


def _read_wanted(form: Mapping[str, Any]) -> Wanted:
    """Read what a program calls.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    sizes = tuple(natural({"size": size}, "size") for size in entry(form, "sizes", list))
    if not sizes or sorted(set(sizes)) != list(sizes):
        raise ValueError("`sizes` must ascend, and not be empty")
    part = "part" in form and entry(form, "part", bool)
    return Wanted(entry(form, "collective", str), entry(form, "communicator", str), sizes, part)


def _selection_form(selection: Selection) -> dict[str, Any]:
    return {
        "algorithms": list(selection.algorithms),
        "without_algorithms": list(selection.without_algorithms),
        "without_topology": selection.without_topology,
    }


def _selection(data: Mapping[str, Any]) -> Selection:
    """Return the algorithms that compete; in old logs, which do not say, all do.

    Raises:
        KeyError, TypeError, ValueError: it is no selection.
    """
    if "selection" not in data:
        return EVERYTHING
    form = entry(data, "selection", dict)
    return Selection(
        _patterns(form, "algorithms"),
        _patterns(form, "without_algorithms"),
        entry(form, "without_topology", bool),
    )


def _patterns(form: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values: list[str] = entry(form, key, list)
    return _ascending(form, key, str) if values else ()


def _ascending(data: Mapping[str, Any], key: str, type_: type[T]) -> tuple[T, ...]:
    """Return a list of names or of sizes.

    Raises:
        KeyError, TypeError, ValueError: it is not one, is empty, or is not in order.
    """
    values: list[T] = entry(data, key, list)
    if not all(type(value) is type_ for value in values):
        raise TypeError(f"each of `{key}` must be {CALLED[type_]}")
    if not values or values != sorted(set(values)) or min(values) <= type_():
        raise ValueError(f"`{key}` must ascend, and not be empty")
    return tuple(values)


def grid(low: int, high: int) -> tuple[int, ...]:
    """Return the sizes to measure from ``low`` to ``high`` bytes, both included.

    Raises:
        InputError: there is none, or a size is below 1.
    """
    if not 1 <= low <= high:
        raise InputError(f"sizes go from at least 1 byte upwards, not from {low} to {high}")
    doubled = list(SIZES)
    while doubled[-1] < high:
        doubled.append(doubled[-1] * 2)
    return tuple(sorted({low, high, *(size for size in doubled if low <= size <= high)}))
