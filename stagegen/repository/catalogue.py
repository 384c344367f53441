"""All algorithms of a templates folder. Nothing else lists them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from stagegen.data import TEMPLATES
from stagegen.errors import InputError
from stagegen.repository.algorithm import NATIVE, Algorithm, Parameter
from stagegen.repository.front_matter import read_algorithm

#: The folder of libcoll's own skeleton, which holds no algorithms.
SKELETON = "libcoll"


@dataclass(frozen=True)
class Catalogue:
    """The algorithms, sorted by collective and name; each collective has ``native``.

    Attributes:
        algorithms: all of them.
        hash: SHA-256 over all templates of algorithms, those that they share included.
    """

    algorithms: tuple[Algorithm, ...]
    hash: str

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
            InputError: there is none; the message lists those that there are.
        """
        known = {algorithm.name: algorithm for algorithm in self.of(collective)}
        if name not in known:
            listed = ", ".join(known) or "nothing: the collective is unknown"
            raise InputError(f"no algorithm '{name}' of {collective}; there is {listed}")
        return known[name]

    def used_by(self, algorithm: Algorithm) -> tuple[Algorithm, ...]:
        """The algorithms of other collectives whose routines this one calls.

        Raises:
            InputError: the catalogue lacks one.
        """
        return tuple(self.find(*name.split("/")) for name in algorithm.uses)


def load_catalogue(root: Path = TEMPLATES) -> Catalogue:
    """Read all templates ``root/<collective>/<algorithm>.c.j2``; a leading ``_`` is no algorithm.

    Raises:
        InputError: a front matter is wrong, a collective has no native routine, two
            algorithms give one parameter different meanings, one uses what it cannot, or a part is
            of no collective.
    """
    paths = sorted(p for p in root.glob("*/*.c.j2") if p.parent.name != SKELETON)
    algorithms = (read_algorithm(path, root) for path in paths if not path.name.startswith("_"))
    catalogue = Catalogue(tuple(algorithms), _hash(paths, root))
    for collective in catalogue.collectives:
        if not any(algorithm.name == NATIVE for algorithm in catalogue.of(collective)):
            raise InputError(f"there is no {NATIVE}.c.j2", root / collective)
    meanings = {(p.name, p.meaning) for a in catalogue.algorithms for p in a.parameters}
    if len(meanings) != len(catalogue.parameters):
        raise InputError("two algorithms give one parameter different meanings", root)
    for algorithm in catalogue.algorithms:
        _check_used(catalogue, algorithm, root / algorithm.template)
        _check_parts(catalogue, algorithm, root / algorithm.template)
    return catalogue


def _check_used(catalogue: Catalogue, algorithm: Algorithm, path: Path) -> None:
    """Check that an algorithm is called only where those that it uses can do their part."""
    for name, used in zip(algorithm.uses, catalogue.used_by(algorithm), strict=True):
        if used.uses:
            raise InputError(f"`uses`: {name} uses others itself", path)
        if algorithm.serves_more_than(used):
            raise InputError(f"`uses`: {name} asks for more than this algorithm does", path)


def _check_parts(catalogue: Catalogue, algorithm: Algorithm, path: Path) -> None:
    """Check that the parts of a composition are calls of collectives that there are."""
    for part in algorithm.parts:
        if part.collective not in catalogue.collectives:
            raise InputError(f"`parts`: there is no collective {part.collective}", path)


def _hash(paths: list[Path], root: Path) -> str:
    """SHA-256 over names and contents, independent of where ``root`` is."""
    total = hashlib.sha256()
    for path in paths:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(root).as_posix()} {digest}\n".encode())
    return total.hexdigest()
