"""Reads ``stagegen.yaml``: a user's own parts in folders (docs/extend.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import yaml

from stagegen.parts.sources import FileSources, Named, Run, Sources, function_of
from stagegen.topology.document import Document, read_document

_KEYS = ("templates", "generators", "timings", "launchers", "packages")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_FUNCTION = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)")
_ALL = "all"


def read_parts(path: Path, *, templates_only: bool = False) -> FileSources:
    """Read the file.

    Args:
        path: the file; what it names is relative to its folder.
        templates_only: to load no Python of the user, and look at nothing but templates.

    Raises:
        InputError: it is wrong, with the line; or it names what does not exist.
    """
    doc = Document(path)
    keys = doc.known_keys(read_document(path, "templates"), "the file", _KEYS)
    templates = _templates(doc, keys.get("templates"))
    packages = _packages(doc, keys.get("packages"))
    if templates_only:
        return FileSources(Sources(templates), frozenset())
    sources = Sources(
        templates=templates,
        runs=_runs(doc, keys.get("generators")),
        timings=_timings(doc, keys.get("timings")),
        launchers=_launchers(doc, keys.get("launchers")),
    )
    return FileSources(sources, packages)


def _place(doc: Document, node: yaml.Node) -> str:
    return f"{doc.path}:{node.start_mark.line + 1}"


def _existing(doc: Document, node: yaml.Node, what: str, is_folder: bool = False) -> Path:
    """Return the path that a text names, below the file's folder."""
    path = doc.path.parent / doc.text(node, what)
    if not (path.is_dir() if is_folder else path.is_file()):
        doc.fail(node, f"{what}: there is no {'folder' if is_folder else 'file'} {path}")
    return path


def _templates(doc: Document, node: yaml.Node | None) -> tuple[Named[Path], ...]:
    entries = [] if node is None else doc.items(node, "templates")
    folders = [(entry, _existing(doc, entry, "templates", is_folder=True)) for entry in entries]
    return tuple(Named(folder.name, folder, _place(doc, entry)) for entry, folder in folders)


def _runs(doc: Document, node: yaml.Node | None) -> tuple[Named[Run], ...]:
    found = []
    for name, (key, value) in ({} if node is None else doc.mapping(node, "generators")).items():
        _require_name(doc, key, name)
        keys = doc.known_keys(value, f"the generator {name}", ("call", "description"))
        call = _function(doc, keys["call"], "call") if "call" in keys else None
        given = keys.get("description")
        description = None if given is None else _existing(doc, given, "description")
        found.append(Named(name, Run(call, description), _place(doc, key)))
    return tuple(found)


def _timings(doc: Document, node: yaml.Node | None) -> tuple[Named[Path], ...]:
    entries = [] if node is None else doc.items(node, "timings")
    files = [(entry, _existing(doc, entry, "timings")) for entry in entries]
    return tuple(Named(file.stem, file, _place(doc, entry)) for entry, file in files)


def _launchers(doc: Document, node: yaml.Node | None) -> tuple[Named[Callable[..., object]], ...]:
    found = []
    for name, (key, value) in ({} if node is None else doc.mapping(node, "launchers")).items():
        _require_name(doc, key, name)
        found.append(Named(name, _function(doc, value, "launchers"), _place(doc, key)))
    return tuple(found)


def _function(doc: Document, node: yaml.Node, what: str) -> Callable[..., object]:
    """Return the function that ``FILE.py:NAME`` names."""
    text = doc.text(node, what)
    match = _FUNCTION.fullmatch(text)
    if match is None:
        doc.fail(node, f"{what} {text!r} has to be FILE.py:NAME")
    try:
        return function_of(doc.path.parent / match["file"], match["name"])
    except ValueError as error:
        doc.fail(node, str(error))


def _packages(doc: Document, node: yaml.Node | None) -> frozenset[str] | None:
    if node is None or (isinstance(node, yaml.ScalarNode) and node.value == _ALL):
        return None
    return frozenset(doc.text(entry, "packages") for entry in doc.items(node, "packages"))


def _require_name(doc: Document, node: yaml.Node, name: str) -> None:
    if not _NAME.fullmatch(name):
        doc.fail(node, f"the name {name!r} has to be [a-z][a-z0-9_-]*")
