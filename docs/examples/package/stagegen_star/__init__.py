"""The paths that the entry points name."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent

TEMPLATES = FOLDER / "templates"
ARRIVAL = FOLDER / "arrival.c"
