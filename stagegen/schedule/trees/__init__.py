"""Broadcast and reduce trees, contention-free where their construction allows."""
