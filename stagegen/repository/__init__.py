"""The catalogue: every algorithm of every collective, read from the templates' front matter."""

from stagegen.repository.algorithm import Algorithm, Parameter
from stagegen.repository.catalogue import Catalogue, load_catalogue

__all__ = ["Algorithm", "Catalogue", "Parameter", "load_catalogue"]
