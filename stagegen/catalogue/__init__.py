"""The catalogue: every collective, every algorithm, and which of these a cluster can run.

Collectives are read from their descriptions, algorithms from the front matter of the templates.
"""

from stagegen.catalogue.algorithm import Adaptation, Algorithm, Parameter, Part
from stagegen.catalogue.applicable import applicable, runnable, with_native
from stagegen.catalogue.collective import Collective, load_collectives
from stagegen.catalogue.load import Catalogue, load_catalogue
from stagegen.catalogue.rank_groups import RankGroup, groups_of

__all__ = [
    "Adaptation",
    "Algorithm",
    "Catalogue",
    "Collective",
    "Parameter",
    "Part",
    "RankGroup",
    "applicable",
    "groups_of",
    "load_catalogue",
    "load_collectives",
    "runnable",
    "with_native",
]
