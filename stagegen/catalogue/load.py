"""All collectives and algorithms of a templates folder. Nothing else lists them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from pathlib import Path

from stagegen.catalogue.algorithm import NATIVE, Algorithm, Parameter
from stagegen.catalogue.c_tokens import hash_of
from stagegen.catalogue.collective import FILE, PLANNERS, Collective, collectives_of
from stagegen.catalogue.front_matter import read_algorithms
from stagegen.catalogue.selection import EVERYTHING, Selection
from stagegen.catalogue.source_hash import SourceHashes
from stagegen.catalogue.templates import RESERVED, SKELETON, Root, Templates, templates_of
from stagegen.data import TEMPLATES
from stagegen.errors import InputError


@dataclass(frozen=True)
class Catalogue:
    """The algorithms, sorted by collective and name; each collective has ``native``.

    Attributes:
        algorithms: all of them.
        descriptions: of the collectives, sorted.
        templates: what they are read from.
        selection: which of the algorithms compete.
    """

    algorithms: tuple[Algorithm, ...]
    descriptions: tuple[Collective, ...]
    templates: Templates
    selection: Selection = EVERYTHING

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the hashes of all algorithms."""
        return hash_of(f"{name} {value}" for name, value in self.hashes.items())

    @cached_property
    def hashes(self) -> Mapping[str, str]:
        """The hash of each algorithm by its full name, such as ``alltoall/ring``."""
        return {algorithm.full_name: algorithm.hash for algorithm in self.algorithms}

    @property
    def collectives(self) -> tuple[str, ...]:
        """The collectives that have algorithms here, sorted."""
        return tuple(sorted({algorithm.collective for algorithm in self.algorithms}))

    @property
    def described(self) -> tuple[Collective, ...]:
        """The descriptions of these collectives."""
        return tuple(self.collective(name) for name in self.collectives)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """One parameter of each name, sorted by name."""
        by_name = {p.name: p for algorithm in self.algorithms for p in algorithm.parameters}
        return tuple(by_name[name] for name in sorted(by_name))

    def of(self, collective: str) -> tuple[Algorithm, ...]:
        """The algorithms of a collective."""
        return tuple(a for a in self.algorithms if a.collective == collective)

    def collective(self, name: str) -> Collective:
        """The description of a collective.

        Raises:
            InputError: there is none; the message lists the existing ones.
        """
        for one in self.descriptions:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.descriptions)
        raise InputError(f"unknown collective {name}; choose from {known}")

    def find(self, collective: str, name: str) -> Algorithm:
        """The algorithm of that name.

        Raises:
            InputError: there is none; the message lists the existing ones.
        """
        known = {algorithm.name: algorithm for algorithm in self.of(collective)}
        if name not in known:
            listed = ", ".join(known) or "nothing: the collective is unknown"
            raise InputError(f"no algorithm '{name}' of {collective}; there is {listed}")
        return known[name]

    def only(self, names: Collection[str]) -> Catalogue:
        """The algorithms of these full names, and the native ones of their collectives."""
        collectives = {name.partition("/")[0] for name in names}
        kept = (
            a
            for a in self.algorithms
            if a.full_name in names or (a.name == NATIVE and a.collective in collectives)
        )
        return replace(self, algorithms=tuple(kept))

    def selecting(self, selection: Selection) -> Catalogue:
        """Return the catalogue in which only the algorithms of a selection compete."""
        return replace(self, selection=selection)

    @property
    def contested(self) -> tuple[str, ...]:
        """The collectives in which an algorithm competes with the native one, sorted."""
        competing = (a for a in self.algorithms if a.name != NATIVE and self.selection.admits(a))
        return tuple(sorted({algorithm.collective for algorithm in competing}))

    def used_by(self, algorithm: Algorithm) -> tuple[Algorithm, ...]:
        """The algorithms of other collectives whose routines this one calls.

        Raises:
            InputError: the catalogue lacks one.
        """
        return tuple(self.find(*name.split("/")) for name in algorithm.uses)


def load_catalogue(root: Path = TEMPLATES, added: Iterable[Root] = ()) -> Catalogue:
    """Read all templates ``<collective>/<algorithm>.c.j2``; a leading ``_`` marks other files.

    The native routine of every collective is made from one template.

    Args:
        root: the folder of the templates.
        added: the templates that a user adds to them.

    Raises:
        InputError: a description or a front matter is wrong, a collective has no description, two
            algorithms have one name or give one parameter different meanings, one uses an
            algorithm that it cannot use, or a part names an unknown collective.
    """
    return _catalogue_of(templates_of(root, added))


@lru_cache(maxsize=8)
def _catalogue_of(templates: Templates) -> Catalogue:
    """Return the catalogue of templates; a process that audits several folders reads them once."""
    descriptions = collectives_of(templates)
    paths = (path for path in templates.matching("*/*.c.j2") if not _is_apart(path))
    read = (read_algorithms(path, templates) for path in paths)
    algorithms = (*chain.from_iterable(read), *_natives(descriptions, templates))
    ordered = sorted(algorithms, key=lambda a: (a.collective, a.name))
    catalogue = Catalogue(tuple(ordered), descriptions, templates)
    known = {one.name for one in descriptions}
    for algorithm in ordered:
        if algorithm.collective not in known:
            message = f"the collective {algorithm.collective} has no {FILE}; write one"
            raise InputError(message, _where(catalogue, algorithm))
    for one, other in pairwise(ordered):
        if one.full_name == other.full_name:
            message = f"there is a second {one.full_name}, in {_where(catalogue, one)}"
            raise InputError(f"{message}; rename one of them", _where(catalogue, other))
    _check_meanings(catalogue)
    for algorithm in catalogue.algorithms:
        _check_used(catalogue, algorithm)
        _check_parts(catalogue, algorithm)
        _check_persistent(catalogue, algorithm)
    return _with_hashes(catalogue)


def _is_apart(path: str) -> bool:
    """Tell whether a template is no algorithm of a collective's own folder."""
    folder, _, name = path.partition("/")
    return folder in RESERVED or name.startswith("_")


def _where(catalogue: Catalogue, algorithm: Algorithm) -> str:
    """Return what messages call the template of an algorithm."""
    return catalogue.templates.where(algorithm.template.as_posix())


def _natives(descriptions: Iterable[Collective], templates: Templates) -> Iterator[Algorithm]:
    """Yield the native routine of each collective."""
    for one in descriptions:
        for native in read_algorithms(f"{SKELETON}/{NATIVE}.c.j2", templates):
            yield replace(native, collective=one.name)


def _check_meanings(catalogue: Catalogue) -> None:
    """Check that a parameter of one name has one meaning."""
    first: dict[str, tuple[str, Algorithm]] = {}
    for algorithm in catalogue.algorithms:
        for parameter in algorithm.parameters:
            meaning, other = first.setdefault(parameter.name, (parameter.meaning, algorithm))
            if meaning != parameter.meaning:
                message = f"`{parameter.name}` has another meaning in {_where(catalogue, other)}"
                advice = "rename the parameter, or give it the same meaning"
                raise InputError(f"{message}; {advice}", _where(catalogue, algorithm))


def _check_used(catalogue: Catalogue, algorithm: Algorithm) -> None:
    """Check that the algorithms that an algorithm uses can serve all of its calls."""
    for name, used in zip(algorithm.uses, catalogue.used_by(algorithm), strict=True):
        where = _where(catalogue, algorithm)
        if used.uses:
            raise InputError(f"`uses`: {name} uses others itself; name these instead", where)
        if algorithm.serves_more_than(used):
            problem = f"`uses`: {name} asks for more than this algorithm does"
            raise InputError(f"{problem}; ask for as much here, or use another one", where)


def _check_parts(catalogue: Catalogue, algorithm: Algorithm) -> None:
    """Check that the parts of a composition are calls of known collectives."""
    for part in algorithm.parts:
        if part.collective not in catalogue.collectives:
            listed = ", ".join(catalogue.collectives)
            message = f"`parts`: there is no collective {part.collective}; choose from {listed}"
            raise InputError(message, _where(catalogue, algorithm))


def _check_persistent(catalogue: Catalogue, algorithm: Algorithm) -> None:
    """Check that what plans the collective's persistent form knows the algorithm's steps."""
    plan = catalogue.collective(algorithm.collective).plan
    known = () if plan is None else PLANNERS[plan]
    if algorithm.persistent is not None and algorithm.persistent not in known:
        there = f"choose from {', '.join(known)}" if known else "leave it out"
        message = f"`persistent`: no {algorithm.persistent} for {algorithm.collective}; {there}"
        raise InputError(message, _where(catalogue, algorithm))


def _with_hashes(catalogue: Catalogue) -> Catalogue:
    """Return the catalogue with the hash of each algorithm, which covers those that it uses."""
    sources = SourceHashes(catalogue.templates)
    own = {a.full_name: _own_hash(a, catalogue, sources) for a in catalogue.algorithms}
    hashed = (
        replace(a, hash=hash_of((own[a.full_name], *(own[name] for name in a.uses))))
        for a in catalogue.algorithms
    )
    return replace(catalogue, algorithms=tuple(hashed))


def _own_hash(algorithm: Algorithm, catalogue: Catalogue, sources: SourceHashes) -> str:
    """Return the hash of a template, its view, its collective and its front matter."""
    view = f"{algorithm.collective}/view.c"
    has_view = catalogue.templates.has(view)
    files = (algorithm.template.as_posix(), *([view] if has_view else []))
    described = catalogue.collective(algorithm.collective)
    code = sources.of(files, described, is_native="unprepared" in algorithm.constraints)
    return hash_of((code, *described.facts, *algorithm.facts))
