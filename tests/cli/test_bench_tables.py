"""``stagegen bench`` for several libraries: what it makes of times that a model gives."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from stagegen.cli import _bench_tables
from stagegen.cli._bench_tables import Asked, bench_tables
from stagegen.cli._timing import Chosen
from stagegen.generate.timings import BUILT_IN
from stagegen.topology import load_topology
from stagegen.tune.bounds import bound_or_none
from tests.cli.test_bench import REFERENCE
from tests.measure.fakes import ENVIRONMENT, TIMING, Model


def source_of(scale: float):
    """What a LiveSource is replaced with: its session is one of a lab with slower links."""

    class Source(Model):
        def __init__(self, _starter, log, _bound, **_options):
            super().__init__(lambda _candidate, _size: 1.0)
            environment = replace(ENVIRONMENT, scale=scale)
            log.write({"kind": "session", "environment": environment.to_json(), "mpi": "fake"})

        def close(self) -> None:
            pass

    return Source


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_the_bound_is_that_of_the_links_of_this_run(tmp_path, monkeypatch, capsys, scale):
    library = tmp_path / "library"
    shutil.copytree(REFERENCE, library, ignore=shutil.ignore_patterns("build"))
    launcher = SimpleNamespace(emulates=False)
    monkeypatch.setattr(
        _bench_tables, "launcher_and_toolchain", lambda *_: (launcher, None, "a fake")
    )
    monkeypatch.setattr(_bench_tables, "require_sound", lambda *_: None)
    monkeypatch.setattr(_bench_tables, "LiveSource", source_of(scale))
    file = str(library / "topology.yaml")
    topology = load_topology(file)
    chosen = Chosen(BUILT_IN["barrier"])
    libraries = (library, library)
    asked = Asked(topology, file, libraries, ("alltoall",), (65536,), 3, TIMING, chosen)
    bench_tables(asked, None, None, True)
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    alltoall = _bench_tables.load_catalogue().collective("alltoall")
    bound = bound_or_none(topology, alltoall, 65536, 0)
    assert bound is not None
    assert row["bound_s"] == pytest.approx(bound.seconds / scale)
