"""A file that one process at a time holds, with the processes that it hands it to."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

#: The answers of a file system without locks, as some shared ones are: then no process is kept out.
_WITHOUT_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})


class HeldError(OSError):
    """Another process holds the file; the text of the error says which."""


@dataclass(frozen=True)
class Lock:
    """A file that this process holds.

    The kernel lets go of it when the last process that has the descriptor is gone, however it ends.

    Attributes:
        path: of the file.
        descriptor: to hand on to processes that hold it, too.
        left: what an earlier holder wrote that did not release it; empty if there was none.
    """

    path: Path
    descriptor: int
    left: str

    def release(self) -> None:
        """Remove the file and let go of it."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.abandon()

    def abandon(self) -> None:
        """Let go of the file and leave it, as a sign for the next holder."""
        os.close(self.descriptor)


def take(path: Path, text: str, *, wait: bool) -> Lock:
    """Hold a file, which is made if need be, and write into it which process holds it.

    Args:
        path: of the file.
        text: what others are told.
        wait: until others let go of it.

    Raises:
        HeldError: another process holds it, and ``wait`` is false; with what that one wrote.
        OSError: the file cannot be written.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock(descriptor, wait)
            left = _content(descriptor)
            if _is_at(path, descriptor):  # not one that its holder has removed meanwhile
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, text.encode(), 0)
                return Lock(path, descriptor, left)
        except BlockingIOError as error:
            held = HeldError(errno.EAGAIN, _content(descriptor))
            os.close(descriptor)
            raise held from error
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, wait: bool) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise


def _content(descriptor: int) -> str:
    return os.pread(descriptor, 4096, 0).decode(errors="replace")


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
