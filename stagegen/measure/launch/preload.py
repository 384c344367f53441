"""The value of ``LD_PRELOAD``: a list whose separators no path may have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from stagegen.errors import LaunchError


def preload_list(libraries: Iterable[Path], others: str = "") -> str:
    """Return the value of ``LD_PRELOAD`` for some libraries; empty if there is none.

    Args:
        libraries: come first.
        others: a list that the variable has already.

    Raises:
        LaunchError: a path has a space or a colon, at which the linker would cut it (ld.so(8)).
    """
    names = list(map(str, libraries))
    for name in names:
        if re.search("[: ]", name):
            raise LaunchError(
                f"LD_PRELOAD cannot name {name}: the path has a space or a colon; choose another "
                "folder (--output, or XDG_CACHE_HOME for stagegen's own libraries)"
            )
    return ":".join(filter(None, [*names, others]))
