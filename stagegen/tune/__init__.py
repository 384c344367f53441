"""Search over parameters and algorithms, ending in a total decision table."""

from stagegen.tune.decision import DecisionTable, Rule, Table

__all__ = ["DecisionTable", "Rule", "Table"]
