"""Proves a generated folder again, from the tables in its C files and its ``topology.yaml``."""

from stagegen.audit.folder import RoutineProof, audit_folder

__all__ = ["RoutineProof", "audit_folder"]
