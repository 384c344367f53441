"""Configured trees: a file says which rank does the work of each inner node.

Source: Bongo, Anshus and Bjørndalen, section 3 (PATHS): the tree of a collective is data, which is
made from the cluster and then changed without a change to the program. The file is in
``docs/trees.md``.
"""

from stagegen.trees.configurations import SHAPES, TreeShape, make_tree, shape_of
from stagegen.trees.file import read_tree, require_name
from stagegen.trees.model import ConfiguredTree, Node, ordered
from stagegen.trees.write import tree_yaml

__all__ = [
    "SHAPES",
    "ConfiguredTree",
    "Node",
    "TreeShape",
    "make_tree",
    "ordered",
    "read_tree",
    "require_name",
    "shape_of",
    "tree_yaml",
]
