"""The user's cache folder: compiled helpers, and facts found out about this machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder, made if need be; a private temporary one where there is no home."""
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(root).expanduser() / "stagegen"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    return _fallback()


def _fallback() -> Path:
    """Return this user's folder in the temporary one; refuse a folder of another user."""
    folder = Path(tempfile.gettempdir()) / f"stagegen-cache-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        return Path(tempfile.mkdtemp(prefix="stagegen-"))
    return folder
