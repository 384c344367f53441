"""The works that front matter cites: their titles and addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from stagegen.data import TEMPLATES

#: Authors and the year, as in ``Thakur, Rabenseifner and Gropp 2005`` or ``Bruck et al. 1997``.
CITATION = re.compile(
    r"[A-ZÄÖÜ][\w-]+(?:(?:,| and| et| al\.) ?(?:[A-ZÄÖÜ][\w-]+|and|al\.)?)* \d{4}(?![\d.])"
)
_PLACES = {"doi": "https://doi.org/", "arXiv": "https://arxiv.org/abs/"}


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
        kind, _, number = self.at.partition(":")
        return _PLACES[kind] + number


@lru_cache(maxsize=4)
def load_works(root: Path = TEMPLATES) -> Mapping[str, Work]:
    """Return the works of ``references.yaml`` by authors and year; none where there is no file."""
    path = root / "references.yaml"
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {name: Work(name, entry["work"], entry.get("at")) for name, entry in entries.items()}


def cited_in(reference: str) -> tuple[str, ...]:
    """Return the works that a reference names, by authors and year, in their order."""
    return tuple(CITATION.findall(reference))


def with_numbers(reference: str, works: Mapping[str, Work]) -> str:
    """Return a reference with the DOI or arXiv number of each work that has one."""

    def numbered(match: re.Match[str]) -> str:
        work = works.get(match[0])
        return match[0] if work is None or work.at is None else f"{match[0]} [{work.at}]"

    return CITATION.sub(numbered, reference)
