"""What tuning measured goes with the table of rules that it was measured for."""

from __future__ import annotations

import re

from stagegen.adaptive.known import NOTHING_KNOWN, KnownTime
from stagegen.library.folder import library_files
from stagegen.tune.decision import NATIVE_CANDIDATE
from tests.mpi import support
from tests.mpi.patterned import RANKS, catalogue, decision, patterns


def test_known_times_have_the_number_of_their_table_where_there_are_tables_of_patterns():
    """Calls of a pattern have tables of their own, which the rules do not number."""
    topology = support.cluster(RANKS)
    own = patterns(RANKS)
    found = catalogue(topology, own)
    rules = decision(topology, found, own)
    known = NOTHING_KNOWN
    for table in rules.tables:
        known = known.having(table, [KnownTime(64, NATIVE_CANDIDATE, 0.5)])
    files = library_files(topology, found, rules, known)
    numbered = re.findall(r"^    \{COLL_(\w+), COLL_KIND_", files["src/rules.c"], re.MULTILINE)
    about = re.findall(r"known_(\d+)\[\] = \{ /\* (\w+) on ", files["src/candidates.c"])
    assert len(numbered) < len(rules.tables)
    assert [name.upper() for _, name in about] == numbered
    assert [int(number) for number, _ in about] == list(range(len(numbered)))
