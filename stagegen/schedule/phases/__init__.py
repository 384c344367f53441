"""The phases of an alltoall: the construction for equal links, and the search for others."""
