"""``make lint`` for C: everything compiles without a warning and is formatted.

Everything is: the routines of all algorithms, the session and the library that are generated for
a cluster, the drivers, and the C programs of the tests. The compiler only looks (-fsyntax-only).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from stagegen.data import DRIVERS, TOPOLOGIES
from stagegen.generate import Renderer, Toolchain, measuring_sources, session_build, write_files
from stagegen.library import library_files
from stagegen.recording.build import recorder_sources
from stagegen.topology import load_topology
from tests.mpi import support

ROOT = Path(__file__).resolve().parents[1]
WARNINGS = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")


def generate(folder: Path) -> None:
    """Write the recorder, and a session and a library with all algorithms that 8 ranks can run."""
    topology = load_topology(TOPOLOGIES / "quickstart.yaml")
    catalogue = support.CATALOGUE
    renderer = Renderer("make lint", topology.name, topology.hash, catalogue.hash)
    write_files(folder / "session", measuring_sources(session_build(topology, catalogue), renderer))
    decision = support.decision(topology)
    write_files(folder / "library", library_files(topology, catalogue, decision))
    write_files(folder / "recorder", recorder_sources(catalogue))


def complaints(folder: Path) -> list[str]:
    """Return what compiler and clang-format say, nothing if all is well."""
    session, library = folder / "session", folder / "library"
    examples = (ROOT / "docs" / "examples").rglob("*.[ch]")
    programs = (
        path for name in ("mpi", "launch") for path in (ROOT / "tests" / name).glob("*.[ch]")
    )
    own = [*DRIVERS.glob("*.[ch]"), *programs, *examples]
    files = sorted([*own, *folder.rglob("*.[ch]")])
    folders = (session, library / "include", library / "src", library / "check", DRIVERS)
    includes = [f"-I{path}" for path in folders]
    compiler = [Toolchain.find().mpicc, *WARNINGS, *includes]
    sources = [str(path) for path in files if path.suffix == ".c"]
    formatter = [str(Path(sys.executable).parent / "clang-format"), "--dry-run", "-Werror"]
    style = f"--style=file:{ROOT / '.clang-format'}"
    commands = [[*compiler, *sources], [*formatter, style, *map(str, files)]]
    results = [subprocess.run(c, capture_output=True, text=True, check=False) for c in commands]
    return [result.stdout + result.stderr for result in results if result.returncode != 0]


def main() -> int:
    """Generate, look, tell."""
    with tempfile.TemporaryDirectory(prefix="stagegen-lint-") as folder:
        generate(Path(folder))
        found = complaints(Path(folder))
    print("\n".join(found) or "C: no warnings, all formatted")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
