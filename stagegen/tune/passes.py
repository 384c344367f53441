"""The passes of all searches of a tuning: scouting, compositions, launches, and the conclusion.

A routine that fails in a pass is left out of all later ones, on all communicators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from stagegen.catalogue import Algorithm, Collective
from stagegen.measure.records import Candidate
from stagegen.tune.candidates import routines_of
from stagegen.tune.communicators import Communicator
from stagegen.tune.plan import Outcome
from stagegen.tune.search import Search
from stagegen.tune.together import RunSearches

T = TypeVar("T")

#: Compositions that may win, by size, with the seconds that their timed parts take together.
BySize: TypeAlias = Mapping[int, Mapping[Candidate, float]]


@dataclass(frozen=True, eq=False)
class Topic:
    """What one search is about: a collective, a communicator, and the candidates.

    Attributes:
        others: algorithms that may serve parts of compositions there, by ``collective/name``.
        is_part: whether it only serves parts of what a program calls.
    """

    described: Collective
    communicator: Communicator
    kinds: tuple[str, ...]
    algorithms: tuple[Algorithm, ...]
    others: Mapping[str, Algorithm]
    is_part: bool = False

    @property
    def collective(self) -> str:
        """The collective's name."""
        return self.described.name


def teacher_of(topic: Topic, before: Iterable[Topic]) -> Topic | None:
    """Return the topic whose search tells most about another one; None if none does.

    It is of the same collective, and its communicator is nearest in shape. One host is nothing like
    several. The whole cluster and named groups have schedules of their own, which no other search
    knows.

    Args:
        topic: the one that is searched now.
        before: the topics that were searched before it, in this order.
    """
    if topic.communicator.group is not None:
        return None
    shape = topic.communicator.shape
    known = (
        other
        for other in before
        if other.collective == topic.collective
        and other.communicator.pattern is None
        and (other.communicator.hosts == 1) == (topic.communicator.hosts == 1)
    )
    return min(known, key=lambda other: other.communicator.shape.distance(shape), default=None)


class Passes:
    """The passes of all searches, set by set: a routine that fails in one is left out of all later.

    Args:
        sets: of topics whose searches may go on at the same time.
        run_searches: runs these.
        banned: algorithms that are left out, each with its collective.

    Attributes:
        searches: of the topics.
        scouted: their outcomes without compositions.
    """

    def __init__(
        self,
        sets: Sequence[Sequence[Topic]],
        run_searches: RunSearches,
        banned: Set[tuple[str, str]],
    ):
        self._sets = sets
        self._run_searches = run_searches
        self.banned = set(banned)
        self.searches: dict[Topic, Search] = {}
        self.scouted: dict[Topic, Outcome] = {}

    def scout(self, search_for: Callable[[Topic, Sequence[Algorithm]], Search]) -> None:
        """Begin the searches of a set, given what those before have found, and scout."""
        for topics in self._sets:
            for topic in topics:
                left = [a for a in topic.algorithms if (a.collective, a.name) not in self.banned]
                self.searches[topic] = search_for(topic, left)
            self.scouted |= self._run(lambda search: search.scout(), topics)

    def allowed(self, composed: Mapping[Topic, BySize]) -> dict[Topic, BySize]:
        """Return the compositions without those that are banned, or have a part that is."""
        return {
            topic: _without(self.banned, topic.collective, by_size)
            for topic, by_size in composed.items()
        }

    def compose(self, composed: Mapping[Topic, BySize]) -> None:
        """Look at compositions; their times in one search predict their times in others."""
        before: list[Topic] = []
        for topics in self._sets:
            self._leave_out(topics)
            for topic in topics:
                if (teacher := teacher_of(topic, before)) is not None:
                    self.searches[topic].learn_from(self.searches[teacher])
            before += topics
            steps = {
                topic: partial(
                    self.searches[topic].compose,
                    _without(self.banned, topic.collective, composed[topic]),
                )
                for topic in topics
            }
            self._run_each(steps)

    def confirm(self, launch: int) -> None:
        """Time finalists in a launch, but not those of searches that only serve parts."""
        for topics in self._called():
            self._leave_out(topics)
            self._run(lambda search: search.confirm(launch), topics)

    def asks_for_more(self) -> bool:
        """Whether a launch after those of the protocol may decide at some size."""
        return any(
            self.searches[topic].asks_for_more() for some in self._called() for topic in some
        )

    def conclude(self) -> Mapping[Topic, Outcome]:
        """Return the outcomes, but not those of searches that only serve parts."""
        found: dict[Topic, Outcome] = {}
        left = list(self._called())
        while left:
            for topics in left:
                self._leave_out(topics)
                found |= self._run(lambda search: search.conclude(), topics)
            # A routine that fails in a duel may serve in an outcome from before.
            left = [late for topics in self._called() if (late := self._leave_out(topics))]
        return found

    def _called(self) -> Iterator[Sequence[Topic]]:
        for topics in self._sets:
            if called := [topic for topic in topics if not topic.is_part]:
                yield called

    def _leave_out(self, topics: Sequence[Topic]) -> list[Topic]:
        """Leave out what is banned; return the topics in which it was timed."""
        return [topic for topic in topics if self.searches[topic].leave_out(self.banned)]

    def _run(self, step: Callable[[Search], T], topics: Sequence[Topic]) -> dict[Topic, T]:
        return self._run_each({topic: partial(step, self.searches[topic]) for topic in topics})

    def _run_each(self, steps: Mapping[Topic, Callable[[], T]]) -> dict[Topic, T]:
        """Do a step of each topic's search; return what they found."""
        found = self._run_searches(list(steps.values()))
        self.banned |= {
            (topic.collective, failure.candidate.algorithm)
            for topic in steps
            for failure in self.searches[topic].failures
        }
        return dict(zip(steps, found, strict=True))


def _without(banned: Set[tuple[str, str]], collective: str, by_size: BySize) -> BySize:
    """Return the compositions that are not banned themselves, and have no banned part."""
    return {
        size: {c: s for c, s in candidates.items() if not routines_of(collective, c) & banned}
        for size, candidates in by_size.items()
    }
