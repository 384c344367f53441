"""The works that front matter cites: their titles and addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from stagegen.catalogue.templates import Templates, templates_of
from stagegen.data import TEMPLATES
from stagegen.errors import InputError

#: Authors and the year, as in ``Thakur, Rabenseifner and Gropp 2005`` or ``Bruck et al. 1997``.
CITATION = re.compile(
    r"[A-ZÄÖÜ][\w-]+(?:(?:,| and| et| al\.) ?(?:[A-ZÄÖÜ][\w-]+|and|al\.)?)* \d{4}(?![\d.])"
)
_FILE = "references.yaml"
_ADDRESSES = {"doi": "https://doi.org/", "arXiv": "https://arxiv.org/abs/"}


@dataclass(frozen=True)
class Work:
    """A work that algorithms come from.

    Attributes:
        cited: its authors and year, as front matter names it.
        work: its title, and where it appeared.
        at: its DOI or arXiv number, as ``doi:…`` or ``arXiv:…``; None where it has none.
    """

    cited: str
    work: str
    at: str | None

    @property
    def link(self) -> str | None:
        """Its address; None where it has no number."""
        if self.at is None:
            return None
        prefix, _, number = self.at.partition(":")
        return _ADDRESSES[prefix] + number


def load_works(root: Path = TEMPLATES) -> Mapping[str, Work]:
    """Return the works that a templates folder names, by authors and year."""
    return works_of(templates_of(root))


def works_of(templates: Templates) -> Mapping[str, Work]:
    """Return the works of ``references.yaml`` of every root, by authors and year.

    Where two roots name a work, the first one counts.

    Raises:
        InputError: a file is not YAML, or has another form.
    """
    works: dict[str, Work] = {}
    for root in templates.roots:
        for name, work in _works(root.files.get(_FILE, ""), root.where(_FILE)).items():
            works.setdefault(name, work)
    return works


def _works(text: str, where: str) -> Mapping[str, Work]:
    try:
        entries = yaml.safe_load(text) or {}
        return {name: Work(name, entry["work"], entry.get("at")) for name, entry in entries.items()}
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise InputError(f"expected `Authors YEAR: {{work: …, at: …}}`: {error}", where) from error


def cited_in(reference: str) -> tuple[str, ...]:
    """Return the works that a reference names, by authors and year, in their order."""
    return tuple(CITATION.findall(reference))


def with_numbers(reference: str, works: Mapping[str, Work]) -> str:
    """Return a reference with the DOI or arXiv number of each work that has one."""

    def numbered(match: re.Match[str]) -> str:
        work = works.get(match[0])
        return match[0] if work is None or work.at is None else f"{match[0]} [{work.at}]"

    return CITATION.sub(numbered, reference)
