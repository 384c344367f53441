"""What the source measured (Faraj 2006, §4.3.2), for tables that have it beside ours.

On cluster (a), 16 hosts share one switch; on (b), 32 hosts are on four. Links have 100 Mbit/s.
"""

from __future__ import annotations

from typing import NamedTuple

KIB = 1 << 10

#: The source's clusters.
CLUSTERS = ("a", "b")


class Selection(NamedTuple):
    """A row of Table 4.13: calls until selection, their time, and what was selected."""

    calls: int
    milliseconds: int
    chosen: str


class Micro(NamedTuple):
    """A row of Tables 4.18 and 4.19: milliseconds of a call, all but MPICH with `enhanced`."""

    mpich: float
    selecting: float
    after: float
    o_ms_a: float
    o_ms_c: float
    o_ma: float


class Application(NamedTuple):
    """A row of Tables 4.14 to 4.17: the message in bytes, routines, seconds of the program."""

    collective: str
    size: int
    star_chose: str
    stage_chose: str
    mpich_routine: str
    star: float
    stage: float
    mpich: float
    star_primed: float | None = None


#: Table 4.13, on (a): by collective, bytes and policy.
SELECTIONS = {
    ("alltoall", 2 * KIB, "star-basic"): Selection(90, 2181, "simple"),
    ("alltoall", 2 * KIB, "star-enhanced"): Selection(50, 1183, "simple"),
    ("alltoall", 128 * KIB, "star-basic"): Selection(90, 31953, "ring with light barrier"),
    ("alltoall", 128 * KIB, "star-enhanced"): Selection(60, 19018, "pair with light barrier"),
    ("allgather", 2 * KIB, "star-basic"): Selection(120, 2055, "simple"),
    ("allgather", 2 * KIB, "star-enhanced"): Selection(60, 1229, "simple"),
    ("allgather", 128 * KIB, "star-basic"): Selection(120, 41233, "TSLR"),
    ("allgather", 128 * KIB, "star-enhanced"): Selection(60, 18335, "TSLR"),
    ("allreduce", 2 * KIB, "star-basic"): Selection(200, 2413, "Rab1-2D"),
    ("allreduce", 2 * KIB, "star-enhanced"): Selection(110, 1571, "Rab1-2D"),
    ("allreduce", 128 * KIB, "star-basic"): Selection(200, 25319, "Rab1-3D"),
    ("allreduce", 128 * KIB, "star-enhanced"): Selection(110, 7895, "Rab1-bruck"),
}

#: Tables 4.18 and 4.19: by collective, bytes and cluster.
MICRO = {
    ("alltoall", 16 * KIB, "a"): Micro(32.0, 46.4, 27.0, 0.04, 46.4, 0.01),
    ("alltoall", 64 * KIB, "a"): Micro(305.7, 192.1, 114.6, 0.35, 191.8, 0.06),
    ("alltoall", 256 * KIB, "a"): Micro(519.4, 658.7, 498.6, 1.60, 657.1, 0.30),
    ("alltoall", 16 * KIB, "b"): Micro(324.0, 366.4, 323.2, 0.01, 366.4, 0.4),
    ("alltoall", 64 * KIB, "b"): Micro(1493, 1366, 1108, 0.01, 1366.0, 1.4),
    ("alltoall", 256 * KIB, "b"): Micro(6079, 7154, 5716, 0.01, 7153.9, 5.8),
    ("allgather", 16 * KIB, "a"): Micro(31.8, 46.0, 25.5, 0.01, 45.9, 0.03),
    ("allgather", 64 * KIB, "a"): Micro(111.6, 147.2, 104.5, 0.01, 147.2, 0.1),
    ("allgather", 256 * KIB, "a"): Micro(446.0, 596.8, 416.9, 0.7, 596.1, 0.2),
    ("allgather", 16 * KIB, "b"): Micro(87.8, 293.8, 58.66, 0.01, 293.8, 0.08),
    ("allgather", 64 * KIB, "b"): Micro(1532, 1232, 542, 0.01, 1232, 0.8),
    ("allgather", 256 * KIB, "b"): Micro(6432, 5037, 2004, 0.01, 5037.0, 0.6),
    ("allreduce", 16 * KIB, "a"): Micro(5.9, 12.0, 4.6, 0.02, 12.0, 0.02),
    ("allreduce", 64 * KIB, "a"): Micro(18.7, 24.4, 18.6, 0.01, 24.39, 0.03),
    ("allreduce", 256 * KIB, "a"): Micro(68.3, 95.5, 68.4, 0.01, 95.4, 0.05),
    ("allreduce", 16 * KIB, "b"): Micro(18.4, 26.4, 9.68, 0.05, 26.3, 0.03),
    ("allreduce", 64 * KIB, "b"): Micro(82.0, 76.8, 34.3, 0.15, 76.5, 0.07),
    ("allreduce", 256 * KIB, "b"): Micro(335.4, 250, 128.6, 0.5, 249.5, 0.20),
}

_PAIR, _LIGHT = "pair", "pair with light barrier"
_BARRIER = "pair with MPI barrier"

#: Tables 4.14 to 4.17: by program and cluster.
APPLICATIONS = {
    ("FFTW", "a"): Application(
        "alltoall", 141376, _LIGHT, _BARRIER, _PAIR, 350.8, 519.6, 578.6
    ),
    ("FFTW", "b"): Application(
        "alltoall", 33856, _LIGHT, "tuned pair with N MPI barriers", _PAIR, 636.3, 778.0, 838.1
    ),
    ("LAMMPS", "a"): Application(
        "allreduce", 42382, "Rab1-ring with light barrier", "Rab1-tuned", "MPICH Rab",
        9780, 9515, 11040, 9420,
    ),
    ("LAMMPS", "b"): Application(
        "allreduce", 42382, "Rab1-rdb", "Rab2-(tuned, tuned)", "MPICH Rab", 1991, 2432, 3696
    ),
    ("NTUBE", "a"): Application(
        "allgatherv", 256000, "TSLR", _BARRIER, "LR", 568.0, 725.0, 566.0
    ),
    ("NTUBE", "b"): Application(
        "allgatherv", 128000, "TSLR", "TSLR", "LR", 758.4, 601.0, 3860, 601.0
    ),
    ("NBODY", "a"): Application("allgather", 20000, "simple", "TSLR", "rdb", 4002, 4268, 4304),
    ("NBODY", "b"): Application(
        "allgather", 32000, "TSLR", "TSLR", "LR", 2167, 2120, 2946, 2120
    ),
}  # fmt: skip
