"""A tuning of all default communicators, from the model whose truth is known."""

from __future__ import annotations

import pytest

from docs.tools.bench_tuning.plan import CATALOGUE, MODEL, Setting
from docs.tools.bench_tuning.truth import CatalogueCluster, CatalogueTruth
from stagegen.catalogue import groups_of
from stagegen.topology import WHOLE
from stagegen.tune.decision import CLUSTER, HOSTS, NATIVE_CANDIDATE, ONE_HOST, OTHER
from stagegen.tune.rules import eligible
from stagegen.tune.shapes import Shape
from stagegen.tune.tuner import tune

SIZES = (1, 1024, 65536)


@pytest.mark.parametrize("cluster", ["slots-4x2x2", "chain-4x4-groups"])
def test_each_shape_gets_tables_that_lose_little(cluster):
    setting = Setting.of("shapes", MODEL, cluster, ("allgather", "barrier", "bcast"), SIZES)
    topology, communicators = setting.topology, setting.communicators
    truth = CatalogueTruth(topology, CATALOGUE, communicators)
    source = CatalogueCluster(truth, 1)
    names = tuple(one.name for one in communicators)
    decision = tune(topology, CATALOGUE, setting.options(names), source, lambda: True).decision
    assert {request.communicator for request in source.asked} == set(names)
    for one in communicators:
        own = one.table or (ONE_HOST if one.hosts == 1 else HOSTS)
        for name in setting.collectives:
            table = decision.table(name, own, one.shape)
            assert table is not None
            assert table.confirmed
            for size in setting.sizes_of(name):
                used = truth(name, table.choice(size), size, one.name)
                native = truth(name, NATIVE_CANDIDATE, size, one.name)
                assert used <= 1.03 * native, (one.name, name, size, table.choice(size).spec)


def test_what_can_serve_no_table_of_a_communicator_is_not_timed():
    """On one host, routines of the network are of no use."""
    setting = Setting.of("shapes", MODEL, "slots-4x2x2", ("allgather", "bcast"), SIZES)
    communicators = [one for one in setting.communicators if one.hosts == 1]
    source = CatalogueCluster(CatalogueTruth(setting.topology, CATALOGUE, communicators), 1)
    names = tuple(one.name for one in communicators)
    tune(setting.topology, CATALOGUE, setting.options(names), source, lambda: True)
    timed = {(r.collective, c.algorithm) for r in source.asked for c in r.candidates}
    algorithms = [CATALOGUE.find(*one) for one in timed]
    assert len(algorithms) > 5
    assert all(eligible(ONE_HOST, algorithm) for algorithm in algorithms)


def test_a_job_of_any_shape_has_a_table_that_serves_it():
    setting = Setting.of("shapes", MODEL, "slots-4x2x2", ("bcast",), SIZES)
    truth = CatalogueTruth(setting.topology, CATALOGUE, setting.communicators)
    names = tuple(one.name for one in setting.communicators)
    options = setting.options(names)
    decision = tune(
        setting.topology, CATALOGUE, options, CatalogueCluster(truth, 1), lambda: True
    ).decision
    assert groups_of(setting.topology)[0].name == WHOLE
    assert decision.table("bcast", CLUSTER, Shape(8, 2)) is not None
    for hosts in range(1, 9):
        for ranks in (1, 2):
            kind = ONE_HOST if hosts == 1 else HOSTS
            assert decision.table("bcast", kind, Shape(hosts, ranks)) is not None
    assert decision.table("bcast", OTHER, Shape(2, 1)) is not None
