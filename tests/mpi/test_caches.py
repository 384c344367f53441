"""What is known by handles: communicators, and calls that are native; not those of later ones."""

from __future__ import annotations

import pytest

from tests.mpi import support

pytestmark = pytest.mark.mpi


def passes(source: str, *options: str, **variables: str) -> None:
    program = support.compiled(source, 3, f"-I{support.library(3) / 'src'}", *options)
    result = support.run(3, program, timeout=60, variables=variables)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_handle_that_is_used_again_is_of_another_communicator():
    passes("communicator_cache.c")


def test_the_same_calls_are_known_to_be_native_and_no_others():
    passes("native_cache.c", LIBCOLL_FORCE="bcast=native,allreduce=native,reduce_scatter=native")


def test_a_call_asks_for_one_rule():
    passes("choosing.c", "-Wl,--wrap=coll_find_rule")
