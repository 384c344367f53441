"""Reads the binary files of recordings and traces: one error for all that may be wrong in them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from stagegen.errors import InputError

_Content = TypeVar("_Content")
_DAMAGES = (KeyError, IndexError, TypeError, ValueError, struct.error, zlib.error)


def read_binary(path: Path, parse: Callable[[bytes], _Content], damaged: str) -> _Content:
    """Return what a parser makes of a file.

    Args:
        path: the file.
        parse: makes the content of all bytes; its errors say what is damaged.
        damaged: what the error says of a damaged file.

    Raises:
        InputError: the file cannot be read, needs more memory than there is, or is not understood
            by the parser.
    """
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path) from error
    except MemoryError as error:
        problem = "needs more memory than this machine has"
        raise InputError(f"{problem}; read it on a larger one", path) from error
    except _DAMAGES as error:
        raise InputError(f"{damaged}: {error}", path) from error
