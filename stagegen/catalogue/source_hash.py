"""The hash of a routine, over its compiled source without comments and layout.

The measurements of a log count only for routines that have not changed since. So the hash covers
all parts of a routine, shared templates included, and nothing that only people read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from stagegen.errors import InputError

_TOKEN = re.compile(
    r"""
    (?P<skipped> \{\#.*?\#\} | /\*.*?\*/ | //[^\n]* )
    | (?P<token>
        "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'  # texts, characters
        | \w+ | \{[{%]-? | -?[%}]\}                # words, numbers, Jinja's braces
        | [^\w\s]
      )
    """,
    re.DOTALL | re.VERBOSE,
)
_TAKEN_IN = re.compile(r"\{%-?\s*(?:include|import|extends|from)\s+(.*?)\s*(?:-?%\}|\simport\s)")
_NAMED = re.compile(r"""(?P<collective>algorithm\.collective\s*~\s*)?["'](?P<path>[^"']+)["']""")


def hash_of(parts: Iterable[str]) -> str:
    """Return the SHA-256 of texts, each delimited from the next."""
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{len(part)}:{part}\n".encode())
    return total.hexdigest()


class SourceHashes:
    """The hashes of the templates in a folder; each file is read once.

    Args:
        root: the templates folder.
    """

    def __init__(self, root: Path):
        self._root = root
        self._files: dict[Path, tuple[str, tuple[str, ...]]] = {}

    def of(self, template: Path) -> str:
        """Return the hash of a template and of all that it includes or imports.

        Raises:
            InputError: a template includes one that does not exist, or that it names by a variable.
        """
        seen: dict[Path, str] = {}
        waiting = [template]
        while waiting:
            path = waiting.pop()
            if path not in seen:
                seen[path], names = self._file(path)
                waiting += (self._named(name, path, template) for name in reversed(names))
        return hash_of(seen.values())

    def _file(self, path: Path) -> tuple[str, tuple[str, ...]]:
        """Return the hash of one file, and how it names the files that it includes."""
        if path not in self._files:
            text = path.read_text(encoding="utf-8")
            self._files[path] = hash_of(tokens(text)), tuple(_TAKEN_IN.findall(text))
        return self._files[path]

    def _named(self, name: str, path: Path, template: Path) -> Path:
        """Return the included file; its folder may be that of the routine's collective."""
        match = _NAMED.fullmatch(name)
        if match is not None:
            folder = self._root / template.parent.name if match["collective"] else self._root
            found = folder / match["path"].removeprefix("/")
            if found.is_file():
                return found
        raise InputError(f"includes {name}, which is no template", path)


def tokens(text: str) -> Iterator[str]:
    """Yield the tokens of C, or of a template of C; comments of both are left out."""
    return (match["token"] for match in _TOKEN.finditer(text) if match["token"])
