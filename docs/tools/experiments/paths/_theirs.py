"""What Bongo, Anshus and Bjørndalen found (§6, §7.3, Tables 1 to 4), to stand beside ours."""

from __future__ import annotations

from stagegen.inspection.findings import TIME_OF_CALL

#: Speed-ups over the n-ary tree, by our point. Theirs are over the configuration before, so some
#: are products; but that of `split-2` is their own (§8), where the product is 1.24. 4 × 8 is their
#: cluster 8W, 8 × 4 is 4W.
SPEEDUPS = {
    "4 × 8 quad": 1.17,
    "4 × 8 binaryquad": 1.17 * 1.17,
    "4 × 8 binary": 1.49,
    "4 × 8 linked": 1.49,
    "8 × 4 binary": 1.07,
    "8 × 4 split": 1.07 * 1.10,
    "8 × 4 split-2": 1.20,
    "8 × 4 linked": 1.07 / 1.49,
}

#: Of a shape with so many bytes, over the shape that takes turns with it. `split-2` is on 4W; the
#: others are on NOW, where splitting further slowed it down.
OVER_RIVALS = {
    ("split-2", 4): 1.12,
    ("split-2", 256): 1 / 1.23,
    ("splitNOW", 4): 2.44,
    ("resplitNOW", 4): 1 / 1.11,
}

#: Table 1, in percent: row i has the departures of the i-th arrival. A node on 8W.
ORDERS = (
    (0.0, 99.9, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.1, 99.8, 0.1, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.2, 96.5, 3.2, 0.1, 0.0, 0.0),
    (0.0, 0.0, 0.0, 3.3, 95.9, 0.7, 0.1, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.9, 95.0, 4.1, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 4.2, 90.9, 5.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 95.0),
    (100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
)

#: Table 2: mean, median, standard deviation, least, greatest, percentiles 10 and 90 in µs, by our
#: stage; `binary8W`, slowest thread. Its proxies' time there and back is in two halves.
STAGES = {
    "host subtree level 0 down latency": (6, 5, 18, 2, 692, 4, 7),
    "message between hosts 0, down": (166.5, 165.5, 12, 134, 683.5, 154, 178.5),
    "cluster-root subtree level 1 down latency": (7, 4, 10, 2, 73, 4, 7),
    "core": (11, 10, 3, 8, 64, 8, 14),
    "cluster-root subtree level 1 up latency": (17, 17, 1, 15, 65, 16, 18),
    "cluster-root subtree level 1 departure wait": (11, 0, 15, 0, 80, 0, 31),
    "message between hosts 0, up": (166.5, 165.5, 12, 134, 683.5, 154, 178.5),
    "host subtree level 0 up latency": (25, 25, 7, 14, 152, 16, 34),
    "host subtree level 0 departure wait": (25, 33, 22, 0, 160, 0, 53),
    TIME_OF_CALL: (680, 678, 124, 388, 2509, 537, 807),
}

_ROWS = (
    "down-path, with arrival wait",
    "down-path, no arrival wait",
    "up-path",
    "host subtree, no arrival wait",
    "cluster-root subtree, no arrival wait",
    "messages between hosts (proxies)",
    "core",
    "total, no arrival wait",
    "total, with arrival wait",
)

#: Table 3: mean µs by part and by our title; `binary8W`.
PARTS = {
    "fastest": dict(zip(_ROWS, (409, 45, 233, 156, 104, 0, 11, 278, 642), strict=True)),
    "slowest": dict(zip(_ROWS, (320, 212, 360, 149, 77, 332, 11, 572, 680), strict=True)),
}

#: Table 4, likewise; the binary configuration of NOW, 30 hosts with two CPUs.
BY_MESSAGES = {
    "0 messages, fastest": dict(zip(_ROWS, (674, 27, 368, 21, 368, 0, 6, 395, 1042), strict=True)),
    "1 message, fastest": dict(
        zip(_ROWS, (628, 204, 415, 11, 232, 370, 6, 619, 1043), strict=True)
    ),
    "1 message, slowest": dict(
        zip(_ROWS, (575, 199, 483, 15, 319, 342, 6, 682, 1058), strict=True)
    ),
    "2 messages, fastest": dict(
        zip(_ROWS, (534, 351, 520, 13, 196, 656, 6, 871, 1054), strict=True)
    ),
    "2 messages, slowest": dict(
        zip(_ROWS, (506, 369, 566, 20, 217, 694, 6, 935, 1072), strict=True)
    ),
}
