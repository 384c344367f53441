"""The page of interfaces names all fields of the files that it describes by tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: The sections that describe each file.
DESCRIBED = {
    "decision": ("Decision table",),
    "known": ("Known times",),
    "manifest": ("Manifest",),
    "measurements": ("Measurements", "Environment of a measurement"),
    "progress": ("Progress of a run",),
}


def fields_of(schema: object) -> Iterator[str]:
    """Yield the names of all properties, those of objects within objects, too."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield from schema["properties"]
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from fields_of(part)


def section_of(page: str, title: str) -> str:
    """Return a section of a page, up to the next heading that is not below its own."""
    (heading,) = re.findall(rf"^#+ {re.escape(title)}$", page, re.MULTILINE)
    level = len(heading) - len(heading.lstrip("#"))
    text = page.partition(f"\n{heading}\n")[2]
    return re.split(rf"^#{{1,{level}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def missing(schema: object, text: str) -> set[str]:
    """Return the fields of a schema that no code span of a text names."""
    named = {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", code)}
    return set(fields_of(schema)) - named


@pytest.mark.parametrize(("name", "titles"), DESCRIBED.items())
def test_the_sections_of_a_file_name_every_field_of_its_schema(name, titles):
    schema = json.loads((DOCS / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
    page = (DOCS / "interfaces.md").read_text(encoding="utf-8")
    assert missing(schema, "".join(section_of(page, title) for title in titles)) == set()


def test_a_field_that_only_another_section_names_is_missing():
    page = "# Page\n\n## One\n`a`\n\n### More\n`b`\n\n## Two\n`c`\n"
    schema = {"properties": {"a": {}, "b": {"properties": {"c": {}}}}}
    assert missing(schema, section_of(page, "One")) == {"c"}
