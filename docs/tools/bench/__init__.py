"""The benchmark behind the README's table; ``make bench``, which is ``python -m docs.tools.bench``.

Read it in this order:

1. ``plan``: the clusters, and what is tuned and compared on each;
2. ``parts``: runs ``stagegen`` for one part after the other;
3. ``kept``: keeps what each part brings, in docs/results;
4. ``families``: the best AAPC routines against the best that know no topology;
5. ``guidelines``: collectives that are slower than a composition of others;
6. ``targets``: what was promised, and whether it is kept;
7. ``page``, ``picture``: docs/benchmark.md, the README's table, the README's picture.

``rows`` and ``results`` are what these hand on to each other. All of it takes hours; what is done
is kept, and a part is done by ``make bench BENCH_CLUSTERS=random-1 BENCH_CONGESTION=cubic
BENCH_COLLECTIVES=alltoall``, which tunes nothing else: compositions then have native parts.
"""
