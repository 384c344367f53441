"""From what a search knows of each size to its outcome: one table of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stagegen.measure.records import Failure
from stagegen.tune.choose import SEEN_IF_SHORT, Samples, without_doubtful
from stagegen.tune.crossovers import Crossovers
from stagegen.tune.decision import NATIVE_CANDIDATE, Rule, Table
from stagegen.tune.kinds import TableKinds
from stagegen.tune.one_rule import make_one_rule
from stagegen.tune.plan import Outcome, Plan, unconverged
from stagegen.tune.point import Point
from stagegen.tune.rules import make_rules
from stagegen.tune.sight import within_sight


def outcome_of(
    collective: str,
    plan: Plan,
    kinds: TableKinds,
    points: Mapping[int, Point],
    failures: tuple[Failure, ...],
    crossovers: Crossovers | None,
    *,
    final: bool,
) -> Outcome:
    """Return the outcome of a search.

    Args:
        collective: which one.
        plan: what was tuned.
        kinds: the tables to make.
        points: what is known of each size; a size that is missing is unknown.
        failures: what ended or hung the job, or was wrong when it was checked.
        crossovers: finds where choices change; if None, they change at measured sizes.
        final: whether the choices serve in the end; else they only decide what is measured next.

    Raises:
        MeasurementError: a duel failed, or the log lacks it.
    """
    samples: dict[int, Samples] = {size: points[size].samples() for size in sorted(points)}
    tables = tuple(
        _table(collective, plan, kind, kinds, samples, crossovers, final=final)
        for kind in kinds.names
    )
    known = samples, failures, plan.protocol.width, plan.one_rule
    return Outcome(collective, plan.communicator, tables, *known)


def _has_launches(samples: Mapping[int, Samples]) -> bool:
    return any(one.launches for of_size in samples.values() for one in of_size.values())


def _table(
    collective: str,
    plan: Plan,
    kind: str,
    kinds: TableKinds,
    samples: Mapping[int, Samples],
    crossovers: Crossovers | None,
    *,
    final: bool,
) -> Table:
    """Choose among the algorithms that may serve a kind of communicators."""
    of_kind = {size: kinds.of(kind, given) for size, given in samples.items()}
    if final:
        of_kind = {size: without_doubtful(given) for size, given in of_kind.items()}
    gain = plan.protocol.gain
    if final and plan.one_rule and not _has_launches(of_kind):
        gain = max(gain, 1 - 1 / SEEN_IF_SHORT)
    if not plan.one_rule:
        rules = tuple(make_rules(of_kind, kinds.known, gain, crossovers))
        if rules and plan.is_told and crossovers is not None:  # these tables will serve
            rules = within_sight(rules, of_kind, plan.sizes, plan.bound)
    elif set(plan.sizes) <= of_kind.keys():
        rules = tuple(make_one_rule(of_kind, kinds.known, gain))
    else:  # there was no time for all sizes: it may be slow at the others
        rules = ()
    hosts = plan.hosts or plan.ranks
    unseen = (Rule(0, NATIVE_CANDIDATE),)
    table = Table.exactly(collective, kind, plan.ranks, hosts, rules or unseen)
    return replace(table, unconverged=unconverged(table, of_kind, plan.protocol.width))
