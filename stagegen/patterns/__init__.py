"""Patterns of irregular collectives: which rank has how many bytes for which.

Source: Faraj (2006), section 4.1.1.4: the routine for ``MPI_Alltoallv`` and ``MPI_Allgatherv`` is
made for a pattern that a file describes. The file is in ``docs/patterns.md``.
"""

from stagegen.patterns.classes import is_typical, typical_calls
from stagegen.patterns.difference import Merged, difference, merged, merged_at
from stagegen.patterns.file import read_patterns
from stagegen.patterns.generators import FAMILIES, make_pattern
from stagegen.patterns.model import COLLECTIVES, MATRIX, Pattern
from stagegen.patterns.write import patterns_yaml

__all__ = [
    "COLLECTIVES",
    "FAMILIES",
    "MATRIX",
    "Merged",
    "Pattern",
    "difference",
    "is_typical",
    "make_pattern",
    "merged",
    "merged_at",
    "patterns_yaml",
    "read_patterns",
    "typical_calls",
]
