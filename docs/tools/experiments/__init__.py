"""Experiments in the lab, in groups: ``make bench-arrival``, ``make bench-adaptive``.

Read it in this order:

1. ``experiment``: what an experiment is: points that are measured one by one, a report, targets;
2. a folder for each group, with one file for each experiment; a file that is added there takes
   part, and so does a folder;
3. ``registry``: finds them;
4. ``results``: keeps what the report of each point needs, as JSON in docs/results;
5. ``page``: puts a report into the experiment's page, such as docs/arrival.md, between the lines
   that name the experiment;
6. ``stagegen``, ``lab``, ``tuned``: what points share: commands of stagegen, programs in the lab,
   what a tuned folder says.

What was measured is kept, so it may be stopped and started again, or run part by part, on several
machines:
``make bench-arrival PART=alltoall_sizes`` or ``PART='alltoall_*' POINTS='1 B*'``.
"""
