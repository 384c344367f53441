"""Broadcast and reduce trees, contention-free where their kind allows."""
