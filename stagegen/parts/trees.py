"""Makes routines of configured trees: for each tree one of each collective that it serves.

The routines have their tables, so they serve all ranks of one cluster. The root of templates that
is made here also has the tree files themselves; a generated folder keeps both.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from stagegen.catalogue import Catalogue
from stagegen.catalogue.templates import Root
from stagegen.errors import InputError
from stagegen.schedule.verify import Proof, verify_configured
from stagegen.topology import Topology
from stagegen.trees import ConfiguredTree, read_tree, require_name, tree_yaml

#: The collectives that a tree serves, and what each does along it.
COLLECTIVES: Mapping[str, str] = {
    "allreduce": "The operands go up the tree {}, and the result goes down again.",
    "barrier": "Tokens go up the tree {}, and down again.",
    "bcast": "The message goes down the tree {}.",
    "reduce": "The operands go up the tree {}; if the root is elsewhere, the result goes there.",
}
_COSTS = {
    "allreduce": "2Σ k(α + nβ) + Σ knγ over the levels of k messages at a rank",
    "barrier": "2Σ kα over the levels of k messages at a rank",
    "bcast": "Σ k(α + nβ) over the levels of k messages at a rank",
    "reduce": "Σ k(α + nβ + nγ) over the levels of k messages at a rank",
}
_ON_HOST = (
    '{meaning: "how ranks of one host hand over data: 1 messages, 2 shared memory for short ones", '
    "values: [1, 2], default: 1}"
)
_PREFIX = "configured_tree_"
_AHEAD = 8192
"""Bytes up to which receives are posted ahead (``AHEAD_MOST`` in the engine)."""
_SHOWN = 64
"""The most nodes of a tree that is in the comment of its tables."""


def trees_root(files: Sequence[Path], topology: Topology) -> tuple[Root, ...]:
    """Return the templates of the trees of files; none for no files.

    Raises:
        InputError: a file is wrong, or two trees have one name; with the line.
    """
    trees: dict[str, tuple[ConfiguredTree, Path]] = {}
    for file in files:
        tree = read_tree(file, topology)
        first, other = trees.setdefault(algorithm_of(tree.name), (tree, file))
        if other is not file:
            message = f"the tree {first.name!r} in {other} has the same name in C; rename one"
            raise InputError(message, file, 1)
    return (root_of([tree for tree, _ in trees.values()], topology),) if trees else ()


def root_of(trees: Iterable[ConfiguredTree], topology: Topology) -> Root:
    """Return the templates of trees that have different names.

    Raises:
        ScheduleError: a tree fails its proof.
    """
    files: dict[str, str] = {}
    for tree in trees:
        files[f"trees/{tree.name}.tree.yaml"] = tree_yaml(tree, topology)
        for collective in COLLECTIVES:
            path = f"{collective}/{algorithm_of(tree.name)}.c.j2"
            files[path] = _template(tree, topology, collective)
    return Root("configured trees", dict(sorted(files.items())), "trees")


def algorithm_of(name: str) -> str:
    """Return the name of the algorithms that a tree of this name makes."""
    return _PREFIX + re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def require_free(name: str, what: str, catalogue: Catalogue) -> None:
    """Check that a tree may have a name: that it is one, and that its algorithms are new.

    Args:
        name: to check.
        what: has this name, for the error.
        catalogue: the algorithms that are there.

    Raises:
        InputError: a tree file may not have such a name, or an algorithm has it.
    """
    require_name(name, what)
    for collective in COLLECTIVES:
        for one in catalogue.of(collective):
            if one.name == algorithm_of(name):
                problem = f"{what} {name!r} becomes {one.full_name}, which is there already"
                raise InputError(f"{problem}; choose another name")


def _template(tree: ConfiguredTree, topology: Topology, collective: str) -> str:
    """Return the template of a routine: front matter, tables, and the call of the engine."""
    proof = verify_configured(topology, collective, tree.rows)
    commutes = "constraints: [commutative]\n" if collective in ("allreduce", "reduce") else ""
    hosts = topology.ranks
    several = any(hosts[tree.worker_of(one)] == hosts[node.worker] for one, node in tree.up) or any(
        hosts[one] == hosts[other] for one, other in tree.down
    )
    shares = f"parameters:\n  on_host: {_ON_HOST}\n" if several else ""
    on_host = "parameters->on_host" if several else "CONFIGURED_TREE_MESSAGES"
    unused = "" if several else "    (void)parameters;\n"
    numbers = {
        "worker": [worker for worker, _ in tree.rows],
        "first": list(accumulate((len(below) for _, below in tree.rows), initial=0)),
        "contributor": [one for _, below in tree.rows for one in below],
    }
    tables = "\n".join(
        f"static const int {name}[] = {{\n{_lines(values)}\n}};" for name, values in numbers.items()
    )
    return f"""{{#---
summary: {COLLECTIVES[collective].format(tree.name)}
wins: Short messages on a cluster that the tree was made for, or changed for by hand.
needs: tables
topology: {topology.hash}
{commutes}{shares}scratch: {_scratch(tree, collective)}
cost: {_COSTS[collective]}
reference: Bongo, Anshus and Bjørndalen 2004, §3
---#}}
{{{{ banner }}}}
#include "configured_tree.h"
{{% tables %}}
{_comment(tree, topology, proof)}
/* clang-format off */
enum {{ NODES = {len(tree.nodes)} }};

{tables}
/* clang-format on */
{{% endtables %}}

{{{{ contract }}}}
{{{{ signature }}}} {{
    static const char owner;
    const struct configured_tree tree = {{&owner, NODES, worker, first, contributor}};
{unused}    return coll_configured_tree_{collective}(call, cc, &tree, {on_host});
}}
"""


def _lines(values: Iterable[int]) -> str:
    text = ", ".join(map(str, values)) + ","
    return textwrap.fill(text, 88, initial_indent="    ", subsequent_indent="    ")


def _comment(tree: ConfiguredTree, topology: Topology, proof: Proof) -> str:
    about = f"The tree {tree.name}, proven: {'; '.join(proof.lines())}."
    lines = textwrap.wrap(about, 96, break_on_hyphens=False)
    if len(tree.nodes) <= _SHOWN:
        lines += ["", *_wrapped(tree_yaml(tree, topology).splitlines())]
    body = "\n".join(f" * {line}".rstrip() for line in lines)
    return f"/*\n{body}\n */"


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from textwrap.wrap(line, 96, subsequent_indent="      ", break_on_hyphens=False)


def _scratch(tree: ConfiguredTree, collective: str) -> str:
    """Return the formula of the most bytes that a rank allocates.

    Up to a limit there is room for each message that comes. Beyond it, there is room for one, and
    for one more at each node that has neither the rank's own operand nor one of its other nodes.
    """
    if collective in ("barrier", "bcast"):
        return "0"
    come: dict[int, int] = {}
    begin: dict[int, int] = {}
    for node in tree.nodes:
        givers = [tree.worker_of(one) for one in node.contributors]
        others = sum(giver != node.worker for giver in givers)
        come[node.worker] = come.get(node.worker, 0) + others
        begin[node.worker] = begin.get(node.worker, 0) + (others == len(givers))
    return f"max(min(n, {_AHEAD}) * {max(come.values())}, n * {1 + max(begin.values())})"
