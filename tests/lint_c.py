"""``make lint`` for C: everything compiles without a warning and is formatted.

Everything is: the routines of all algorithms, the session and the library that are generated for
a cluster, the drivers, the C programs of the tests, and the plain C files of the templates, also
those that no library here has (their format alone). The compiler only looks (-fsyntax-only).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stagegen.adaptive.known import NOTHING_KNOWN
from stagegen.data import DRIVERS, TEMPLATES, TOPOLOGIES
from stagegen.generate import Renderer, Toolchain, measuring_sources, session_build, write_files
from stagegen.library import library_files
from stagegen.recording.build import recorder_sources
from stagegen.topology import load_topology
from tests.mpi import patterned, support

ROOT = Path(__file__).resolve().parents[1]
WARNINGS = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")


def generate(folder: Path) -> None:
    """Write the recorder, a session, and a library with all algorithms that 8 ranks can run.

    A C file of this library that the session, or the library whose calls adapt, has as well is
    looked at only once.
    """
    topology = load_topology(TOPOLOGIES / "quickstart.yaml")
    catalogue = support.CATALOGUE
    renderer = Renderer("make lint", topology.name, topology.hash, catalogue.hash)
    decision = support.decision(topology)
    library = library_files(topology, catalogue, decision)
    write_files(folder / "library", library)
    known = {_code(text) for name, text in library.items() if name.endswith(".c")}
    session = measuring_sources(session_build(topology, catalogue), renderer)
    adaptive = library_files(topology, catalogue, decision, NOTHING_KNOWN)
    for part, files in (("session", session), ("adaptive", adaptive)):
        new = {
            n: text for n, text in files.items() if not n.endswith(".c") or _code(text) not in known
        }
        write_files(folder / part, new)
    write_files(folder / "recorder", recorder_sources(catalogue))
    own = patterned.patterns(topology.rank_count)
    few = patterned.catalogue(topology, own)
    of_patterns = library_files(topology, few, patterned.decision(topology, few, own))
    for name, text in of_patterns.items():
        if name.endswith(".h") or Path(name).name in OF_PATTERNS or "_pattern_" in name:
            write_files(folder / "patterned", {name: text})


def _code(text: str) -> str:
    """Return a generated file without its first comment, which says what made it."""
    return text.partition("*/")[2]


def _compile_header(folder: Path, mpicc: str) -> tuple[str, ...]:
    """Compile MPI's header once, as it takes longer than most files; return the options for it."""
    header = folder / "first.h"
    header.write_text("#include <mpi.h>\n", encoding="utf-8")
    options = [word for word in WARNINGS if word != "-fsyntax-only"]
    made = _run([mpicc, *options, "-x", "c-header", "-o", f"{header}.gch", str(header)])
    return ("-include", str(header)) if made.returncode == 0 else ()


#: Files that only a library that recognises patterns has, or that have more in them there.
OF_PATTERNS = (
    "agreement.c",
    "classes.c",
    "communicator.c",
    "dispatch.c",
    "message_order.c",
    "patterns.c",
    "recognition.c",
)


def _adapts(path: Path, adaptive: Path) -> bool:
    """Tell whether a C file is of the library whose calls adapt, or a program for it."""
    return path.is_relative_to(adaptive) or path.name in ("adaptive.c", "unadaptable.c")


def plain_templates() -> list[Path]:
    """Return the C files of the templates that are C already, whether a library has them or not.

    A template with Jinja in it is looked at where it is made.
    """
    return sorted(TEMPLATES.rglob("*.[ch]"))


def complaints(folder: Path) -> list[str]:
    """Return what compiler and clang-format say, nothing if all is well."""
    session, library = folder / "session", folder / "library"
    examples = (ROOT / "docs" / "examples").rglob("*.[ch]")
    programs = (
        path for name in ("mpi", "launch") for path in (ROOT / "tests" / name).glob("*.[ch]")
    )
    own = [*DRIVERS.glob("*.[ch]"), *programs, *examples]
    files = sorted([*own, *folder.rglob("*.[ch]")])
    plain = plain_templates()
    parts = ("include", "src", "check", "events")
    folders = (session, *(library / part for part in parts), DRIVERS)
    includes = [f"-I{path}" for path in folders]
    mpicc = Toolchain.find().mpicc
    compiler = [mpicc, *WARNINGS, *_compile_header(folder, mpicc)]
    adaptive = folder / "adaptive"
    adapting = [*compiler, *(f"-I{adaptive / part}" for part in ("include", "src", "events"))]
    recognising = folder / "patterned"
    parts = ("include", "src", "check", "events")
    with_patterns = [*compiler, *(f"-I{recognising / part}" for part in parts)]
    every = [path for path in files if path.suffix == ".c"]
    of_patterns = [p for p in every if p.is_relative_to(recognising) or p.name == "patterned.c"]
    c_files = [path for path in every if path not in of_patterns]
    with_adaptive = [str(path) for path in c_files if _adapts(path, adaptive)]
    sources = [str(path) for path in c_files if not _adapts(path, adaptive)]
    formatter = [str(Path(sys.executable).parent / "clang-format"), "--dry-run", "-Werror"]
    style = f"--style=file:{ROOT / '.clang-format'}"
    formatted = [str(path) for path in (*files, *plain)]
    commands = [
        *([*compiler, *includes, *some] for some in _shares(sources)),
        [*adapting, f"-I{adaptive / 'check'}", *with_adaptive],
        [*with_patterns, *map(str, of_patterns)],
        *([*formatter, style, *some] for some in _shares(formatted)),
    ]
    with ThreadPoolExecutor(os.cpu_count()) as several:
        results = list(several.map(_run, commands))
    return [result.stdout + result.stderr for result in results if result.returncode != 0]


def _shares(words: Sequence[str]) -> list[Sequence[str]]:
    """Divide words into as many lists as there are CPUs."""
    count = os.cpu_count() or 1
    return [some for number in range(count) if (some := words[number::count])]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def main() -> int:
    """Generate the code, look at it, and print what is wrong."""
    with tempfile.TemporaryDirectory(prefix="stagegen-lint-") as folder:
        generate(Path(folder))
        found = complaints(Path(folder))
    print("\n".join(found) or "C: no warnings, all formatted")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
