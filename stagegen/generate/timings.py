"""Timing mechanisms as C: those of the drivers, and a user's own file (docs/timing.md)."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stagegen.catalogue.c_tokens import hash_of_code
from stagegen.data import DRIVERS
from stagegen.errors import InputError
from stagegen.generate.render import Renderer
from stagegen.generate.toolchain import Toolchain

_PREFIX = "timing_"

#: A mechanism's name is part of a C name, and a word of the session's commands.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")

#: What finds out whether the file defines what the session asks for.
_PROBE = """\
#include "timing.h"
extern const struct timing by_{name};
int main(void) {{
    return by_{name}.repeat == NULL;
}}
"""


@dataclass(frozen=True)
class Mechanism:
    """A timing mechanism.

    Attributes:
        name: what ``--timing`` and the records call it. Its C file defines ``by_NAME``.
        text: the C file.
        file: where a user's own is; None for those of stagegen.
    """

    name: str
    text: str
    file: Path | None = None

    @property
    def hash(self) -> str:
        """The SHA-256 of the code, without comments and layout; empty for those of stagegen."""
        return hash_of_code(self.text) if self.file else ""


def _built_in() -> dict[str, Mechanism]:
    """Return the mechanisms of the drivers by name, sorted."""
    files = sorted(DRIVERS.glob(f"{_PREFIX}*.c"))
    names = (file.stem.removeprefix(_PREFIX) for file in files)
    return {
        name: Mechanism(name, file.read_text(encoding="utf-8"))
        for name, file in zip(names, files, strict=True)
    }


BUILT_IN = _built_in()


def read_mechanism(path: Path) -> Mechanism:
    """Return the mechanism that a user's own file defines; its name is the file's.

    Raises:
        InputError: it cannot be read, or has no name for a mechanism.
    """
    name = path.stem
    if path.suffix != ".c" or not _NAME.fullmatch(name) or name in BUILT_IN:
        raise InputError(
            "this is no name of a timing mechanism's file: expected NAME.c, where NAME has small "
            f"letters, digits and _, begins with a letter, and is none of {', '.join(BUILT_IN)}",
            path,
        )
    try:
        return Mechanism(name, path.read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"cannot be read: {why}; {_expected(name)}", path) from error


def require_sound(mechanism: Mechanism, toolchain: Toolchain) -> None:
    """Compile a user's own mechanism by itself; one of stagegen's is sound.

    Raises:
        InputError: it does not compile, or does not define what the session asks for.
    """
    if mechanism.file is None:
        return
    with tempfile.TemporaryDirectory(prefix="stagegen-timing-") as folder:
        own, probe, whole = (Path(folder) / name for name in ("own.c", "probe.c", "probe"))
        own.write_text(f'#line 1 "{mechanism.file.name}"\n{mechanism.text}', encoding="utf-8")
        probe.write_text(_PROBE.format(name=mechanism.name), encoding="utf-8")
        compute = DRIVERS / "compute.c"
        compiler = [toolchain.mpicc, "-std=c11", "-D_GNU_SOURCE", f"-I{DRIVERS}"]
        if said := _complaints([*compiler, "-c", "-o", str(whole), str(own)]):
            raise InputError(
                f"does not compile; {_expected(mechanism.name)}:\n{said}", mechanism.file
            )
        sources = map(str, (probe, own, compute))
        if said := _complaints([*compiler, "-o", str(whole), *sources, "-lpthread", "-lm"]):
            raise InputError(
                f"does not define by_{mechanism.name}, or calls a function that is neither its own "
                "nor MPI's nor one of timing.h; "
                f"{_expected(mechanism.name)}:\n{said}",
                mechanism.file,
            )


def timing_sources(renderer: Renderer, own: Sequence[Mechanism] = ()) -> dict[str, str]:
    """Return the C files, by name, of all mechanisms, and of the table of them."""
    every = [*BUILT_IN.values(), *(one for one in own if one.name not in BUILT_IN)]
    table = renderer.render("libcoll/timings.c.j2", {"timings": [one.name for one in every]})
    return {"timings.c": table, **{f"{_PREFIX}{one.name}.c": one.text for one in every}}


def _expected(name: str) -> str:
    return (
        f"expected a C file that defines `const struct timing by_{name}` of timing.h, "
        "see docs/timing.md"
    )


def _complaints(command: Sequence[str]) -> str:
    """Return the end of what a failing compiler says, or nothing."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (result.stdout + result.stderr).splitlines()
    return "\n".join(lines[-20:] or ["(no message)"]) if result.returncode != 0 else ""
