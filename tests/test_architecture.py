"""Arrows point one way: a stage of the flow of data imports only stages before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import stagegen

PACKAGE = Path(stagegen.__file__).parent
ORDER = [
    "topology",
    "patterns",
    "trees",
    "schedule",
    "catalogue",
    "parts",
    "generate",
    "recording",
    "inspection",
    "measure",
    "tune",
    "adaptive",
    "library",
    "audit",
    "report",
    "cli",
]
FREE = {"errors", "data", "__init__"}
"""Modules at the top that every stage may use."""
ONLY = {
    "library": {"cli"},
    "audit": {"cli"},
}
"""Stages that not all later ones may import: the report reads decisions, not what was built."""
PURE = {"topology", "patterns", "trees", "schedule"}
IMPURE = {"jinja2", "subprocess", "mpi4py", "multiprocessing", "socket", "asyncio"}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)


def stage_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, full module name) of every import, also of those inside functions."""
    package = ["stagegen", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield node.lineno, module
            # `from stagegen import x` imports the stage or module x.
            if module == "stagegen":
                yield from ((node.lineno, f"stagegen.{alias.name}") for alias in node.names)


def forbidden(path: Path) -> Iterator[str]:
    stage = stage_of(path)
    where = path.relative_to(PACKAGE.parent)
    for line, module in imports(path):
        top, _, rest = module.partition(".")
        target = rest.partition(".")[0]
        if top == "networkx" and stage != "topology":
            yield f"{where}:{line}: networkx is used in topology only"
        if stage in PURE and top in IMPURE:
            yield f"{where}:{line}: {stage} is pure, but imports {top}"
        if top != "stagegen" or target not in ORDER or target == stage:
            continue
        if stage in FREE or ORDER.index(target) > ORDER.index(stage):
            yield f"{where}:{line}: {stage} comes before {target}, but imports it"
        elif stage not in ONLY.get(target, {stage}):
            yield f"{where}:{line}: {stage} may not import {target}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    stage = stage_of(path)
    assert stage in ORDER or stage in FREE | {"__main__"}, f"{stage} has no place in the order"
    if stage != "__main__":
        assert not list(forbidden(path))


def test_checker_shares_no_code_with_the_schedulers():
    checkers = sorted((PACKAGE / "schedule" / "verify").glob("*.py"))
    assert checkers
    for path in checkers:
        for line, module in imports(path):
            inside = module.removeprefix("stagegen.schedule.")
            if inside != module:
                shared = inside.split(".")[0] in {"model", "verify"}
                assert shared, f"{path.name}:{line}: imports {module}"


def test_the_walk_sees_imports(tmp_path):
    """The test would notice: every way to write an import is found."""
    source = (
        "import a.b\nfrom c import d\nfrom . import e\nfrom ..f import g\ndef x():\n import h\n"
    )
    fake = PACKAGE / "schedule" / "fake.py"
    found = {module for _, module in _imports_of(source, fake)}
    assert found == {"a.b", "c", "stagegen.schedule", "stagegen.f", "h"}


def _imports_of(source: str, path: Path) -> Iterator[tuple[int, str]]:
    class Fake(type(path)):
        def read_text(self, *args, **kwargs):
            return source

    return imports(Fake(path))
