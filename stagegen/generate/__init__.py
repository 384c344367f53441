"""From schedules and templates to readable, deterministic C, and from C to programs."""

from stagegen.generate.build import Build, library_build, session_build
from stagegen.generate.once import build_once
from stagegen.generate.render import Renderer
from stagegen.generate.sources import measuring_sources, runtime_sources
from stagegen.generate.toolchain import FLAVOURS, Toolchain, run_make
from stagegen.generate.write import write_files, write_whole

__all__ = [
    "FLAVOURS",
    "Build",
    "Renderer",
    "Toolchain",
    "build_once",
    "library_build",
    "measuring_sources",
    "run_make",
    "runtime_sources",
    "session_build",
    "write_files",
    "write_whole",
]
