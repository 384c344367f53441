"""Parts of the library's own C files that belong to a feature: lines below ``#ifdef FEATURE``.

A build without the feature has none of these lines. A build with it has them, and not those of
``#else``. So the files stay C that editors and compilers read as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from stagegen.errors import GenerateError

#: Calls that measure and adapt: ``stagegen tune --adaptive``.
ADAPTIVE = "COLL_ADAPTIVE"

#: Calls whose pattern is recognised: ``stagegen tune --patterns``.
PATTERNS = "COLL_PATTERNS"

#: All features.
FEATURES = frozenset({ADAPTIVE, PATTERNS})


def with_features(text: str, wanted: Set[str], name: str) -> str:
    """Return a C file with the parts of the wanted features, and without those of others.

    Args:
        text: the file.
        wanted: features.
        name: of the file, for messages.

    Raises:
        GenerateError: a part does not end, or has a directive inside.
    """
    if not any(f"#ifdef {feature}\n" in text for feature in FEATURES):
        return text
    return "".join(_kept(text.splitlines(keepends=True), wanted, name))


def _kept(lines: list[str], wanted: Set[str], name: str) -> Iterator[str]:
    """Yield the lines that stay."""
    part: bool | None = None
    begun = 0
    for number, line in enumerate(lines, 1):
        word, _, rest = line.strip().partition(" ")
        if word == "#ifdef" and rest in FEATURES:
            if part is not None:
                raise GenerateError(
                    f"{name}:{number}: a feature inside a feature; end the first one before"
                )
            part, begun = rest in wanted, number
        elif part is None:
            yield line
        elif word == "#else":
            part = not part
        elif word == "#endif":
            part = None
        elif word in ("#if", "#ifdef", "#ifndef"):
            raise GenerateError(f"{name}:{number}: a directive inside a feature; move it out of it")
        elif part:
            yield line
    if part is not None:
        raise GenerateError(f"{name}:{begun}: the feature that begins here has no #endif; add it")
