import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagegen.topology import (
    expand_hostlist,
    format_bandwidth,
    format_latency,
    parse_bandwidth,
    parse_latency,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n0", ["n0"]),
        ("n[0-3,7]", ["n0", "n1", "n2", "n3", "n7"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[01-3]", ["n01", "n02", "n03"]),
        ("n[0-1]", ["n0", "n1"]),
        ("n[0]", ["n0"]),
        ("r[1-2]n[0-1]", ["r1n0", "r1n1", "r2n0", "r2n1"]),
        ("n[0-1]-ib", ["n0-ib", "n1-ib"]),
        ("a,n[0-1], b", ["a", "n0", "n1", "b"]),
        ("[1-2]x", ["1x", "2x"]),
        ("n[ 1 , 2 ]", ["n1", "n2"]),
    ],
)
def test_a_host_list_expands_to_its_names(text, names):
    assert expand_hostlist(text) == names


def test_a_host_list_may_have_several_thousand_names():
    """As Slurm writes them: a list of racks."""
    names = expand_hostlist("a[001-600],b[001-600],c[001-600],d[0-9999]")
    assert (len(names), names[0], names[-1]) == (11_800, "a001", "d9999")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("n[3-0]", "backwards"),
        ("n[0-3", "not closed"),
        ("n0-3]", "do not match"),
        ("n[[0]]", "do not match"),
        ("n[]", "no number or range"),
        ("n[a]", "no number or range"),
        ("n[1-]", "no number or range"),
        ("n[1-2-3]", "no number or range"),
        ("n[²]", "no number or range"),
        ("", "empty"),
        ("a,,b", "empty"),
        ("a,", "empty"),
        ("n[0-9999999]", "more than"),
        ("n[0-9999]n[0-9999]", "more than"),
    ],
)
def test_what_is_no_host_list_is_refused(text, part):
    with pytest.raises(ValueError, match=part):
        expand_hostlist(text)


@given(st.text("n[]-,0123 x", max_size=12))
def test_any_text_expands_or_is_refused(text):
    with contextlib.suppress(ValueError):
        assert all(expand_hostlist(text))


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100Mbit", 100_000_000),
        ("100 Mbit/s", 100_000_000),
        ("1Gbps", 10**9),
        ("1gbit", 10**9),
        ("0.1Gbit", 10**8),
        ("2.5Gbit", 2_500_000_000),
        ("10kbit", 10_000),
        ("1Tbit", 10**12),
        ("64bit", 64),
        ("1000", 1000),
        ("1e9", 10**9),
    ],
)
def test_a_bandwidth_is_read_in_bits_per_second(text, rate):
    assert parse_bandwidth(text) == rate


@pytest.mark.parametrize(
    "text", ["", "fast", "100MB", "100Mb/s", "-1Mbit", "0", "0.1bit", "1e99", "9" * 99, "1 2"]
)
def test_what_is_no_bandwidth_is_refused(text):
    with pytest.raises(ValueError, match="bit"):
        parse_bandwidth(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("50us", 50e-6), ("50µs", 50e-6), ("1ns", 1e-9), ("1.5ms", 0.0015), ("2s", 2.0), ("0", 0.0)],
)
def test_a_latency_is_read_in_seconds(text, seconds):
    assert parse_latency(text) == seconds


@pytest.mark.parametrize("text", ["5", "-1us", "1min", "us", "1 US", "1e31s", "9" * 400 + "s"])
def test_what_is_no_latency_is_refused(text):
    with pytest.raises(ValueError, match=r"latency|unit"):
        parse_latency(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("0", 0), ("64KiB", 65536), ("64KB", 65536), ("64k", 65536), ("1MiB", 1 << 20)],
)
def test_a_size_is_read_in_bytes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["-1", "1.5", "1XB", "", "ib", "1ib"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match=r"size|unit|whole"):
        parse_size(text)


@given(st.integers(1, 10**13))
def test_bandwidth_is_written_exactly(rate):
    assert parse_bandwidth(format_bandwidth(rate)) == rate


@given(st.one_of(st.just(0.0), st.floats(1e-39, 1e30)))
def test_latency_is_written_exactly(seconds):
    assert parse_latency(format_latency(seconds)) == seconds
