"""Broadcasts that crash or hang, as a user's own templates beside a topology file."""

from __future__ import annotations

from pathlib import Path

from docs.tools.bench_tuning.tunings import TrialError
from stagegen.data import TEMPLATES
from stagegen.parts import FILE

#: Their calls of this size fail; the check of results has no such call.
SIZE = 4099

#: By name: what the last rank does in such a call.
DOES = {"crashing": "*(volatile int *)0 = 1;", "hanging": "for (;;) pause();"}

_BODY = "    (void)parameters;\n"


def add_faulty(folder: Path, *names: str) -> None:
    """Write a ``stagegen.yaml`` into a folder, with templates that fail.

    Args:
        folder: that of the topology file.
        names: keys of :data:`DOES`; each becomes a broadcast.
    """
    root = folder / "faulty"
    (root / "bcast").mkdir(parents=True)
    for name in names:
        (root / "bcast" / f"{name}.c.j2").write_text(_template(name), encoding="utf-8")
    (folder / FILE).write_text(f"templates: [{root.name}]\npackages: []\n", encoding="utf-8")


def _template(name: str) -> str:
    """Return the flat broadcast with a fault."""
    text = (TEMPLATES / "bcast" / "flat.c.j2").read_text(encoding="utf-8")
    if _BODY not in text:
        raise TrialError("the flat broadcast is another one now: say where it is to fail")
    when = f"call->bytes == {SIZE} && cc->rank == cc->size - 1"
    fault = f"    if ({when}) {{\n        {DOES[name]}\n    }}\n"
    header = '#include "coll.h"'
    return text.replace(_BODY, _BODY + fault).replace(header, f"#include <unistd.h>\n\n{header}")
