"""Launchers: how MPI programs are started on a topology's hosts, on this machine or in the lab."""
