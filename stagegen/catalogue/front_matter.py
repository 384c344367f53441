"""The front matter of a template: YAML in its leading Jinja comment, checked key by key.

One file may hold several algorithms with one mechanism: the rows of ``variants``. The other keys
are what the rows have in common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from stagegen.catalogue.algorithm import (
    CONSTRAINTS,
    OF_TABLES,
    OWN_TABLES,
    PARTS_MOST,
    PLACES,
    SCHEDULES,
    STEPS,
    Adaptation,
    Algorithm,
    Parameter,
    Part,
)
from stagegen.catalogue.formula import read_formula
from stagegen.catalogue.keys import Keys, line_of, one_of, read_mapping, text_of
from stagegen.catalogue.templates import Templates
from stagegen.catalogue.values import INT_MOST, NAMES, ValueRange
from stagegen.errors import InputError

_LEADING_COMMENT = re.compile(r"\A\{#---\n(?P<yaml>.*?)\n---#\}\n", re.DOTALL)
_MEMBER = re.compile(r"\.(\w+) = ")
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_RANGE = {"from", "to", "times"}
_HASH = re.compile(r"[0-9a-f]{64}\Z")
_SIZES = ("n", "p", "e")
_USED = re.compile(r"[a-z0-9_]+/[a-z][a-z0-9_]*\Z")
_VARIANTS = "variants"
_WHAT = "the front matter"


def read_algorithms(path: str, templates: Templates) -> tuple[Algorithm, ...]:
    """Read the algorithms of a template.

    Without `variants`, this is one algorithm, with the file's name.

    Raises:
        InputError: the front matter is missing, is not YAML, or has unknown keys or values.
    """
    text, where = templates.text(path), templates.where(path)
    values = _parse(text, where)
    return tuple(
        _read_algorithm(collective, name, own, path, templates)
        for collective, name, own in _rows(values, path, where, text)
    )


def _rows(
    values: Mapping[str, Any], path: str, where: str, text: str
) -> Iterator[tuple[str, str, Keys]]:
    """Yield collective, name and keys of each algorithm of a file."""
    folder, _, file = path.partition("/")
    common = {key: value for key, value in values.items() if key != _VARIANTS}
    if _VARIANTS not in values:
        yield folder, file.removesuffix(".c.j2"), Keys(common, _WHAT, where, text)
        return
    rows = values[_VARIANTS]
    readable = isinstance(rows, dict) and all(isinstance(o, dict | None) for o in rows.values())
    if not rows or not readable:
        message = f"{_WHAT}'s `variants`: expected a mapping from names to the keys of each"
        raise InputError(message, where, line_of(_VARIANTS, text.splitlines()))
    for full_name, own in rows.items():
        collective, _, name = str(full_name).rpartition("/")
        keys = Keys({**common, **(own or {})}, _WHAT, where, text, row=str(full_name))
        yield collective or folder, name, keys


def _read_algorithm(
    collective: str, name: str, values: Keys, path: str, templates: Templates
) -> Algorithm:
    """Read an algorithm from its keys."""
    where = templates.where(path)
    parameters = values.take("parameters", _parameters, default=())
    names = [parameter.name for parameter in parameters]
    algorithm = Algorithm(
        collective=collective,
        name=name,
        summary=values.take("summary", text_of),
        wins=values.take("wins", text_of, default=""),
        example=values.take("example", text_of, default=""),
        parameters=parameters,
        constraints=values.take("constraints", _subset(CONSTRAINTS), default=()),
        needs=values.take("needs", one_of((*SCHEDULES, *PLACES, OWN_TABLES)), default=None),
        construction=values.take("kind", text_of, default=None),
        topology=values.take("topology", _hash, default=None),
        traits=values.take("traits", _traits, default=()),
        persistent=values.take("persistent", one_of(tuple(filter(None, STEPS))), default=None),
        adaptive=values.take("adaptive", _adaptation, default=None),
        max_ranks=values.take("max_ranks", _natural, default=None),
        min_bytes=values.take("min_bytes", _natural, default=0),
        max_bytes=values.take("max_bytes", _natural, default=None),
        cost=values.take("cost", text_of),
        reference=values.take("reference", text_of),
        template=PurePosixPath(path),
        deterministic=values.take("deterministic", _truth, default=False),
        arrivals=values.take("arrivals", _truth, default=False),
        uses=values.take("uses", _algorithms, default=()),
        parts=values.take("parts", _parts, default=()),
        scratch=values.take("scratch", lambda value: read_formula(value, names)),
    )
    values.done()
    if not _NAME.match(algorithm.name):
        rule = "use a-z, 0-9 and _, beginning with a letter"
        raise InputError(f"`{algorithm.name}` is no name of an algorithm: {rule}", where)
    if "dense" in algorithm.constraints and not _packs(collective, templates):
        message = f"`dense`: {algorithm.collective}/view.c has no pack and unpack for it; add them"
        raise InputError(message, where, values.line("constraints"))
    if algorithm.parts and (algorithm.parameters or algorithm.uses or algorithm.needs):
        message = "`parts`: a composition has no parameters, uses or needs of its own"
        raise InputError(f"{message}; leave them out", where, values.line("parts"))
    for parameter in parameters:
        if isinstance(parameter.values, ValueRange) and parameter.name in OF_TABLES.get(
            algorithm.needs or "", ()
        ):
            message = f"each value of `{parameter.name}` has a table here: list them"
            raise InputError(message, where, values.line("parameters"))
    if (algorithm.needs == OWN_TABLES) != (algorithm.topology is not None):
        message = f"`topology` belongs to `needs: {OWN_TABLES}`, and only to it"
        raise InputError(message, where, values.line("topology"))
    allowed = SCHEDULES.get(algorithm.needs or "", (None,))
    if algorithm.construction not in allowed:
        has_schedule = algorithm.needs in SCHEDULES
        listed = ", ".join(map(str, allowed)) if has_schedule else "nothing without a schedule"
        message = f"`kind` is {algorithm.construction}, but has to be {listed}"
        raise InputError(message, where, values.line("kind"))
    return algorithm


def _packs(collective: str, templates: Templates) -> bool:
    """Whether a collective can pack its calls into plain bytes for routines that ask for it."""
    view = f"{collective}/view.c"
    has = templates.has(view)
    return has and {"pack", "unpack"} <= set(_MEMBER.findall(templates.text(view)))


def _parse(text: str, path: str) -> Mapping[str, Any]:
    match = _LEADING_COMMENT.match(text)
    if match is None:
        raise InputError("the front matter is missing: begin with a {#--- … ---#} comment", path, 1)
    return read_mapping(match["yaml"], _WHAT, path, first=2)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return value


def _natural(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("expected a number, 0 or more")
    return value


def _hash(value: Any) -> str:
    if not isinstance(value, str) or not _HASH.match(value):
        raise ValueError("expected the hash of a topology, 64 digits of base 16")
    return value


def _subset(known: Mapping[str, str]) -> Callable[[Any], tuple[str, ...]]:
    def convert(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not set(value) <= set(known):
            raise ValueError(f"expected a list of {', '.join(known)}")
        return tuple(sorted(value))

    return convert


def _algorithms(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(_USED.match(str(name)) for name in value):
        raise ValueError("expected a list of collective/algorithm")
    return tuple(value)


def _traits(value: Any) -> tuple[tuple[str, str | int], ...]:
    if not isinstance(value, dict) or not all(isinstance(v, str | int) for v in value.values()):
        raise ValueError("expected a mapping from names to texts or numbers")
    return tuple((str(name), own) for name, own in value.items())


#: The terms of the cost model of Faraj 2006, §4.1.1.1.
_TERMS = ("α", "β", "θ", "γ", "γ_n", "γ_l", "γ_s", "δ_l", "δ_h")


def _aims(value: Any) -> tuple[str, ...]:
    terms = tuple(value if isinstance(value, list) else [value])
    if not terms or not set(terms) <= set(_TERMS):
        raise ValueError(f"expected `optimises` to be of {', '.join(_TERMS)}, or a list of these")
    return terms


def _adaptation(value: Any) -> Adaptation:
    known = {"group", "optimises", "representative", "max_bytes", "without_hosts"}
    if not isinstance(value, dict) or not set(value) <= known:
        raise ValueError(f"expected a mapping of {', '.join(sorted(known))}")
    return Adaptation(
        _natural(value.get("group", 0)),
        _truth(value.get("representative", False)),
        _natural(value["max_bytes"]) if "max_bytes" in value else None,
        _truth(value.get("without_hosts", False)),
        _aims(value["optimises"]) if "optimises" in value else (),
    )


def _parts(value: Any) -> tuple[Part, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= PARTS_MOST:
        raise ValueError(f"expected 1 to {PARTS_MOST} entries `collective: formula of its size`")
    return tuple(
        Part(str(name), read_formula(size, (), _SIZES))
        for one in value
        for name, size in one.items()
    )


def _parameters(value: Any) -> tuple[Parameter, ...]:
    return tuple(_parameter(name, entry) for name, entry in value.items())


def _parameter(name: str, entry: Any) -> Parameter:
    if set(entry) != {"meaning", "values", "default"}:
        raise ValueError(f"`{name}` needs meaning, values and default, and nothing else")
    if not _NAME.match(name):
        raise ValueError(f"`{name}` needs a name [a-z][a-z0-9_]*")
    of_range = isinstance(entry["values"], dict)
    values = _range(name, entry["values"]) if of_range else _list(name, entry["values"])
    default = _natural(entry["default"])
    if not (values.holds(default) if isinstance(values, ValueRange) else default in values):
        raise ValueError(f"the default of `{name}` is not one of its values")
    return Parameter(name, text_of(entry["meaning"]), values, default)


def _list(name: str, entry: Any) -> tuple[int, ...]:
    values = tuple(_natural(number) for number in entry)
    if not values or sorted(set(values)) != list(values):
        raise ValueError(f"`{name}` needs ascending values, or from and to, and maybe times")
    return values


def _range(name: str, entry: dict[str, Any]) -> ValueRange:
    if not {"from", "to"} <= set(entry) <= _RANGE:
        raise ValueError(f"the values of `{name}` need from and to, and maybe times")
    first, times = _natural(entry["from"]), _natural(entry.get("times", 2))
    if not 1 <= first <= INT_MOST:
        raise ValueError(f"the values of `{name}` must begin `from` 1 or more")
    if times < 2:
        raise ValueError(f"`times` of `{name}` must be 2 or more; steps of 1 need none")
    end = read_formula(entry["to"], (), NAMES)
    return ValueRange(first, end, times if "times" in entry else 1)
