"""Measuring with real MPI processes: launchers, the session, the log, and its statistics."""
