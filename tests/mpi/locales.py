"""A locale with decimal commas, in a folder of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

#: The C library's description of it, in Debian's package `locales`.
SOURCE = Path("/usr/share/i18n/locales/de_DE")
NAME = "de_DE.UTF-8"


def decimal_commas(folder: Path) -> dict[str, str]:
    """Make the locale; return the variables with which a program that asks for it has it."""
    if not SOURCE.exists():
        pytest.skip(f"there is no {SOURCE}: install the package `locales`")
    # A status of 1 is a warning.
    words = ("localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", str(folder / NAME))
    assert subprocess.run(words, capture_output=True, check=False).returncode <= 1
    return {"LOCPATH": str(folder), "LC_ALL": NAME}
