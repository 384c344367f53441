"""What is kept of the points of experiments is what their reports and targets need."""

from __future__ import annotations

import json

import pytest

from docs.tools import kept
from docs.tools.experiments.registry import find_experiments, find_groups

EVERY = {
    f"{group}/{name}": one
    for group in find_groups()
    for name, one in find_experiments(group).items()
}


def late(seconds: list[float]) -> dict[str, object]:
    """What `stagegen compare` prints for a routine while ranks come late."""
    return {
        "mean_s": seconds[1], "mean_interval_s": [0.5 * seconds[1], 1.5 * seconds[1]],
        "last_s": seconds[0], "spread_s": 4e-3, "message_s": 2e-3,
        "rounds": {"mean": seconds, "last": [one / 2 for one in seconds], "first": seconds},
    }  # fmt: skip


def compared(*routines: str) -> dict[str, object]:
    """What `stagegen compare` prints; routine k takes k times as long as the first one."""
    return {
        "environment": {"kernel": "6.1.2-name", "congestion_control": "bbr", "machines": ["n0"]},
        "rows": [
            {"routine": name, "size": 1 << 20, "late": late([1e-3 * n, 2e-3 * n, 3e-3 * n])}
            for n, name in enumerate(routines, 1)
        ],
    }


TIMES = {"chosen": "ring", "bound": 0.5, "seconds": 1.0, "native": 2.0, "launches": True,
         "others": {"ring": 1.0, "logical_ring_lr1:segment_size=4096": 0.75}}  # fmt: skip
SERVED = ("MPI", "table", "star-enhanced", "star", "guard", "star-enhanced′", "star′")
TABLES = [
    {"routine": name, "late": {"last_s": 0.5, "rounds": {"last": [of] * 6, "mean": [of] * 6}}}
    for name, of in (("ring", 1.0), ("bruck", 0.5))
]

#: What `stagegen arrivals` prints for a program with a call site of each kind.
SITE = {
    "site": "libx.so+0x10", "collective": "alltoall", "size": 1024, "calls": 3, "mode": "blocking",
    "average_factor": 1.25, "worst_factor": 2.5, "balanced": 0.5, "elapsed_s": 4e-3,
    "waiting_s": 1e-3, "synchronisation_delay_s": 2e-3, "phases": [[0, 2, 5e-3]],
}  # fmt: skip
ARRIVALS = {
    "program_s": 2.0, "collectives_s": 0.5, "clock_error_s": 0.0, "average_factor": 1.5,
    "worst_factor": 3.0, "classes": [1, 2, None],
    "distribution": {"small": [0.5, 0.25, 0.25], "medium_and_large": None},
    "sites": [SITE, {**SITE, "elapsed_s": None, "waiting_s": None}],
}  # fmt: skip

#: What a point returned, and a line of the report.
RETURNED = {
    "arrival/fig_4_22": (
        "1 B factor 9",
        compared("native", "spreading_simple", "bruck:radix=2", "pair", "ring"),
        "| 9 | **2 ± 1, 1** | 4 ± 2, 2 | 6 ± 3, 3 | 8 ± 4, 4 | 10 ± 5, 5 | 2.0 | 3 |",
    ),
    "arrival/fig_4_21": (
        "64 KiB factor 129",
        compared("native", "spreading_simple", "bruck:radix=2", "pair", "ring"),
        "| 129 | **2 ± 1, 1** | 4 ± 2, 2 | 6 ± 3, 3 | 8 ± 4, 4 | 10 ± 5, 5 | 2.0 | 3 |",
    ),
    "arrival/classes": (
        "alltoall factor 4",
        compared("native", "pair", "ring", "bruck", "spreading_simple"),
        "| `ring` | globally coordinated | 3 [1.5–4.5]; 3.00 [3.00, 3.00] |",
    ),
    "arrival/programs": (
        "fourier", ARRIVALS,
        "| fourier | alltoall | 1 KiB | 3 | 1.2 | 2.5 | 50% | 4 | 1 | 2 | 5 (0–2) |",
    ),
    "arrival/two_sites": (
        "20 hosts 1 MiB 0 ms",
        compared(
            "native", "ring", "pre_reduced_ring", "rabenseifner", "recursive_doubling",
            "hr1_sites", "hr2_sites", "lanes_sites", "lane_rings_sites",
        ),
        "| 1 MiB, last arrival to last exit | 1.00 [1.00, 1.00] | 0.50 [0.50, 0.50] "
        "| 0.33 [0.33, 0.33] | 0.25 [0.25, 0.25] | 0.20 [0.20, 0.20] | 0.17 [0.17, 0.17] "
        "| 0.14 [0.14, 0.14] | 0.12 [0.12, 0.12] | 0.11 [0.11, 0.11] |",
    ),
    "arrival/skew": (
        "barrier 4 ranks 1 late by 40 ms",
        compared(
            "native", "dissemination", "fixed_tree:arity=3", "token_tree:arity=3,patience=200",
            "fixed_tree:arity=2", "token_tree:arity=2,patience=200",
        ),
        "| 4 | 1, by 40 ms | 0.75 [0.75, 0.75] |  |  |  | 0.83 [0.83, 0.83] |  |  |  |",
    ),
    "arrival/one_late": (
        "bcast 64 KiB rank 4 late by 500 ms",
        compared(
            "native", "binomial", "pipelined_linear:segment_size=8192",
            "pipelined_binary:segment_size=8192", "scatter_ring_allgather",
            "late_leaves:arity=2,segment_size=8192",
        ),
        "| 64 KiB | rank 4 by 500 ms | 0.17 [0.17, 0.17] | 0.33 [0.33, 0.33] (`binomial`) "
        "| 0.17 [0.17, 0.17] | 0.33 [0.33, 0.33] (`binomial`) |",
    ),
    "arrival/tuned_4x4": (
        "64 KiB compare 4",
        {
            "environment": {"kernel": "6.1.2"},
            "rows": [{"late": {"last_s": 0.75}, "tables": TABLES, "repetitions": 6}],
        },
        "| 64 KiB | 4 | 750 | 500 (`ring`) | 500 (`bruck`) | 2.000 [2.000, 2.000] "
        "| 2.000 [2.000, 2.000] | 6 |",
    ),
    "adaptive/programs": (
        "bodies",
        {
            "times": {name: [1.0, 3.0, 2.0] for name in SERVED},
            "primed": {"star′": "ring"},
            "learned": {name: [] for name in SERVED[2:5]},
        },
        "| `bodies 64 600` | NBODY | 2.000 | 2.000 | 2.000 | 2.000 | 2.000 | 2.000 | 2.000 | 1.000 "
        "| 3.00 |",
    ),
    "paths/noise_floor": (
        "4 × 8",
        {"seconds": {"one": [1e-3, 4e-3, 9e-3], "other": [2e-3, 4e-3, 3e-3]}},
        "| 4 × 8 | 4 | 3 | 1.000 (0.500–3.000) |",
    ),
    "patterns/tuned": (
        "chain-4x4-cyclic cubic zipf-1", TIMES,
        "| chain-4x4-cyclic cubic zipf-1 | ring | 1000 | 2.00 | 2.00 |  |  |  |",
    ),
    "patterns/long_block": (
        "cubic, 16 and 16 KiB", TIMES,
        "| cubic, 16 and 16 KiB | 500 | 2000 | 750 | ring | 1000 |",
    ),
}  # fmt: skip

#: What is raw, and not kept.
RAW = {"rounds", "others", "environment", "late"}


@pytest.mark.parametrize("name", RETURNED)
def test_the_report_is_made_of_what_is_kept(name):
    one = EVERY[name]
    point, result, line = RETURNED[name]
    assert point in one.points
    summary = kept.rounded(one.summary(result))
    text = one.report({point: summary})
    assert line in text.splitlines()
    assert one.targets({point: summary}) is not None
    assert not RAW & set(json.dumps(summary).replace('"', " ").replace(":", " ").split())


def test_of_an_environment_only_what_times_depend_on_is_kept():
    told = compared("ring")["environment"]
    known = kept.facts(told)
    assert known.pop("stagegen")
    assert known == {"kernel": "6.1.2", "congestion_control": "bbr"}
    assert set(kept.facts()) == {"stagegen", "kernel"}


def test_what_is_written_is_read_and_a_record_has_a_line(tmp_path):
    path = tmp_path / "results.json"
    value = {name: {"times": [0.123456789, 1.0] * 4, "routine": "ring"} for name in "abcdef"}
    kept.write(path, value)
    first = path.read_bytes()
    assert kept.read(path) == kept.rounded(value) != value
    kept.write(path, kept.read(path))
    assert path.read_bytes() == first
    assert sum(line.startswith(' "') for line in first.decode().splitlines()) == len(value)


def test_a_table_that_another_machine_tuned_is_only_named():
    one = EVERY["arrival/tuned_4x4"]
    assert one.summary({"library": "library-4-65536"}) == {"library": "library-4-65536"}
