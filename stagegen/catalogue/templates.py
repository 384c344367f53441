"""Templates: the files of one root or of several, as if they were in one folder.

The first root is the repository's. Users add others (:mod:`stagegen.parts`), whose templates may
include files of all roots. No two roots have a file of the same path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from operator import itemgetter
from pathlib import Path

from stagegen.data import DRIVERS, ENGINES
from stagegen.errors import InputError

#: The folder of libcoll's own skeleton, which holds no algorithms.
SKELETON = "libcoll"

#: The files of a root that templates and the catalogue are read from.
_READ = (
    *("*/*.j2", "*/*.c", "*/*.h", "*/collective.yaml", "references.yaml"),
    "adaptive/policies/*.c",
    "trees/*.tree.yaml",
    "libcoll/libcoll.pc.in",
    "recorder/Makefile",
)

_DEEPEST = max(pattern.count("/") for pattern in _READ)
_IS_READ = re.compile("|".join(re.escape(p).replace(r"\*", "[^/]*") for p in _READ))

#: What the measuring session has in its one folder of C files besides libcoll and the drivers.
SESSION_CLOCKS = ("events/clocks.c", "events/clocks.h")

#: Folders that only the repository's own root has.
RESERVED = (SKELETON, "adaptive", "recorder", "report")


@dataclass(frozen=True)
class Root:
    """The files of a folder of templates; they may never have been on a disk.

    Attributes:
        name: the folder, or what else messages call it.
        files: the text of each file, by its path below the folder, such as ``alltoall/ring.c.j2``.
        label: a short name for a copy of it: letters, digits and ``-``.
    """

    name: str
    files: Mapping[str, str]
    label: str = "templates"

    def __hash__(self) -> int:
        """Of the names alone: roots that differ in a text alone are rare."""
        return hash((self.name, self.label, frozenset(self.files)))

    def where(self, path: str) -> str:
        """Return what messages call a file."""
        return str(Path(self.name) / path)


def read_root(folder: Path) -> Root:
    """Read a folder of templates.

    Raises:
        InputError: there is no such folder, a folder in it cannot be read, or a file is no text.
    """
    if not folder.is_dir():
        raise InputError("there is no such folder of templates; name one that exists", folder)
    try:
        entries = sorted(_entries(str(folder), ""), key=itemgetter(0))
    except OSError as error:
        raise InputError(f"cannot be read: {error}", folder) from error
    files: dict[str, str] = {}
    for name, entry in entries:
        try:
            state = entry.stat()
            files[name] = _text(entry.path, (state.st_ino, state.st_mtime_ns, state.st_size))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", Path(entry.path)) from error
    return Root(str(folder), files)


def _entries(folder: str, within: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the files to read, each with its path below the folder; begin with ``within``."""
    for entry in os.scandir(f"{folder}/{within}"):
        name = within + entry.name
        if _IS_READ.fullmatch(name):
            yield name, entry
        elif name.count("/") < _DEEPEST and entry.is_dir():
            yield from _entries(folder, f"{name}/")


@lru_cache(maxsize=4096)
def _text(path: str, _state: tuple[int, ...]) -> str:
    """Return the text of a file, which is read again if its state is another one."""
    return Path(path).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Templates:
    """The files of several roots.

    Attributes:
        roots: the repository's, then those that users add.

    Raises:
        InputError: two roots have a file of the same path, or an added root has a file that is, or
            would replace, one of the library's own.
    """

    roots: tuple[Root, ...]

    def __post_init__(self) -> None:
        first, *added = self.roots
        seen = dict.fromkeys(first.files, first)
        taken = {path.name: str(path) for path in DRIVERS.iterdir()}
        taken |= {_name_in_c(p): first.where(p) for p in first.files if _is_beside_engines(p)}
        for root in added:
            for path in root.files:
                folder, _, name = path.partition("/")
                if path in seen and name:
                    message = f"is also in {seen[path].where(path)}; give one of them another name"
                    raise InputError(message, root.where(path))
                if folder in RESERVED and name:
                    message = f"`{folder}` is a folder of stagegen's own templates; rename it"
                    raise InputError(message, root.where(path))
                if folder == ENGINES and name in taken:
                    message = f"has the name of {taken[name]}; rename it"
                    raise InputError(message, root.where(path))
                seen[path] = root

    @cached_property
    def _root_of(self) -> Mapping[str, Root]:
        return {path: root for root in reversed(self.roots) for path in root.files}

    def has(self, path: str) -> bool:
        """Tell whether there is such a file."""
        return path in self._root_of

    def text(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            KeyError: there is none.
        """
        return self._root_of[path].files[path]

    def where(self, path: str) -> str:
        """Return what messages call a file; of one that is missing, where it would be."""
        return self._root_of.get(path, self.roots[0]).where(path)

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Return the paths that a pattern such as ``*/*.c.j2`` matches, sorted."""
        return tuple(sorted(path for path in self._root_of if fnmatchcase(path, pattern)))

    @property
    def added(self) -> tuple[Root, ...]:
        """The roots that users have added."""
        return self.roots[1:]


def templates_of(folder: Path, added: Iterable[Root] = ()) -> Templates:
    """Return the templates of a folder, and those of roots that a user adds.

    Raises:
        InputError: a file cannot be read, or two roots do not fit together.
    """
    return Templates((read_root(folder), *added))


def _name_in_c(path: str) -> str:
    """Return the name of the C file that a template becomes."""
    return Path(path).name.removesuffix(".j2")


def _is_beside_engines(path: str) -> bool:
    """Tell whether a template becomes a file of a folder that engines are copied to."""
    return path.startswith(f"{SKELETON}/") or path in SESSION_CLOCKS
