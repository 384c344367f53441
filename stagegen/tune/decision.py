"""The decision table: for every collective, communicator and message size, what to run.

Each table is total: its rules are sorted, disjoint, begin at 0 bytes and end without limit. A table
serves the shape of communicators that was measured (:mod:`stagegen.tune.shapes`), or the shapes
that are near to it. If a rule's choice cannot do a call, the first of its alternatives that can do
it serves, or else the native routine. The native routine also serves where nothing was tuned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from stagegen.catalogue.algorithm import NATIVE
from stagegen.errors import InputError, what_is_wrong
from stagegen.measure.records import Bound, Candidate
from stagegen.measure.timing import Timing
from stagegen.patterns import Pattern
from stagegen.tune.scope import pattern_form, read_pattern
from stagegen.tune.shapes import Range, Shape

VERSION = 4

#: Versions that are read; tables of the first do not say which times are not known well.
READ = (3, VERSION)

#: The communicators that tables serve, the most special first: all ranks of the cluster, all ranks
#: of a named group, ranks that share one host, any ranks on hosts of the cluster, and ranks with
#: some unknown host.
CLUSTER, GROUP, ONE_HOST, HOSTS, OTHER = "cluster", "group", "one-host", "hosts", "other"

#: Communicators whose tables serve all ranks of a shape, and shapes that are near.
GENERIC = (ONE_HOST, HOSTS, OTHER)

#: The native routine as a candidate.
NATIVE_CANDIDATE = Candidate(NATIVE)


@dataclass(frozen=True)
class Lesson:
    """The origin of a rule that programs learned (:mod:`stagegen.adaptive.merge`).

    Attributes:
        files: the names of the learned files, sorted.
        policies: the names of the policies that searched, sorted.
        calls: their number in all situations together.
        seconds: the median of a call of the rule's candidate.
        instead_of: the candidate that served before, as the session's commands write it.
        instead_of_seconds: the median of its calls in the same programs.
    """

    files: tuple[str, ...]
    policies: tuple[str, ...]
    calls: int
    seconds: float
    instead_of: str
    instead_of_seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the form in ``decision.json``."""
        return {
            "files": list(self.files),
            "policies": list(self.policies),
            "calls": self.calls,
            "seconds": self.seconds,
            "instead_of": self.instead_of,
            "instead_of_seconds": self.instead_of_seconds,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Lesson:
        """Read the form in ``decision.json``."""
        return cls(
            tuple(data["files"]),
            tuple(data["policies"]),
            data["calls"],
            data["seconds"],
            data["instead_of"],
            data["instead_of_seconds"],
        )


@dataclass(frozen=True)
class Reconfigured:
    """The origin of a rule that ``stagegen reconfigure`` made.

    Attributes:
        began: the name of the tree that it began with.
        tried: how many changes it tried.
        kept: the changes that it kept, in words.
        seconds: the median of a call of the rule's candidate.
        instead_of: the candidate that served before, as the session's commands write it.
        instead_of_seconds: the median of its calls in the same launches.
    """

    began: str
    tried: int
    kept: tuple[str, ...]
    seconds: float
    instead_of: str
    instead_of_seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the form in ``decision.json``."""
        return {**asdict(self), "kept": list(self.kept)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reconfigured:
        """Read the form in ``decision.json``."""
        return cls(**{**data, "kept": tuple(data["kept"])})


@dataclass(frozen=True)
class Rule:
    """Messages of ``first`` bytes and more, up to the next rule, go to ``candidate``.

    Attributes:
        first: smallest message in bytes.
        candidate: the one that serves them.
        crossover: the sizes between which the change lies: (last at which the rule before
            was kept, first at which this one won); None for the first rule, and where no look
            tells anything of larger messages.
        alternatives: the ones that serve where the candidate cannot, in this order; after the
            last one comes the native routine.
        learned: its origin, if programs learned it; else None.
        reconfigured: its origin, if ``stagegen reconfigure`` made it; else None.
    """

    first: int
    candidate: Candidate
    crossover: tuple[int, int] | None = None
    alternatives: tuple[Candidate, ...] = ()
    learned: Lesson | None = None
    reconfigured: Reconfigured | None = None

    @property
    def options(self) -> tuple[Candidate, ...]:
        """All candidates that may serve, in the order in which to try them; native is the last."""
        native = () if self.candidate == NATIVE_CANDIDATE else (NATIVE_CANDIDATE,)
        return (self.candidate, *self.alternatives, *native)


#: The most alternatives of a rule that is added, besides the native routine.
_ALTERNATIVES = 3


def with_rule(rules: Sequence[Rule], rule: Rule) -> tuple[Rule, ...]:
    """Return rules with one more, for messages of its size alone.

    The candidates that served such messages before are its alternatives.
    """
    found: list[Rule] = []
    ends = [*(one.first for one in rules[1:]), None]
    for one, end in zip(rules, ends, strict=True):
        if rule.first < one.first or (end is not None and rule.first >= end):
            found.append(one)
            continue
        if one.first < rule.first:
            found.append(one)
        others = tuple(
            other
            for other in (one.candidate, *one.alternatives)
            if other not in (rule.candidate, NATIVE_CANDIDATE)
        )
        is_native = rule.candidate == NATIVE_CANDIDATE
        found.append(replace(rule, alternatives=() if is_native else others[:_ALTERNATIVES]))
        if end is None or rule.first + 1 < end:
            found.append(replace(one, first=rule.first + 1, crossover=None))
    return tuple(found)


@dataclass(frozen=True)
class Estimate:
    """What a table's choice may lose at a size, if the time for tuning was limited.

    Attributes:
        size: in bytes.
        loss: by how much the choice may be slower than the best candidate, as a share of the best
            one's time; None if unknown.
        basis: the basis of the estimate: `launches`, `scouting`, `neighbours` or `nothing`.
    """

    size: int
    loss: float | None
    basis: str


@dataclass(frozen=True)
class Agreement:
    """What it costs to recognise the calls of a pattern.

    Attributes:
        seconds: that ranks take to tell each other what they have.
        pays: whether the pattern's choice gains more than that at some measured size. If no pattern
            or class of a collective does, the library recognises none of them.
    """

    seconds: float
    pays: bool


@dataclass(frozen=True)
class Spending:
    """How a budget for the whole tuning was spent.

    Attributes:
        seconds: of the budget.
        spent: seconds that commands took.
        loss: the share of time that may have been lost, over all tables of the measured shapes;
            None if unknown.
        unknown: at how many sizes of these tables it is unknown.
    """

    seconds: float
    spent: float
    loss: float | None
    unknown: int

    @property
    def text(self) -> str:
        """What was spent, and what may have been lost, in words."""
        spent = f"{self.spent:.0f} s of the budget of {self.seconds:.0f} s were spent"
        if self.loss is None:
            return f"{spent}; no measurement tells what other choices may save"
        saved = 1 - 1 / (1 + self.loss)
        lost = f"other choices may save up to {saved:.0%} of the time of calls, mostly far less"
        sizes = "size of a table" if self.unknown == 1 else "sizes of tables"
        unknown = f"; this is unknown at {self.unknown} {sizes}" if self.unknown else ""
        return f"{spent}; {lost}{unknown}"


@dataclass(frozen=True)
class Table:
    """The rules of one collective for communicators of one kind and certain shapes.

    Attributes:
        collective: which one.
        communicator: `cluster`, `group NAME`, `hosts`, `one-host` or `other`.
        ranks: how many were measured.
        shape: that was measured.
        rules: ascending in the size of messages, from 0 bytes.
        hosts: numbers of hosts of the communicators that it serves.
        ranks_per_host: their numbers of ranks per host, as in a shape.
        confirmed: whether what it serves was measured; else it is predicted from ``shape``.
        unconverged: the measured sizes in bytes, ascending, at which the interval of the choice's
            time is wider than was asked for.
        estimates: by size, what may have been lost, if the time for tuning was limited.
        agreement: the cost of recognising its pattern, if ranks tell each other what they have.
    """

    collective: str
    communicator: str
    ranks: int
    shape: Shape
    rules: tuple[Rule, ...]
    hosts: Range
    ranks_per_host: Range
    confirmed: bool
    unconverged: tuple[int, ...] = ()
    estimates: tuple[Estimate, ...] = ()
    agreement: Agreement | None = None

    def __post_init__(self) -> None:
        firsts = [rule.first for rule in self.rules]
        if not firsts or firsts[0] != 0 or sorted(set(firsts)) != firsts:
            raise ValueError(f"rules of {self.collective} must ascend from 0: {firsts}")
        if any(NATIVE_CANDIDATE in rule.options[:-1] for rule in self.rules):
            raise ValueError(f"the native routine of {self.collective} needs no alternative")
        for name, range_ in (("hosts", self.hosts), ("ranks per host", self.ranks_per_host)):
            if range_.first < 1 or (range_.last or range_.first) < range_.first:
                raise ValueError(f"no table can serve {range_.first} to {range_.last} {name}")

    @classmethod
    def exactly(
        cls,
        collective: str,
        communicator: str,
        ranks: int,
        hosts: int,
        rules: tuple[Rule, ...],
    ) -> Table:
        """Return the table that serves the shape that was measured, and no other."""
        shape = Shape.of(hosts, ranks)
        only = Range(shape.hosts, shape.hosts), Range(shape.ranks_per_host, shape.ranks_per_host)
        return cls(collective, communicator, ranks, shape, rules, *only, True)

    @property
    def is_native(self) -> bool:
        """Whether nothing but the native routine serves."""
        return all(rule.candidate == NATIVE_CANDIDATE for rule in self.rules)

    def serves(self, shape: Shape) -> bool:
        """Whether it serves communicators of this shape."""
        return shape.hosts in self.hosts and shape.ranks_per_host in self.ranks_per_host

    def choice(self, size: int) -> Candidate:
        """Return the first choice for a message of ``size`` bytes."""
        return self.rule(size).candidate

    def rule(self, size: int) -> Rule:
        """Return the rule for messages of ``size`` bytes."""
        return [rule for rule in self.rules if rule.first <= size][-1]

    def last_of(self, index: int) -> int | None:
        """Return the largest message of a rule in bytes, or None for the last."""
        return self.rules[index + 1].first - 1 if index + 1 < len(self.rules) else None


@dataclass(frozen=True)
class DecisionTable:
    """All tables, with the cluster and the catalogue that they were made for.

    Attributes:
        cluster: name of the topology.
        topology_hash: of the topology.
        catalogue_hash: of the catalogue of algorithms.
        representative: whether the cluster itself was measured.
        tables: sorted by collective; for each, the most special communicators come first.
        mixed: facts in which the environments that were measured differ, as the user allowed.
        timing: how calls were timed, if ranks came late to them; else None.
        spending: of the budget, if the time for the whole tuning was limited; else None.
        patterns: those with tables that serve only their calls.
    """

    cluster: str
    topology_hash: str
    catalogue_hash: str
    representative: bool
    tables: tuple[Table, ...]
    mixed: tuple[str, ...] = ()
    timing: Timing | None = None
    spending: Spending | None = None
    patterns: tuple[Pattern, ...] = ()

    def table(self, collective: str, communicator: str, shape: Shape) -> Table | None:
        """Return the table that serves a communicator, or None if that was not tuned.

        Args:
            collective: which one.
            communicator: its kind, as :attr:`Table.communicator`. The cluster and its groups, if
                not tuned, are served like any ranks on their hosts, or on one host.
            shape: of the communicator.
        """
        like_others = ONE_HOST if shape.hosts == 1 else HOSTS
        for kind in (communicator, communicator if communicator in GENERIC else like_others):
            for table in self.tables:
                if (table.collective, table.communicator) == (collective, kind) and (
                    table.serves(shape)
                ):
                    return table
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``decision.json``."""
        return {
            "version": VERSION,
            "cluster": self.cluster,
            "topology_hash": self.topology_hash,
            "catalogue_hash": self.catalogue_hash,
            "representative": self.representative,
            **({"mixed": list(self.mixed)} if self.mixed else {}),
            **({"timing": self.timing.to_json()} if self.timing else {}),
            **({"budget": asdict(self.spending)} if self.spending else {}),
            **({"patterns": list(map(pattern_form, self.patterns))} if self.patterns else {}),
            "fallback": NATIVE,
            "tables": [_table_json(table) for table in self.tables],
        }

    def to_text(self) -> str:
        """Return ``decision.json``."""
        return json.dumps(self.to_json(), indent=2) + "\n"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DecisionTable:
        """Read ``decision.json``.

        Raises:
            InputError: it is not one, is of another version, or its tables are not total.
        """
        try:
            if data["version"] not in READ:
                raise InputError(
                    f"this decision table is of version {data['version']}, and one of "
                    f"{', '.join(map(str, READ))} is needed; make the folder again with "
                    "`stagegen tune`"
                )
            return cls(
                cluster=data["cluster"],
                topology_hash=data["topology_hash"],
                catalogue_hash=data["catalogue_hash"],
                representative=data["representative"],
                tables=tuple(_read_table(table, data["version"]) for table in data["tables"]),
                mixed=tuple(data.get("mixed", ())),
                timing=Timing.from_json(data["timing"]) if "timing" in data else None,
                spending=Spending(**data["budget"]) if "budget" in data else None,
                patterns=tuple(map(read_pattern, data.get("patterns", ()))),
            )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError(
                f"not a decision table: {what_is_wrong(error)}; give one of `stagegen tune`"
            ) from error


def _table_json(table: Table) -> dict[str, Any]:
    return {
        "collective": table.collective,
        "communicator": table.communicator,
        "ranks": table.ranks,
        "hosts": table.shape.hosts,
        "ranks_per_host": table.shape.ranks_per_host,
        "hosts_from": table.hosts.first,
        "hosts_to": table.hosts.last,
        "ranks_per_host_from": table.ranks_per_host.first,
        "ranks_per_host_to": table.ranks_per_host.last,
        "confirmed": table.confirmed,
        "unconverged": list(table.unconverged),
        **({"estimates": list(map(asdict, table.estimates))} if table.estimates else {}),
        **({"agreement": asdict(table.agreement)} if table.agreement else {}),
        "rules": [
            {
                "from": rule.first,
                "to": table.last_of(index),
                **_candidate_json(rule.candidate),
                "crossover": list(rule.crossover) if rule.crossover else None,
                "alternatives": [_candidate_json(other) for other in rule.options[1:]],
                **({"learned": rule.learned.to_json()} if rule.learned else {}),
                **({"reconfigured": rule.reconfigured.to_json()} if rule.reconfigured else {}),
            }
            for index, rule in enumerate(table.rules)
        ],
    }


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    own = {"algorithm": candidate.algorithm, "parameters": dict(candidate.parameters)}
    parts = [
        {"collective": bound.collective, **_candidate_json(bound.candidate)}
        for bound in candidate.bound
    ]
    return {**own, "parts": parts} if parts else own


def _read_candidate(data: Mapping[str, Any]) -> Candidate:
    return Candidate(
        data["algorithm"],
        tuple(sorted(data["parameters"].items())),
        tuple(Bound(part["collective"], _read_candidate(part)) for part in data.get("parts", ())),
    )


def _read_table(data: Mapping[str, Any], version: int) -> Table:
    rules = (
        Rule(
            rule["from"],
            _read_candidate(rule),
            (rule["crossover"][0], rule["crossover"][1]) if rule["crossover"] else None,
            tuple(map(_read_candidate, rule["alternatives"]))[:-1],
            Lesson.from_json(rule["learned"]) if "learned" in rule else None,
            Reconfigured.from_json(rule["reconfigured"]) if "reconfigured" in rule else None,
        )
        for rule in data["rules"]
    )
    return Table(
        data["collective"],
        data["communicator"],
        data["ranks"],
        Shape(data["hosts"], data["ranks_per_host"]),
        tuple(rules),
        Range(data["hosts_from"], data["hosts_to"]),
        Range(data["ranks_per_host_from"], data["ranks_per_host_to"]),
        data["confirmed"],
        tuple(data["unconverged"] if version > READ[0] else ()),
        tuple(Estimate(**form) for form in data.get("estimates", ())),
        Agreement(**data["agreement"]) if "agreement" in data else None,
    )
