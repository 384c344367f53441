"""What all pages are rendered with."""

from __future__ import annotations

from functools import cache

import jinja2

from stagegen.data import TEMPLATES
from stagegen.report.units import format_bytes, format_seconds


def page_template(name: str) -> jinja2.Template:
    """Return a page's template of ``templates/report``; its filters write seconds and bytes."""
    return _environment().get_template(name)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES / "report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(seconds=format_seconds, bytes=format_bytes)
    return environment
