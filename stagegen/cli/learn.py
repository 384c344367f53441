"""``stagegen learn``: what programs learned becomes rules of a decision table."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import click

from stagegen.adaptive.known import KNOWN, read_known
from stagegen.adaptive.learned import read_learned
from stagegen.adaptive.merge import merge
from stagegen.adaptive.subjects import with_missing_tables
from stagegen.adaptive.times import update
from stagegen.catalogue import load_catalogue
from stagegen.cli._parts import added_to
from stagegen.cli._report import remove_report
from stagegen.data import TEMPLATES
from stagegen.library import read_manifest, require_unchanged, write_library
from stagegen.topology import load_topology
from stagegen.tune.recorded import DECISION, read_decision

_BUILD = re.compile(r"coll_build = 0x([0-9a-f]+);")
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--library", type=_FOLDER, required=True, metavar="DIR", help="A generated folder.")
@click.option("--output", type=_FOLDER, metavar="DIR", help="What to write; default: --library.")
def command(files: tuple[Path, ...], library: Path, output: Path | None) -> None:
    """Merge FILES of LIBCOLL_LEARN into a library's decision table, and make the library again.

    The rules say where they are from: `learned` in decision.json. If the library's calls can adapt,
    they still can, and start from the times that programs measured: `learned` in known.json.
    """
    manifest = read_manifest(library)
    command, listed = manifest.get("command"), manifest.get("files")
    adapts = isinstance(listed, dict) and KNOWN in listed
    known = read_known(library / KNOWN) if adapts else None
    learned = [read_learned(one) for one in files]
    before = with_missing_tables(read_decision(library / DECISION), learned)
    build = _build_of(library)
    merged = merge(before, learned, build)
    added, left_out = merged.added, merged.left_out
    if known is not None:
        updated = update(known, before, learned, build)
        known, added = updated.known, (*added, *updated.added)
        left_out = (*left_out, *updated.left_out)
    file = library / "topology.yaml"
    topology = load_topology(str(file))
    catalogue = load_catalogue(TEMPLATES, added_to(str(file), topology))
    require_unchanged(library, manifest, catalogue)
    decision = replace(merged.decision, catalogue_hash=catalogue.hash)
    if known is not None:
        catalogue = catalogue.selecting(known.selection)
    for line in left_out:
        click.echo(f"left out: {line}")
    for line in added:
        click.echo(f"learned: {line}")
    if added or output not in (None, library):
        made_by = None if command is None else str(command)
        folder = output or library
        earlier = _bytes_of(folder / DECISION)
        write_library(folder, topology, catalogue, decision, {}, known, made_by)
        if _bytes_of(folder / DECISION) != earlier:
            remove_report(folder, "what was learned")


def _bytes_of(file: Path) -> bytes | None:
    """Return the content of a file; None if there is none."""
    return file.read_bytes() if file.is_file() else None


def _build_of(library: Path) -> str | None:
    """Return the hash of the build that the ranks of a job compare; None if there is none."""
    try:
        text = (library / "src" / "build.c").read_text(encoding="utf-8")
    except OSError:
        return None
    found = _BUILD.search(text)
    return found[1] if found else None
