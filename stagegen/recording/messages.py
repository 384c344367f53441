"""The time of a message by its size (Faraj 2006, Tables 4.6 and 4.7), as it was measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagegen.errors import InputError, what_is_wrong

VERSION = 1

#: The sizes of Tables 4.6 and 4.7, and more on both sides; bytes.
SIZES = (0, 4, 64, 256, 1024, 4096, 16384, 32768, 65536, 131072, 262144, 1048576)


@dataclass(frozen=True)
class MessageTimes:
    """One-way times of a message between two ranks.

    Attributes:
        sizes: bytes, ascending.
        seconds: of each size.
        hosts: 2 if the ranks were on two hosts, 1 if on one.
    """

    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    hosts: int

    def of(self, size: int) -> float:
        """Return the time of a message of any size: in between, it grows evenly with the size."""
        if size > self.sizes[-1]:
            return self.seconds[-1] * size / self.sizes[-1]
        return float(np.interp(size, self.sizes, self.seconds))

    def to_json(self) -> dict[str, Any]:
        """Return the form of the file."""
        messages = [[size, s] for size, s in zip(self.sizes, self.seconds, strict=True)]
        return {"version": VERSION, "hosts": self.hosts, "messages": messages}


def message_times(messages: Sequence[Sequence[float]], hosts: int) -> MessageTimes:
    """Return the times of pairs of size and seconds.

    Raises:
        ValueError: there is none, a time is not above 0, or a size occurs twice.
    """
    pairs = sorted((int(size), float(seconds)) for size, seconds in messages)
    sizes, seconds = zip(*pairs, strict=True)
    if min(sizes) < 0 or not min(seconds) > 0 or len(set(sizes)) < len(sizes):
        raise ValueError("sizes from 0 upwards, each once, with times above 0 are needed")
    return MessageTimes(sizes, seconds, hosts)


_ADVICE = "make it again with `stagegen arrivals --calibrate`"


def read_message_times(path: Path) -> MessageTimes:
    """Read a file of ``stagegen arrivals --calibrate``.

    Raises:
        InputError: the file cannot be read, or has no times of messages.
    """
    try:
        form = json.loads(path.read_text(encoding="utf-8"))
        if form["version"] != VERSION:
            problem = f"its version is {form['version']}, and {VERSION} is needed"
            raise InputError(f"{problem}; {_ADVICE}", path)
        return message_times(form["messages"], int(form["hosts"]))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path) from error
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"not a file of `arrivals --calibrate`: {what_is_wrong(error)}; {_ADVICE}", path
        ) from error
