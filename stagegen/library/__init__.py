"""The generated folder: libcoll with the chosen routines, the decision, and its evidence.

This stage is the second half of generating: :mod:`stagegen.generate` makes routines before
measuring; this stage makes the library from the decision table that measuring yields.
"""

from stagegen.library.folder import library_files, write_library
from stagegen.library.manifest import read_manifest, require_unchanged

__all__ = ["library_files", "read_manifest", "require_unchanged", "write_library"]
