"""Finds a user's own parts: of a ``stagegen.yaml``, and of installed packages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from stagegen.catalogue.templates import Root, read_root
from stagegen.errors import GenerateError, InputError, StagegenError
from stagegen.parts.folder import read_parts
from stagegen.parts.installed import installed_parts
from stagegen.parts.model import FILE, Parts
from stagegen.parts.sources import FileSources, Named, Run, by_name
from stagegen.topology import Topology

_PATH = re.compile(r"[a-z][a-z0-9_]*/[\w.-]+")


def find_parts(folder: Path, topology: Topology | None) -> Parts:
    """Return a user's own parts.

    Args:
        folder: where ``stagegen.yaml`` may be: that of the topology file.
        topology: for generators; without it none runs.

    Raises:
        InputError: the file or a package is wrong, or two parts have one name; says where.
        GenerateError: a generator failed.
    """
    path = folder / FILE
    own = read_parts(path) if path.is_file() else FileSources()
    packages = installed_parts(own.packages)
    generators = by_name(packages.generators, "generator")
    runs = by_name(own.sources.runs, "generator").values()
    made = [] if topology is None else [_run(one, generators, topology) for one in runs]
    folders = [_root(one) for one in (*own.sources.templates, *packages.templates)]
    timings = by_name((*own.sources.timings, *packages.timings), "timing mechanism")
    return Parts(
        roots=(*folders, *made),
        timings={name: one.value for name, one in timings.items()},
        launchers=tuple(by_name(own.sources.launchers, "launcher").values()),
    )


def templates_beside(folder: Path) -> tuple[Root, ...]:
    """Return the templates that a folder's ``stagegen.yaml`` names; runs nothing of a user's.

    Raises:
        InputError: the file is wrong, or names a folder that does not exist.
    """
    path = folder / FILE
    own = read_parts(path, templates_only=True) if path.is_file() else FileSources()
    return tuple(_root(one) for one in own.sources.templates)


def parts_file(roots: Iterable[Root]) -> dict[str, str]:
    """Return copies of roots as files by their paths, with a ``stagegen.yaml`` that names them.

    No part of a package counts beside it, since these may be in the copies.
    """
    files: dict[str, str] = {}
    names: list[str] = []
    for number, root in enumerate(roots, 1):
        names.append(f"parts/{number}-{root.label}")
        files.update({f"{names[-1]}/{path}": text for path, text in root.files.items()})
    if names:
        listed = "".join(f"  - {name}\n" for name in names)
        files[FILE] = f"templates:\n{listed}packages: []\n"
    return files


def _root(part: Named[Path]) -> Root:
    """Read a folder of templates.

    Raises:
        InputError: it has none, or a file is no text.
    """
    root = read_root(part.value)
    if not root.files:
        raise InputError(
            f"there are no templates in {part.value}; expected COLLECTIVE/ALGORITHM.c.j2",
            part.where,
        )
    return replace(root, label=_label(part.name))


def _run(
    part: Named[Run], generators: Mapping[str, Named[Callable[..., object]]], topology: Topology
) -> Root:
    """Run a generator.

    Raises:
        InputError: there is no such generator, or its description is wrong.
        GenerateError: it fails, or returns something else than templates.
    """
    function = part.value.function
    if function is None:
        if part.name not in generators:
            known = ", ".join(generators) or "none"
            message = f"no installed package has a generator {part.name} (there is {known})"
            raise InputError(f"{message}; add `call: FILE.py:NAME`", part.where)
        function = generators[part.name].value
    try:
        files = function(topology, part.value.description)
    except StagegenError:
        raise
    except Exception as error:
        what = f"the generator {part.name} failed: {type(error).__name__}: {error}"
        raise GenerateError(f"{part.where}: {what}") from error
    return Root(f"made by {part.name}", _checked(files, part), _label(part.name))


def _checked(files: object, part: Named[Run]) -> Mapping[str, str]:
    """Return what a generator made, if it is templates."""
    if isinstance(files, Mapping) and files:
        named = all(isinstance(path, str) and _PATH.fullmatch(path) for path in files)
        if named and all(isinstance(text, str) for text in files.values()):
            return dict(sorted(files.items()))
    expected = "a mapping from paths such as alltoall/mine.c.j2 to texts"
    raise GenerateError(f"{part.where}: the generator {part.name} has to return {expected}")


def _label(name: str) -> str:
    """Return a name for a copy; that of a copy's copy is the same."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return re.sub(r"^\d+-", "", plain) or "templates"
