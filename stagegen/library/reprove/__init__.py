"""Proves a generated folder again, from the tables in its C files and its ``topology.yaml``."""

from stagegen.library.reprove.folder import RoutineProof, reprove

__all__ = ["RoutineProof", "reprove"]
