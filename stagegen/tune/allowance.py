"""The time that a tuning has unless told otherwise (``--budget auto``).

Without a limit, a tuning of all collectives on 16 hosts at 20 Mbit/s took 20 to 33 minutes, mostly
by chance: one call may take minutes. Its tables were no faster than those of 18 minutes
(``docs/bench-tuning.md``). This budget grows with the costs that no tuning avoids: the lower bounds
of calls, and the number of sizes.

The constants are such that this tuning has 18 minutes, of the 20 that it may take.
"""

from __future__ import annotations

from stagegen.catalogue import Catalogue
from stagegen.topology import Topology
from stagegen.tune.scope import Options
from stagegen.tune.tuner import Calls, calls_of

#: Seconds for the launches of the job, and for each size.
START, SIZE = 120.0, 2.0

#: Repetitions of calls at the lower bound, for each size.
REPETITIONS = 16

#: A search that learns from another one, such as of a job on fewer hosts, has this share of it.
LEARNS = 0.5

#: The constants are for this many launches; more launches take more time.
LAUNCHES = 5


def allowance(topology: Topology, catalogue: Catalogue, options: Options) -> float:
    """Return the seconds for a whole tuning with these options.

    All jobs on parts of the cluster together have no more than everything else, so tuning takes at
    most twice as long as without them.

    Args:
        topology: the cluster.
        catalogue: all algorithms.
        options: what to tune.
    """
    every = list(calls_of(topology, catalogue, options))
    factor = max(1.0, options.protocol.launches / LAUNCHES)
    jobs = factor * sum(_seconds(calls) for calls in every if calls.is_of_job)
    others = START + factor * sum(_seconds(calls) for calls in every if not calls.is_of_job)
    return float(round(others + min(jobs, others)))


def _seconds(calls: Calls) -> float:
    return (LEARNS if calls.learns else 1.0) * (SIZE + REPETITIONS * calls.seconds)
