"""Merges learned files into a decision table: a rule for each size at which programs did better."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median

from stagegen.adaptive.learned import Learned
from stagegen.adaptive.subjects import (
    Seen,
    Subject,
    by_subject,
    counts,
    pooled,
    require_same,
    table_of,
)
from stagegen.catalogue import load_catalogue
from stagegen.measure.records import Candidate
from stagegen.tune.decision import DecisionTable, Lesson, Rule, with_rule

#: By which factor what was learned must be faster than what served before.
GAIN = 1.05


@dataclass(frozen=True)
class Merged:
    """A decision table with what was learned.

    Attributes:
        decision: the table.
        added: what was learned, in words.
        left_out: what was not taken over, and why.
    """

    decision: DecisionTable
    added: tuple[str, ...]
    left_out: tuple[str, ...]


def merge(decision: DecisionTable, files: Iterable[Learned], build_hash: str | None) -> Merged:
    """Return a decision table with the rules that programs learned.

    A size gets a rule of its own if all situations of that size ended with the same routine, it
    is not what the table has, and its median is lower by :data:`GAIN` than that of the table's
    choice in the same programs. Tables that serve several shapes of communicators stay as they
    are, since only one shape was seen. Whatever order the files have, the result is the same.

    Args:
        decision: the table.
        files: of ``LIBCOLL_LEARN``.
        build_hash: of the library with that table, or None if it is not known.

    Raises:
        InputError: a file is of another cluster or another build.
    """
    files = sorted(files, key=lambda one: one.file)
    require_same(files, decision, build_hash)
    added: list[str] = []
    unknown = [s.title for f in files for s in f.situations if s.hosts is None]
    left_out = [f"{title}: its hosts are not known" for title in unknown]
    unsettled = sum(s.hosts is not None and not counts(s) for f in files for s in f.situations)
    if unsettled:
        left_out.append(
            f"{unsettled} situations had not selected, or stopped as call sites were told apart"
        )
    for subject, seen in by_subject(files):
        found = _judge(decision, subject, seen)
        if isinstance(found, str):
            left_out.append(f"{subject}: {found}")
            continue
        decision = _with(decision, subject, *found)
        added.append(f"{subject}: {found[0].spec} instead of {found[1].instead_of}")
    return Merged(decision, tuple(added), tuple(left_out))


def _judge(decision: DecisionTable, subject: Subject, seen: Seen) -> tuple[Candidate, Lesson] | str:
    """Return what was learned, or why nothing is taken over."""
    table = table_of(decision, subject)
    if table is None:
        return "there is no table of its own"
    if any(one.first != one.last for one in (table.hosts, table.ranks_per_host)):
        return "its table serves other communicators, too"
    ends = {s.candidates[s.current] for _, s in seen}
    if len(ends) > 1:
        return f"programs differ: {', '.join(sorted(one.spec for one in ends))}"
    (best,) = ends
    return _compare(best, table.choice(subject.size), seen)


def _compare(best: Candidate, before: Candidate, seen: Seen) -> tuple[Candidate, Lesson] | str:
    """Return what was learned of two candidates, or why nothing is taken over.

    A learned file does not name the parts of a composition.
    """
    was = replace(before, bound=())
    if best == was:
        return f"the table has {before.spec} already"
    own, old = (pooled(seen, one) for one in (best, was))
    if not own or not old:
        return f"{best.spec} and {before.spec} were not tried beside each other"
    if median(own) * GAIN > median(old):
        return f"{best.spec} is not faster than {before.spec} by {GAIN - 1:.0%}"
    return best, Lesson(
        tuple(sorted({f.file for f, _ in seen})),
        tuple(sorted({f.policy for f, _ in seen})),
        sum(s.calls for _, s in seen),
        median(own),
        before.spec,
        median(old),
    )


def _with(
    decision: DecisionTable, subject: Subject, best: Candidate, lesson: Lesson
) -> DecisionTable:
    """Return the table with what was learned; a collective without sizes has this rule only."""
    wanted = table_of(decision, subject)
    if wanted is None:
        return decision
    rules = with_rule(wanted.rules, Rule(subject.size, best, learned=lesson))
    if load_catalogue().collective(subject.collective).has_one_rule:
        rules = rules[:1]
    own = replace(wanted, rules=rules)
    return replace(decision, tables=tuple(own if t is wanted else t for t in decision.tables))
