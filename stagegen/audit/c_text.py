"""Reads the text of generated C without comments; refuses text that a preprocessor would change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from pathlib import Path

from stagegen.errors import InputError, ScheduleError, what_is_wrong

_COMMENT_OR_STRING = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S
)
_INCLUDE = re.compile(r'[ \t]*#include (?:<\w+\.h>|"([\w.]+)")[ \t]*')
_COMMON = ("coll.h", "dispatch.h")
_GUARDED = re.compile(r"\s*#ifndef (\w+_H)\n#define \1\n(.*)\n#endif\s*", re.S)
_UNREADABLE = re.compile(r"^[ \t]*(?:#|%:)[^\n]*|\\\n|\?\?[^\n]*|<%|%>|<:|:>|\b_Pragma\b", re.M)
_DEFINE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*(?:define|undef)[ \t]+(\w+)", re.M)
_C_WORDS = frozenset(["const", "enum", "false", "int", "short", "static", "struct", "true"])
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,9})")


def read_text(path: Path) -> str:
    """Return the text of a C file, a blank in place of each comment.

    Raises:
        InputError: it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read it: {what_is_wrong(error)}", path) from error
    return _COMMENT_OR_STRING.sub(lambda m: m[0] if m[0][0] in "\"'" else " ", text)


def read_source(path: Path) -> str:
    """Return the text of a C file that the compiler sees as it stands, without comments.

    Raises:
        InputError: it cannot be read.
        ScheduleError: it, or a header of an engine that it includes, has `#if`, `#define` or the
            like, so the compiler may see another text.
    """
    code = read_text(path)
    guarded = _GUARDED.fullmatch(code) if path.suffix == ".h" else None
    text = code if guarded is None else guarded[2]
    lines = [line for line in text.split("\n") if not _is_include(line, path.parent)]
    if (found := _UNREADABLE.search("\n".join(lines))) is not None:
        problem = f"{found[0].strip()!r} changes what the compiler sees; take it out"
        raise ScheduleError(f"{path}: {problem}")
    return code


def included(code: str) -> list[str]:
    """Return the names of the files beside it that a C file includes."""
    return re.findall(r'^[ \t]*#include "([\w.]+)"', code, re.M)


def require_as_written(path: Path, names: Set[str]) -> None:
    """Check that neither a C file nor what it includes beside it redefines a table or C itself.

    Args:
        path: of the C file.
        names: that its file of tables defines.

    Raises:
        InputError: a file cannot be read.
        ScheduleError: a `#define` or `#undef` is of one of the names, or of a word of C that the
            tables are written with; names the file.
    """
    seen, waiting = {path}, [path]
    while waiting:
        file = waiting.pop()
        code = read_text(file).replace("\\\n", "")
        for found in _DEFINE.finditer(code):
            if found[1] in names or found[1] in _C_WORDS:
                problem = f"{found[0].strip()!r} changes what the compiler sees; take it out"
                raise ScheduleError(f"{file}: {problem}")
        beside = {file.parent / name for name in included(code)} - seen
        seen |= beside
        waiting += sorted(one for one in beside if one.is_file())


def _is_include(line: str, folder: Path) -> bool:
    """Tell whether a line includes a header of the system, or a file of the folder."""
    found = _INCLUDE.fullmatch(line)
    if found is None or found[1] in (None, *_COMMON):
        return found is not None
    if not (folder / found[1]).is_file():
        return False
    read_source(folder / found[1])  # it must hide nothing, either
    return True


def number(text: str) -> int | None:
    """Return a decimal number of C; None for anything else, such as an octal one."""
    return int(text) if _NUMBER.fullmatch(text) else None


def numbers(name: str, body: str) -> tuple[int, ...]:
    """Return the numbers of an initialiser.

    Raises:
        ScheduleError: it holds something else; names the table.
    """
    items = [item.strip() for item in body.split(",")]
    if not items[-1]:
        items.pop()
    values = [number(item) for item in items]
    for item, value in zip(items, values, strict=True):
        if value is None:
            raise ScheduleError(f"table {name}[] holds {item!r}, which is no number")
    return tuple(value for value in values if value is not None)


def rows_of(name: str, body: str, row: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the rows of an initialiser, each of which ends in a comma.

    Raises:
        ScheduleError: something there is not understood; names the table.
    """
    at, body = 0, body.strip()
    while at < len(body):
        found = row.match(body, at)
        if found is None:
            raise ScheduleError(f"table {name}[] holds {body[at : at + 40]!r}, which is no row")
        yield found
        at = found.end()


def only(pattern: str, code: str, what: str) -> re.Match[str]:
    """Return the only place of a pattern.

    Raises:
        ScheduleError: there is none, or there are several; names what was looked for.
    """
    found = list(re.finditer(pattern, code, re.S))
    if len(found) != 1:
        raise ScheduleError(f"there is {'no' if not found else 'more than one'} {what}")
    return found[0]
