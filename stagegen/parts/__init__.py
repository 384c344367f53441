"""A user's own parts: what folders and Python packages add to stagegen (Faraj 2006, §4.1.1)."""

from stagegen.parts.find import find_parts, templates_beside
from stagegen.parts.model import FILE, Generator, Parts

__all__ = ["FILE", "Generator", "Parts", "find_parts", "templates_beside"]
