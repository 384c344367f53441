"""Formulas of the front matter: what they come to, what they are in C, and what is none."""

from __future__ import annotations

import math
import subprocess

import pytest

from stagegen.catalogue.formula import read_formula
from tests.generate.runtime import compile_c, runtime_folder

NAMES = {"n": 1000.0, "p": 7.0, "m": 2.0, "segment_size": 64.0, "window": 0.0}
SOURCE = """
#include <stdio.h>
#include "formula.h"
int main(void) {
    const double n = 1000, p = 7;
    const struct coll_parameters values = {.segment_size = 64, .window = 0}, *parameters = &values;
    const int first_place[] = {0, 1, 3, 5, 7};
    const struct coll_comm comm = {.size = 7, .hosts = 4, .first_place = first_place}, *cc = &comm;
    (void)n, (void)p, (void)parameters, (void)cc;
    printf("%%.17g\\n", (double)(%s));
}
"""

FORMULAS = {
    "0": 0,
    "8 * p": 56,
    "n - p - 1": 992,
    "n - (p - m)": 995,
    "n - (p + m) * (2 - 1)": 991,
    "2 * (n + 3) * p": 14042,
    "(n + segment_size - 1) // segment_size": 16,
    "n / 8 + n // 64": 140,
    "1 / 2": 0.5,
    "max(min(n, segment_size), 3 * p) + 1": 65,
    "n // window": math.inf,
    "n * n * n * p * 1000000000 * 1000000000": 7e27,
}


@pytest.mark.parametrize(("text", "value"), FORMULAS.items())
def test_a_formula_comes_to_its_value(text, value):
    assert read_formula(text, ["segment_size", "window"]).value(NAMES) == value


@pytest.mark.mpi
@pytest.mark.parametrize(("text", "value"), FORMULAS.items())
def test_a_formula_comes_to_the_same_in_c(text, value, tmp_path):
    source = tmp_path / "formula.c"
    formula = read_formula(text, ["segment_size", "window"])
    source.write_text(SOURCE % formula.to_c())
    program = compile_c(source, tmp_path / "formula", f"-I{runtime_folder()}")
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert float(output) == value


@pytest.mark.parametrize(
    "text",
    ["x", "n ** 2", "-n", "f(n)", "max(n)", "max(n, p, m)", "max(n, key=p)", "n;p", "1.5", "",
     "'n'", "n if p else 0", "n < p", "n.real", "n[0]", "True", "__import__('os')",
     "(" * 500 + "n"],
)  # fmt: skip
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(ValueError, match="expected a formula"):
        read_formula(text, [])


@pytest.mark.parametrize("value", [True, None, 1.5, ["n"], {"n": 1}])
def test_what_is_no_text_is_no_formula(value):
    with pytest.raises(TypeError, match="expected a formula"):
        read_formula(value, [])
