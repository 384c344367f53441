"""Patterns of irregular collectives; each file that has no underscore defines an ``EXPERIMENT``."""
