"""The tokens of C, and of templates of C: what is compiled, without comments and layout."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

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
_TEXT = r"""
    "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
"""
_COMMENT_OR_TEXT = re.compile(
    rf"(?P<comment> /\*.*?\*/ | //[^\n]* ) | {_TEXT}", re.DOTALL | re.VERBOSE
)
_OF_C = re.compile(rf"{_TEXT} | \w+ | [^\w\s]", re.VERBOSE)


def hash_of(parts: Iterable[str]) -> str:
    """Return the SHA-256 of texts, each delimited from the next."""
    delimited = "".join(f"{len(part)}:{part}\n" for part in parts)
    return hashlib.sha256(delimited.encode()).hexdigest()


@lru_cache(maxsize=4096)
def hash_of_code(text: str) -> str:
    """Return the hash of the tokens of C, or of a template of C."""
    return hash_of(tokens(text))


def tokens(text: str) -> Iterator[str]:
    """Yield the tokens of C, or of a template of C; comments of both are left out."""
    return (match["token"] for match in _TOKEN.finditer(text) if match["token"])


def tokens_of_c(text: str) -> list[str]:
    """Return the tokens of C without comments. Jinja has no part in it: `{{` is two tokens."""
    return _OF_C.findall(text)


def without_comments(text: str) -> str:
    """Return C with a blank in place of each comment."""
    return _COMMENT_OR_TEXT.sub(lambda match: match[0] if match["comment"] is None else " ", text)


def names_in(of: Iterable[str]) -> frozenset[str]:
    """Return the tokens that are names."""
    return frozenset(token for token in of if token.isidentifier())
