"""The page of interfaces names all fields of the files that it describes by tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
DESCRIBED = ("decision", "known", "manifest", "measurements", "progress")


def fields_of(schema: object) -> Iterator[str]:
    """Yield the names of all properties, those of objects within objects, too."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"]
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from fields_of(part)


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_page_names_every_field_of_the_schema(name):
    schema = json.loads((DOCS / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    page = (DOCS / "interfaces.md").read_text(encoding="utf-8")
    named = {word for code in re.findall(r"`([^`\n]+)`", page) for word in re.findall(r"\w+", code)}
    assert set(fields_of(schema)) <= named
