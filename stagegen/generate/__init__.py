"""From schedules and templates to readable, deterministic C, and from C to programs."""

from stagegen.generate.build import Toolchain, build
from stagegen.generate.render import Renderer
from stagegen.generate.sources import measuring_sources, runtime_sources
from stagegen.generate.write import write_files

__all__ = [
    "Renderer",
    "Toolchain",
    "build",
    "measuring_sources",
    "runtime_sources",
    "write_files",
]
