"""The time that a tuning has unless told otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docs.tools.bench_tuning.plan import CATALOGUE, MODEL, Setting
from stagegen.measure.arrivals import Imbalance
from stagegen.measure.iterations import PRESETS
from stagegen.measure.timing import Timing
from stagegen.tune.allowance import START, allowance
from stagegen.tune.protocol import Protocol
from stagegen.tune.scope import Wanted

SETTING = Setting.of("shapes", MODEL)
WHOLE_ONLY = SETTING.unlimited()
SHAPES = tuple(one.name for one in SETTING.communicators)


def seconds(options=WHOLE_ONLY) -> float:
    return allowance(SETTING.topology, CATALOGUE, options)


def test_all_collectives_on_16_hosts_have_less_than_20_minutes():
    assert 15 * 60 < seconds() < 19 * 60


def test_all_shapes_together_have_less_than_twice_the_time():
    assert seconds() < seconds(SETTING.unlimited(SHAPES)) < 2 * seconds()


def test_all_shapes_together_have_twice_the_time_at_most_where_hosts_have_several_ranks():
    """Six jobs besides the whole cluster; without a limit for them, all would have more."""
    jobs = Setting.of("jobs", MODEL)
    names = tuple(one.name for one in jobs.communicators)
    assert len(names) == 7

    def of(*some: str) -> float:
        return allowance(jobs.topology, CATALOGUE, jobs.unlimited(some))

    assert of(*names) == pytest.approx(2 * of(names[0]), abs=1)


def test_what_a_program_calls_has_its_share():
    sizes = WHOLE_ONLY.sizes[:2]
    asked = replace(WHOLE_ONLY, wanted=(Wanted("bcast", "whole", sizes),))
    assert START < seconds(asked) < START + (seconds() - START) / 10


@pytest.mark.parametrize(
    "changed",
    [
        replace(WHOLE_ONLY, sizes=(*WHOLE_ONLY.sizes, 1 << 20)),
        replace(WHOLE_ONLY, timing=Timing(arrivals=Imbalance(100_000, in_messages=False))),
        replace(WHOLE_ONLY, timing=Timing(mechanism="computation", computation_ms=25.0)),
        replace(WHOLE_ONLY, timing=Timing(mechanism="mpptest")),
        replace(WHOLE_ONLY, timing=Timing(iterations=PRESETS["source"])),
        replace(WHOLE_ONLY, protocol=Protocol(launches=10)),
    ],
    ids=["a longer size", "late ranks", "computation", "calls in a row", "ITER", "launches"],
)
def test_what_takes_longer_has_more(changed):
    assert seconds(changed) > seconds()
