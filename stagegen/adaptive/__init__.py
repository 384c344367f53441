"""Adaptive selection without MPI: policies, traces, replays, and what a program learned."""
