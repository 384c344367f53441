"""The generated folder: libcoll with the chosen routines, what decided, and what proves it.

It is the second half of generating: :mod:`stagegen.generate` makes routines before measuring,
this stage makes the library from the decision table that measuring ended in.
"""

from stagegen.library.folder import library_files, write_library

__all__ = ["library_files", "write_library"]
