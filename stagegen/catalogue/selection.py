"""What a user lets compete: a selection of algorithms, by patterns (Faraj 2006, §4.1.1.4, step 1).

A selection decides which algorithms are candidates, and nothing else. The native routines always
are. What a candidate ``uses`` is compiled with it, but is no candidate by that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from stagegen.catalogue.algorithm import NATIVE, Algorithm
from stagegen.errors import InputError

#: The most names that a message suggests.
_SUGGESTED_MOST = 4


@dataclass(frozen=True)
class Selection:
    """Which algorithms compete.

    A pattern is a name, such as ``ring``, or a full name, such as ``alltoall/ring``. ``*`` stands
    for any characters, ``?`` for one, ``[ab]`` for one of these.

    Attributes:
        algorithms: patterns, sorted: what one of them matches competes; all do if there is none.
        without_algorithms: patterns, sorted: what one of them matches does not.
        without_topology: whether algorithms that need a topology do not.
    """

    algorithms: tuple[str, ...] = ()
    without_algorithms: tuple[str, ...] = ()
    without_topology: bool = False

    def admits(self, algorithm: Algorithm) -> bool:
        """Tell whether an algorithm competes; the native ones always do."""
        if algorithm.name == NATIVE:
            return True
        if self.without_topology and algorithm.topology_specific:
            return False
        wanted = not self.algorithms or _any_matches(self.algorithms, algorithm)
        return wanted and not _any_matches(self.without_algorithms, algorithm)

    def require_known(self, algorithms: Collection[Algorithm]) -> None:
        """Check that each pattern matches an algorithm of a catalogue.

        Raises:
            InputError: one matches none; the message lists similar names. Or one is to leave out
                the native routines by their name.
        """
        for pattern in (*self.algorithms, *self.without_algorithms):
            if not any(_matches(pattern, algorithm) for algorithm in algorithms):
                raise InputError(_unknown(pattern, algorithms))
        for pattern in self.without_algorithms:
            if pattern.rpartition("/")[2] == NATIVE:
                raise InputError(f"{pattern}: {NATIVE} always competes and cannot be left out")


#: All algorithms compete.
EVERYTHING = Selection()


def patterns_of(text: str | None) -> tuple[str, ...]:
    """Return the patterns of a list ``A,B,…``, sorted, each once."""
    return tuple(sorted(set(filter(None, (text or "").split(",")))))


def _matches(pattern: str, algorithm: Algorithm) -> bool:
    return fnmatchcase(algorithm.full_name if "/" in pattern else algorithm.name, pattern)


def _any_matches(patterns: Collection[str], algorithm: Algorithm) -> bool:
    return any(_matches(pattern, algorithm) for pattern in patterns)


def _unknown(pattern: str, algorithms: Collection[Algorithm]) -> str:
    near = ", ".join(_similar(pattern, algorithms))
    hint = f"did you mean {near}?" if near else "`stagegen catalogue` lists them"
    return f"no algorithm is called {pattern}; {hint}"


def _similar(pattern: str, algorithms: Collection[Algorithm]) -> Iterator[str]:
    """Yield names, or full names, that are like a pattern without its wildcards."""
    full = "/" in pattern
    names = sorted({one.full_name if full else one.name for one in algorithms})
    plain = pattern.strip("*?")
    inside = [name for name in names if plain and plain in name]
    close = get_close_matches(plain, names, _SUGGESTED_MOST)
    yield from list(dict.fromkeys((*close, *inside)))[:_SUGGESTED_MOST]
