"""The catalogue: every algorithm of every collective, and which of them a cluster can run.

Algorithms are read from the front matter of the templates.
"""

from stagegen.catalogue.algorithm import Algorithm, Parameter, Part
from stagegen.catalogue.applicable import applicable, runnable, with_native
from stagegen.catalogue.load import Catalogue, load_catalogue
from stagegen.catalogue.rank_groups import RankGroup, groups_of

__all__ = [
    "Algorithm",
    "Catalogue",
    "Parameter",
    "Part",
    "RankGroup",
    "applicable",
    "groups_of",
    "load_catalogue",
    "runnable",
    "with_native",
]
