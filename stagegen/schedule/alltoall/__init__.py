"""An alltoall in contention-free phases, and the synchronisation that keeps them apart."""
