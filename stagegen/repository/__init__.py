"""The catalogue: every algorithm of every collective, read from the templates' front matter."""

from stagegen.repository.algorithm import Algorithm, Parameter, Part
from stagegen.repository.catalogue import Catalogue, load_catalogue

__all__ = ["Algorithm", "Catalogue", "Parameter", "Part", "load_catalogue"]
