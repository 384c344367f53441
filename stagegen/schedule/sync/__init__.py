"""What keeps messages of different phases apart, in the fewest synchronisations."""
