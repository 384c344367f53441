"""Processes that arrive at different times; each file but this one defines an ``EXPERIMENT``."""
