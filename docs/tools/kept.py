"""Results that are kept in the repository: JSON that people and ``git diff`` can read.

Measurements take hours, and no machine has all of them. So results are data beside the pages:
a run replaces what was known of what it measures, and keeps everything else.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagegen import __version__
from stagegen.generate.write import write_file

#: The folder of all results, below the repository's own.
FOLDER = Path("docs/results")

#: Columns of a line. What fits into one is not broken up.
WIDTH = 300

#: Significant digits of a number: two more than pages show.
DIGITS = 6

#: What is kept of the facts of an environment. Logs in `generated/` have all of them.
_FACTS = ("launcher", "latency", "scale", "mpi", "mpi_version", "cpus", "congestion_control")


def read(path: Path) -> Any:
    """Return what a file has; None if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write(path: Path, value: Any) -> None:
    """Write a file as a whole; the same value makes the same bytes."""
    write_file(path, f"{_text(rounded(value), '')}\n")


def rounded(value: Any) -> Any:
    """Return JSON whose numbers have the digits that are worth keeping."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value


def facts(environment: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return where something was measured, as far as times depend on it.

    Args:
        environment: as commands tell it; None where they do not.
    """
    known = environment or {"kernel": platform.release()}
    told = {name: known[name] for name in _FACTS if name in known}
    return {"stagegen": __version__, "kernel": _release(known["kernel"]), **told}


def _release(kernel: str) -> str:
    """Return the number of a kernel's release without the name of its build."""
    found = re.match(r"\d+(\.\d+)*", kernel)
    return found[0] if found else kernel


def _text(value: Any, indent: str) -> str:
    """Return JSON in which what fits into a line has one: a changed record is a changed line."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(indent + line) < WIDTH:
        return line
    deeper = f"{indent} "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {_text(one, deeper)}"
                 for key, one in value.items()]  # fmt: skip
    else:
        parts = [_text(one, deeper) for one in value]
    begin, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    return f"{begin}\n" + ",\n".join(f"{deeper}{part}" for part in parts) + f"\n{indent}{end}"
