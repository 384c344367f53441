"""Where the data folders are: at the top of a checkout, or inside an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_WHEEL_DATA = _PACKAGE / "_data"
_ROOT = _WHEEL_DATA if _WHEEL_DATA.is_dir() else _PACKAGE.parent

TEMPLATES = _ROOT / "templates"
#: The folder, within the templates, of the plain C that several routines share.
ENGINES = "engines"
DRIVERS = _ROOT / "drivers"
TOPOLOGIES = _ROOT / "topologies"
