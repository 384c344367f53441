"""``manifest.json``: what a generated folder holds, and what it was made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagegen.catalogue import Catalogue
from stagegen.errors import InputError
from stagegen.measure.validity import ROUTINES, changed

#: The file in a generated folder.
MANIFEST = "manifest.json"


def routines_in(files: Mapping[str, str], catalogue: Catalogue) -> dict[str, str]:
    """Return the hashes of the routines that a folder's files hold, by full name."""
    own = (a for a in catalogue.algorithms if f"src/{a.routine}.c" in files)
    return {algorithm.full_name: algorithm.hash for algorithm in own}


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a generated folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    file = folder / MANIFEST
    try:
        form = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{error.strerror}; give a generated folder", file) from error
    except ValueError as error:
        raise InputError(f"is no JSON: {error}; make the folder again", file) from error
    if not isinstance(form, dict):
        raise InputError("is no JSON object: expected {…}; make the folder again", file)
    return form


def require_unchanged(folder: Path, manifest: Mapping[str, Any], catalogue: Catalogue) -> None:
    """Check that the routines of a folder are today what they were when it was made.

    Algorithms that were added since do not matter, nor do changes of routines that it lacks.

    Raises:
        InputError: one of them has changed or is gone.
    """
    hashes = manifest.get(ROUTINES)
    if not isinstance(hashes, dict):
        problem = f"lists no `{ROUTINES}`, so they cannot be compared with those of today"
        advice = "make the folder again with `stagegen tune --from-log`"
        raise InputError(f"{problem}; {advice}", folder / MANIFEST)
    if names := ", ".join(sorted(changed(hashes, catalogue.hashes))):
        raise InputError(
            f"these routines have changed since they were measured: {names}; measure them anew "
            "with `stagegen tune --resume`",
            folder,
        )
