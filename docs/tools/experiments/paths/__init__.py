"""Configured trees (PATHS); each file but this one defines an ``EXPERIMENT``."""
