"""Calls that measure and adapt; each file that has no underscore defines an ``EXPERIMENT``."""
