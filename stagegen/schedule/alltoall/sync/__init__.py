"""The fewest synchronisations that keep messages of different phases apart."""
