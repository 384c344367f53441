"""All algorithms of a templates folder. Nothing else lists them."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from stagegen.catalogue.algorithm import NATIVE, Algorithm, Parameter
from stagegen.catalogue.front_matter import read_algorithm
from stagegen.catalogue.source_hash import SourceHashes, hash_of
from stagegen.data import TEMPLATES
from stagegen.errors import InputError

#: The folder of libcoll's own skeleton, which holds no algorithms.
SKELETON = "libcoll"


@dataclass(frozen=True)
class Catalogue:
    """The algorithms, sorted by collective and name; each collective has ``native``.

    Attributes:
        algorithms: all of them.
    """

    algorithms: tuple[Algorithm, ...]

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
        """The collectives, sorted."""
        return tuple(sorted({algorithm.collective for algorithm in self.algorithms}))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """One parameter of each name, sorted by name."""
        by_name = {p.name: p for algorithm in self.algorithms for p in algorithm.parameters}
        return tuple(by_name[name] for name in sorted(by_name))

    def of(self, collective: str) -> tuple[Algorithm, ...]:
        """The algorithms of a collective."""
        return tuple(a for a in self.algorithms if a.collective == collective)

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

    def only(self, names: Container[str]) -> Catalogue:
        """The algorithms of these full names, and the native ones."""
        return Catalogue(
            tuple(a for a in self.algorithms if a.full_name in names or a.name == NATIVE)
        )

    def used_by(self, algorithm: Algorithm) -> tuple[Algorithm, ...]:
        """The algorithms of other collectives whose routines this one calls.

        Raises:
            InputError: the catalogue lacks one.
        """
        return tuple(self.find(*name.split("/")) for name in algorithm.uses)


def load_catalogue(root: Path = TEMPLATES) -> Catalogue:
    """Read all templates ``root/<collective>/<algorithm>.c.j2``; a leading ``_`` marks other files.

    Raises:
        InputError: a front matter is wrong, a collective has no native routine, two
            algorithms give one parameter different meanings, one uses an algorithm that it
            cannot use, or a part names an unknown collective.
    """
    paths = sorted(p for p in root.glob("*/*.c.j2") if p.parent.name != SKELETON)
    algorithms = (read_algorithm(path, root) for path in paths if not path.name.startswith("_"))
    catalogue = Catalogue(tuple(algorithms))
    for collective in catalogue.collectives:
        if not any(algorithm.name == NATIVE for algorithm in catalogue.of(collective)):
            raise InputError(f"there is no {NATIVE}.c.j2", root / collective)
    meanings = {(p.name, p.meaning) for a in catalogue.algorithms for p in a.parameters}
    if len(meanings) != len(catalogue.parameters):
        raise InputError("two algorithms give one parameter different meanings", root)
    for algorithm in catalogue.algorithms:
        _check_used(catalogue, algorithm, root / algorithm.template)
        _check_parts(catalogue, algorithm, root / algorithm.template)
    return _with_hashes(catalogue, root)


def _check_used(catalogue: Catalogue, algorithm: Algorithm, path: Path) -> None:
    """Check that the algorithms that an algorithm uses can serve all of its calls."""
    for name, used in zip(algorithm.uses, catalogue.used_by(algorithm), strict=True):
        if used.uses:
            raise InputError(f"`uses`: {name} uses others itself", path)
        if algorithm.serves_more_than(used):
            raise InputError(f"`uses`: {name} asks for more than this algorithm does", path)


def _check_parts(catalogue: Catalogue, algorithm: Algorithm, path: Path) -> None:
    """Check that the parts of a composition are calls of known collectives."""
    for part in algorithm.parts:
        if part.collective not in catalogue.collectives:
            raise InputError(f"`parts`: there is no collective {part.collective}", path)


def _with_hashes(catalogue: Catalogue, root: Path) -> Catalogue:
    """Return the catalogue with the hash of each algorithm, which covers those that it uses."""
    sources = SourceHashes(root)
    own = {a.full_name: _own_hash(a, root, sources) for a in catalogue.algorithms}
    return Catalogue(
        tuple(
            replace(a, hash=hash_of((own[a.full_name], *(own[name] for name in a.uses))))
            for a in catalogue.algorithms
        )
    )


def _own_hash(algorithm: Algorithm, root: Path, sources: SourceHashes) -> str:
    """Return the hash of a template, of the view that it works on, and of its front matter."""
    template = root / algorithm.template
    view = template.with_name("_call.c.j2")
    files = (template, view) if view.is_file() else (template,)
    return hash_of((*map(sources.of, files), *algorithm.facts))
