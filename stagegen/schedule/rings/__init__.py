"""Contention-free logical rings: LR1, LR2, LR3, and the allreduce over a ring."""
