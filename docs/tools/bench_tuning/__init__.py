"""How long tuning takes and how good its choices are; ``make bench-tuning``.

Read it in this order:

1. ``plan``: what is tuned, and the parts of the benchmark;
2. ``model``, ``truth``: a cluster whose true times are known, which tests use, too;
3. ``drawn``: jobs and a program, drawn by a seed;
4. ``by_model``: the parts on that cluster, in seconds;
5. ``in_lab``: the parts in the lab, by ``stagegen tune``, ``bench`` and ``compare``;
   ``runs`` keeps what they took, ``exhaustive`` times all candidates;
6. ``trials``: what is tried on this machine, ``faults`` and ``launchers``. ``tunings`` has the runs
   that they disturb, which tests use, too; ``faulty``, ``full_disk``, ``slurm_here``, ``ssh_here``
   have what they need;
7. ``results``, ``page``: docs/bench-tuning.json, and docs/bench-tuning.md, which is made from it.
"""
