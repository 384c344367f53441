"""The experiments: each file but this one defines an ``EXPERIMENT``, whose name is the file's."""
