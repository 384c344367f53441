"""Where the time of a collective goes: the events of libraries that are built with ``TRACE=1``.

After L. A. Bongo, O. J. Anshus and J. M. Bjørndalen, *Evaluating the Performance of the Allreduce
Collective Operation on Clusters: Approach and Results* (PATHS and EventSpace), §4.
"""
