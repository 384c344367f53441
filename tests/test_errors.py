"""What errors of reading data say to a user: no words of Python."""

from __future__ import annotations

import json
import re

import pytest

from stagegen.errors import InputError, what_is_wrong
from stagegen.measure.entries import CALLED, entry, number
from stagegen.tune.decision import DecisionTable

#: Words and forms of Python, which no user has to know.
OF_PYTHON = re.compile(r"None|True|False|NoneType|Error\(|object is|\bint\b|\bdict\b|\bstr\b")

WRONG = [None, True, [1, 2], {"a": 1}, "12", 7]


@pytest.mark.parametrize("text", ["null", "[]", "7", '{"tables": null}', '{"version": 3}', '"x"'])
def test_a_table_of_another_form_is_refused_in_words_of_the_file(text):
    with pytest.raises(InputError) as caught:
        DecisionTable.from_json(json.loads(text))
    assert str(caught.value).startswith("not a decision table: ")
    assert not OF_PYTHON.search(str(caught.value))


def test_a_missing_entry_is_named():
    with pytest.raises(KeyError) as caught:
        entry({}, "sizes", list)
    assert what_is_wrong(caught.value) == "`sizes` is missing"


@pytest.mark.parametrize("type_", CALLED)
@pytest.mark.parametrize("value", WRONG)
def test_a_value_of_another_type_is_shown_as_json_has_it(value, type_):
    if type(value) is type_:
        assert entry({"key": value}, "key", type_) == value
        return
    with pytest.raises(TypeError) as caught:
        entry({"key": value}, "key", type_)
    assert what_is_wrong(caught.value) == f"`key` is {json.dumps(value)}, not {CALLED[type_]}"


@pytest.mark.parametrize("value", [None, True, [1], "12"])
def test_what_is_no_number_is_shown_as_json_has_it(value):
    with pytest.raises(TypeError) as caught:
        number(value)
    assert what_is_wrong(caught.value) == f"{json.dumps(value)} is no number"
