"""The hash of a routine, over its compiled source without comments and layout.

The measurements of a log count only for routines that have not changed since. So the hash covers
all parts of a routine, shared templates included, and nothing that only people read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from stagegen.catalogue.templates import Templates
from stagegen.data import ENGINES
from stagegen.errors import InputError

_TOKEN = re.compile(
    r"""
    (?P<skipped>
        \{\#.*?\#\} | /\*.*?\*/ | //[^\n]*
        | \{%\s*(?:end)?tables\s*%\}               # in which file text stands
      )
    | (?P<token>
        "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'  # texts, characters
        | \w+ | \{[{%]-? | -?[%}]\}                # words, numbers, Jinja's braces
        | [^\w\s]
      )
    """,
    re.DOTALL | re.VERBOSE,
)
_TAKEN_IN = re.compile(r"\{%-?\s*(?:include|import|extends|from)\s+(.*?)\s*(?:-?%\}|\simport\s)")
_INCLUDED = re.compile(r'^#include "(\w+)\.h"$', re.MULTILINE)
_TABLES = re.compile(r'^#include "\{\{ function \}\}\.tables\.h"$', re.MULTILINE)
_NAMED = re.compile(r"""["'](?P<path>[^"']+)["']""")

#: The template of the files of tables that the routines of a collective include.
TABLES_TEMPLATE = "_tables.h.j2"


def hash_of(parts: Iterable[str]) -> str:
    """Return the SHA-256 of texts, each delimited from the next."""
    total = hashlib.sha256()
    for part in parts:
        total.update(f"{len(part)}:{part}\n".encode())
    return total.hexdigest()


@lru_cache(maxsize=4096)
def hash_of_code(text: str) -> str:
    """Return the hash of the tokens of C, or of a template of C."""
    return hash_of(tokens(text))


@dataclass(frozen=True)
class _File:
    """What counts of one file.

    Attributes:
        hash: of its tokens.
        taken_in: how it names the templates that it takes in.
        included: the names of the headers beside it that it includes.
        has_tables: whether it includes the tables of the routine.
    """

    hash: str
    taken_in: tuple[str, ...]
    included: tuple[str, ...]
    has_tables: bool


class SourceHashes:
    """The hashes of templates; each file is looked at once.

    Args:
        templates: the files.
    """

    def __init__(self, templates: Templates):
        self._templates = templates
        self._files: dict[str, _File] = {}
        self._hashes: dict[tuple[str, str], str] = {}

    def of(self, template: str, collective: str) -> str:
        """Return the hash of a template and of all that it takes in, engines and tables too.

        Args:
            template: the path of the file.
            collective: of the routine; the template of its tables is in the folder of this name.

        Raises:
            InputError: a template includes one that does not exist, or that it names by a variable.
        """
        key = template, collective
        if key not in self._hashes:
            self._hashes[key] = self._hash(template, collective)
        return self._hashes[key]

    def _hash(self, template: str, collective: str) -> str:
        seen: dict[str, str] = {}
        waiting = [template]
        while waiting:
            path = waiting.pop()
            if path not in seen:
                file = self._file(path)
                seen[path] = file.hash
                waiting += (self._named(name, path) for name in reversed(file.taken_in))
                waiting += self._engines(file)
                if file.has_tables:
                    waiting.append(self._tables(path, collective))
        return hash_of(seen.values())

    def _file(self, path: str) -> _File:
        if path not in self._files:
            text = self._templates.text(path)
            self._files[path] = _File(
                hash_of_code(text),
                tuple(_TAKEN_IN.findall(text)),
                tuple(engines_included(text)),
                _TABLES.search(text) is not None,
            )
        return self._files[path]

    def _tables(self, path: str, collective: str) -> str:
        """Return the template of the tables that a file includes."""
        tables = f"{collective}/{TABLES_TEMPLATE}"
        if not self._templates.has(tables):
            problem = f"there is no {tables} for its tables; write it, or use {{% tables %}}"
            raise InputError(problem, self._templates.place(path))
        return tables

    def _engines(self, file: _File) -> Iterator[str]:
        """Yield the files of the engines that a file includes."""
        for name in file.included:
            for suffix in (".h", ".c"):
                engine = f"{ENGINES}/{name}{suffix}"
                if self._templates.has(engine):
                    yield engine

    def _named(self, name: str, path: str) -> str:
        """Return the included file."""
        match = _NAMED.fullmatch(name)
        if match is not None:
            found = match["path"].removeprefix("/")
            if self._templates.has(found):
                return found
        problem = f"includes {name}, which is no template"
        advice = "name a file of templates/ between quotation marks"
        raise InputError(f"{problem}; {advice}", self._templates.place(path))


def engines_included(text: str) -> list[str]:
    """Return the names of the headers beside it that a C file or its template includes."""
    return _INCLUDED.findall(text)


def tokens(text: str) -> Iterator[str]:
    """Yield the tokens of C, or of a template of C; comments of both are left out."""
    return (match["token"] for match in _TOKEN.finditer(text) if match["token"])
