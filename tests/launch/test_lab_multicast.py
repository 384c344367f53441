"""IP multicast in the lab: the bridges carry it from one switch to the other."""

from __future__ import annotations

import pytest

from stagegen.measure.launch.base import Streams
from tests.mpi import support
from tests.mpi.test_multicast import COMPLAINT, network

pytestmark = [pytest.mark.mpi, pytest.mark.lab]

#: A group without a device: it is that of the hosts' route.
GROUP = "239.77.0.1"


@pytest.mark.parametrize("lossy", ["", "lose", "lost again"])
def test_releases_go_by_multicast_over_switches(run, tmp_path, lossy):
    with (tmp_path / "errors").open("w+b") as errors, (tmp_path / "said").open("w+b") as said:
        status, _ = run(
            str(support.compiled("multicast.c", 4)),
            environment={
                "LIBCOLL_FORCE": "barrier=token_tree,allreduce=token_tree",
                "LIBCOLL_MULTICAST": GROUP,
                "LOSSY": f"tell {lossy}",
            },
            preload=(network(),),
            streams=Streams(stdin=-3, stdout=said, stderr=errors),
        )
        texts = []
        for stream in (said, errors):
            stream.seek(0)
            texts.append(stream.read().decode())
    output, complaints = texts
    assert (status, output) == (0, "right\n"), complaints
    assert COMPLAINT not in complaints
    assert complaints.count("datagrams came") == 4
