"""Groups the situations of learned files as a decision table does: it knows no call sites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import groupby

from stagegen.adaptive.learned import Learned, Situation
from stagegen.errors import InputError
from stagegen.measure.records import Candidate
from stagegen.tune.decision import NATIVE_CANDIDATE, DecisionTable, Rule, Table


@dataclass(frozen=True)
class Subject:
    """What the situations that one rule serves have in common."""

    collective: str
    communicator: str
    ranks: int
    hosts: int
    size: int

    def __str__(self) -> str:
        return f"{self.collective} of {self.size} B on {self.communicator} ({self.ranks} ranks)"


Seen = Sequence[tuple[Learned, Situation]]


def require_same(files: Iterable[Learned], decision: DecisionTable, build: str | None) -> None:
    """Refuse files of another cluster, or of another build of the library.

    Raises:
        InputError: there is one.
    """
    for one in files:
        if one.topology_hash != decision.topology_hash:
            message = (
                f"is of another cluster ({one.cluster}), or of another version of its topology; "
                "give the library that the program ran with"
            )
            raise InputError(message, one.file)
        if one.build_hash is not None and build is not None and one.build_hash != build:
            message = "is of another build of the library; give the one that the program ran with"
            raise InputError(message, one.file)


def by_subject(files: Iterable[Learned]) -> Iterator[tuple[Subject, Seen]]:
    """Yield what was seen of each subject, in order.

    Situations of unknown hosts are left out, as are those that do not count (:func:`counts`).
    Whatever order the files have, the result is the same.
    """
    ordered = sorted(files, key=lambda one: one.file)
    pairs = [(_subject(s), f, s) for f in ordered for s in f.situations if counts(s)]
    known = [(subject, f, s) for subject, f, s in pairs if subject is not None]
    known.sort(key=lambda one: astuple(one[0]))
    for subject, same in groupby(known, key=lambda one: one[0]):
        yield subject, [(f, s) for _, f, s in same]


def counts(one: Situation) -> bool:
    """Return whether a situation says what is best.

    It does not if its policy never selected, or if it stopped before its policy was done.
    """
    return one.selected_after is not None and not one.is_paused


def _subject(one: Situation) -> Subject | None:
    if one.hosts is None:
        return None
    return Subject(one.collective, one.communicator, one.ranks, one.hosts, one.size)


def table_of(decision: DecisionTable, subject: Subject) -> Table | None:
    """Return the table that was made for exactly these ranks, or None."""
    for table in decision.tables:
        if table.collective == subject.collective and _has_ranks_of(table, subject):
            return table
    return None


def with_missing_tables(decision: DecisionTable, files: Iterable[Learned]) -> DecisionTable:
    """Return a decision table that also has tables of collectives that tuning left out.

    A program may have learned of such a collective. Its table is native at every size, and for the
    same ranks as a table of another collective.

    Args:
        decision: the table.
        files: of ``LIBCOLL_LEARN``, in any order.
    """
    tables = list(decision.tables)
    for subject, _ in by_subject(files):
        if any(_has_ranks_of(one, subject) for one in tables) and not any(
            one.collective == subject.collective and one.communicator == subject.communicator
            for one in tables
        ):
            tables.append(
                Table.exactly(
                    subject.collective,
                    subject.communicator,
                    subject.ranks,
                    subject.hosts,
                    (Rule(0, NATIVE_CANDIDATE),),
                )
            )
    return replace(decision, tables=tuple(tables))


def _has_ranks_of(table: Table, subject: Subject) -> bool:
    known = (table.communicator, table.ranks, table.shape.hosts)
    return known == (subject.communicator, subject.ranks, subject.hosts)


def pooled(seen: Seen, candidate: Candidate) -> list[float]:
    """Return the kept times of a candidate in all situations, in seconds."""
    return [
        time
        for _, one in seen
        if candidate in one.candidates
        for time in one.times_of(one.candidates.index(candidate))
    ]
