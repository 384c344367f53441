"""The phases of an alltoall: a construction for equal links, and a search for unequal ones."""
