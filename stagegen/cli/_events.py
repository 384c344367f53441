"""The events of a run: they go to a log file, and to the display of the run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_ROOT = "stagegen"


class _File(logging.FileHandler):
    """Lines of seconds since the start, level and text. A full disk is no reason to end a run."""

    def __init__(self, path: Path):
        super().__init__(path, encoding="utf-8", errors="replace")
        self._begin = time.monotonic()

    def format(self, record: logging.LogRecord) -> str:
        head = f"{time.monotonic() - self._begin:10.2f} {record.levelname:7} "
        return head + record.getMessage().replace("\n", "\n" + " " * len(head))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        return

    def close(self) -> None:
        with suppress(OSError):  # what was not written yet; the rest is done even so
            super().close()


class _Watcher(logging.Handler):
    """Hands on the texts of events."""

    def __init__(self, level: int, say: Callable[[str, str], None]):
        super().__init__(level)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(record.levelname.lower(), record.getMessage())


@contextmanager
def events(file: Path | None, say: Callable[[str, str], None], level: int) -> Iterator[None]:
    """Append events to a file, and say those of a level and above as they happen.

    Args:
        file: the log file; None or one that cannot be written gets none.
        say: takes the level's name and the text.
        level: of :mod:`logging`.
    """
    logger = logging.getLogger(_ROOT)
    handlers: list[logging.Handler] = [_Watcher(level, say)]
    if file is not None:
        try:
            handlers.append(_File(file))
        except OSError as error:
            say("warning", f"cannot write {file}: {error.strerror}")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    for handler in handlers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(before)
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
