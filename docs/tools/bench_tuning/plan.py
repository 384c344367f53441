"""What ``make bench-tuning`` measures: the parts, and what they are done with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from stagegen.catalogue import load_catalogue
from stagegen.data import TOPOLOGIES
from stagegen.measure.timing import Timing
from stagegen.topology import WHOLE, Topology, load_topology
from stagegen.tune.allowance import allowance
from stagegen.tune.communicators import Communicator, default_names, find_communicators
from stagegen.tune.protocol import Protocol
from stagegen.tune.scope import Options, grid
from stagegen.tune.sizes import sizes_of

CATALOGUE = load_catalogue()

#: The parts, in the order of the page.
PARTS = {
    "whole": "time of tuning, and the least that any tuner needs",
    "exhaustive": "loss against the fastest candidate of an exhaustive measurement",
    "twice": "loss of two complete tunings against each other",
    "budget": "loss within a budget",
    "program": "time and loss of --for TRACE against the full tuning",
    "shapes": "time of all shapes against that of the whole cluster",
    "jobs": "random jobs against native",
}

#: The parts that try something for real on this machine, after these.
TRIALS = {
    "faults": "faults that a tuning survives",
    "launchers": "launchers that were tried",
}

#: The clusters of the parts unless another one is asked for.
CLUSTER, CLUSTER_OF_JOBS = "chain-4x4-cyclic", "slots-4x2x2"

#: The sizes of ``stagegen tune`` unless told otherwise, and those of jobs.
SIZES = grid(1, 256 * 1024)
SIZES_OF_JOBS = (1, 1024, 64 * 1024)

#: Seconds of measured time for a size, as of ``stagegen tune``.
BUDGET = 20.0

#: The budgets of the part `budget`, as shares of the time of a full tuning: on the model, and in
#: the lab, where each takes its time.
SHARES_ON_MODEL, SHARES_IN_LAB = (0.1, 0.25, 0.5, 0.75, 1.0), (0.5,)

#: In the lab, sizes are compared with all candidates if their bound takes at most so many seconds.
#: The others would take days.
EXHAUSTIVE_BOUND = 0.01

MODEL, LAB, HERE = "model", "lab", "here"


@dataclass(frozen=True)
class Setting:
    """What a part is done with.

    Attributes:
        part: a key of :data:`PARTS`.
        source: :data:`MODEL` or :data:`LAB`.
        file: the cluster's topology file.
        collectives: sorted names.
        sizes: of messages, in bytes, ascending.
        seed: of what is drawn: jobs, programs, and on the model the true times.
    """

    part: str
    source: str
    file: Path
    collectives: tuple[str, ...]
    sizes: tuple[int, ...]
    seed: int

    @classmethod
    def of(
        cls,
        part: str,
        source: str,
        cluster: str | None = None,
        collectives: tuple[str, ...] = (),
        sizes: tuple[int, ...] = (),
        seed: int = 1,
    ) -> Setting:
        """Return a setting; what is not given is the part's own.

        Args:
            part: a key of :data:`PARTS`.
            source: :data:`MODEL` or :data:`LAB`.
            cluster: the name of a file of topologies/, or a path.
            collectives: names; all if empty.
            sizes: in bytes, ascending.
            seed: of what is drawn.
        """
        jobs = part == "jobs"
        name = cluster or (CLUSTER_OF_JOBS if jobs else CLUSTER)
        path = Path(name) if name.endswith(".yaml") else TOPOLOGIES / f"{name}.yaml"
        own = SIZES_OF_JOBS if jobs else SIZES
        every = collectives or CATALOGUE.collectives
        return cls(part, source, path, tuple(sorted(every)), sizes or own, seed)

    @cached_property
    def topology(self) -> Topology:
        """The cluster."""
        return load_topology(self.file)

    @cached_property
    def communicators(self) -> tuple[Communicator, ...]:
        """All that ``stagegen tune`` tunes for unless told otherwise; the whole is the first."""
        return find_communicators(self.topology, default_names(self.topology))

    def options(self, communicators: tuple[str, ...] = (WHOLE,), seed: int = 1) -> Options:
        """Return what to tune, within the time of ``--budget auto``.

        Args:
            communicators: by name.
            seed: of the order in which candidates take turns.
        """
        options = self.unlimited(communicators, seed)
        return replace(options, total=allowance(self.topology, CATALOGUE, options))

    def unlimited(self, communicators: tuple[str, ...] = (WHOLE,), seed: int = 1) -> Options:
        """Return what to tune, in any time, with the arguments of :meth:`options`."""
        protocol = Protocol(seed=seed)
        return Options(
            self.collectives, self.sizes, Timing(), BUDGET, communicators, protocol=protocol
        )

    def sizes_of(self, collective: str) -> tuple[int, ...]:
        """Return the sizes at which a collective is tuned on the whole cluster."""
        described, ranks = CATALOGUE.collective(collective), self.topology.rank_count
        return sizes_of(described, self.unlimited(), ranks)

    @property
    def names(self) -> str:
        """The collectives in one word: `all`, or a list."""
        every = self.collectives == CATALOGUE.collectives
        return "all" if every else "+".join(self.collectives)

    @property
    def bytes(self) -> str:
        """The sizes in one word: `default`, as of `stagegen tune`, or a list."""
        return "default" if self.sizes == SIZES else "+".join(map(str, self.sizes))

    @property
    def folder(self) -> Path:
        """Where the lab's tunings with these collectives and sizes are."""
        cluster = Path("generated") / f"bench-tuning-{self.topology.name}"
        return cluster / self.names / self.bytes
