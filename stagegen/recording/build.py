"""Building the recorder, and the programs that belong to it, on their first use."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from stagegen.catalogue import Catalogue, load_catalogue
from stagegen.data import DRIVERS
from stagegen.generate import Renderer, Toolchain, build_once
from stagegen.generate.fortran import FortranFunction, Noted, fortran_function, noted, with_site
from stagegen.generate.sources import CALLS, calls_header
from stagegen.recording.functions import Function, functions_of

#: The library that is preloaded; the benchmark of its cost; messages between two ranks.
RECORDER, OVERHEAD, EXCHANGE = "recorder.so", "overhead", "exchange"

_FOLDER = "recorder"
_SOURCES = (
    "calls.c",
    "clock.c",
    "communicators.c",
    "gather.c",
    "lifetime.c",
    "operations.c",
    "sites.c",
    "store.c",
)
_HEADERS = ("libcoll.h", "recorder.h")
_SHARED = ("events/clocks.c", "events/clocks.h", "libcoll/handles.h")
_DRIVERS = ("exchange.c", "message.h", "overhead.c")
#: Where a Fortran program calls, while it does.
_SITE = "recorder_fortran_site"


def _noted(function: Function) -> Noted:
    return noted(function.name, len(function.all_arguments), function.has_data)


def _fortran(catalogue: Catalogue) -> Iterator[FortranFunction]:
    """Yield the functions that convert Fortran's arguments, with the site of the call noted."""
    for one in catalogue.descriptions:
        yield with_site(fortran_function(one), _SITE)


def recorder_sources(catalogue: Catalogue) -> dict[str, str]:
    """Return the files of the recorder's folder.

    Raises:
        GenerateError: a template is wrong.
    """
    renderer = Renderer("stagegen record", "any", "0" * 64, catalogue.hash)
    functions = functions_of(catalogue)
    values = {
        "functions": functions,
        "fortran": [_noted(function) for function in functions],
    }
    with_data = {"functions": list(_fortran(catalogue)), "starts": False, "adapts": False}
    return {
        **{name: renderer.unrendered(f"{_FOLDER}/{name}") for name in (*_SOURCES, *_HEADERS)},
        **{Path(name).name: renderer.unrendered(name) for name in _SHARED},
        **{name: (DRIVERS / name).read_text(encoding="utf-8") for name in _DRIVERS},
        "entries.c": renderer.render(f"{_FOLDER}/entries.c.j2", values),
        "fortran.c": renderer.render("libcoll/fortran.c.j2", with_data),
        "fortran_sites.c": renderer.render(f"{_FOLDER}/fortran_sites.c.j2", values),
        "Makefile": renderer.verbatim(f"{_FOLDER}/Makefile"),
        CALLS: calls_header(catalogue, renderer),
    }


def built(target: str, cache: Path, toolchain: Toolchain) -> Path:
    """Return the recorder or one of its programs, from the cache if it was built before.

    Args:
        target: :data:`RECORDER`, :data:`OVERHEAD` or :data:`EXCHANGE`.
        cache: a folder that all hosts see.
        toolchain: of the MPI library that the program uses.

    Raises:
        GenerateError: it cannot be built.
    """
    files = recorder_sources(load_catalogue())
    digest = hashlib.sha256()
    for text in (str(Path(toolchain.mpicc).resolve()), *files, *files.values()):
        digest.update(text.encode() + b"\0")
    folder = cache / f"recorder-{digest.hexdigest()[:16]}"
    return build_once(folder, files, toolchain, target)
