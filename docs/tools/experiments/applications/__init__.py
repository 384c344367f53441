"""Programs: recorded, tuned for, run again; each file but this one defines an ``EXPERIMENT``."""
