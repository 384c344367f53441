"""Native communicators are known by their handles; those of others that come later are not."""

from __future__ import annotations

import pytest

from tests.mpi import support

pytestmark = pytest.mark.mpi


def test_handles_that_are_used_again():
    program = support.compiled("known.c", 3, f"-I{support.library(3) / 'src'}")
    result = support.run(3, program, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr
