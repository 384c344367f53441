"""The generated folder: libcoll with the chosen routines, the decision, and its evidence.

This stage is the second half of generating: :mod:`stagegen.generate` makes routines before
measuring; this stage makes the library from the decision table that measuring yields.
"""

from stagegen.library.folder import library_files, write_library

__all__ = ["library_files", "write_library"]
