"""Lower bounds, and the parts that :mod:`stagegen.schedule.bounds.lower` computes them from."""
