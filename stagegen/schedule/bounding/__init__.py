"""What the lower bounds of :mod:`stagegen.schedule.bounds` are computed from."""
