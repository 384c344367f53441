"""stagegen: tuned MPI collective routines, generated for a cluster's own tree of switches.

The subpackages are the stages of the data flow, in order; a stage imports only the
stages before it (``docs/architecture.md``; ``tests/test_architecture.py`` enforces it):

``topology`` → ``schedule`` → ``catalogue`` → ``generate`` → ``measure`` → ``tune``
→ ``library`` → ``audit`` → ``report`` → ``cli``.
"""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())  # the caller of a stage decides

__version__ = "0.1.0"
