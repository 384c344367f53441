"""Routines for the patterns of a file: a template for each way to order a pattern's messages.

They are templates like those that a user adds (:mod:`stagegen.parts`), so that a generated folder
has copies of them, with their tables, and can be made again without the file of patterns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from stagegen.catalogue import RankGroup, groups_of
from stagegen.catalogue.cluster_schedules import LEADER_BYTES, why_undivided
from stagegen.catalogue.templates import Root
from stagegen.errors import InputError, NotFoundError
from stagegen.generate.tables import aapc_tables, numbers, rank_lines
from stagegen.patterns import Pattern
from stagegen.patterns.model import DEFAULT_SCALES
from stagegen.schedule import PATTERN_CONSTRUCTIONS, PatternSchedule, aggregated, pattern_schedule
from stagegen.schedule.alltoall.phases.hierarchy import hierarchy
from stagegen.schedule.patterns.rows import Cut, pattern_rows
from stagegen.schedule.verify import Proof, verify
from stagegen.topology import WHOLE, Topology

#: How the names of these algorithms begin, and the label of copies of their templates.
PREFIX, LABEL = "pattern_", "patterns"
#: The largest block that a table holds, in bytes.
BLOCK_MOST = 2**31 - 1

_FRONT = """\
{{#---
summary: {summary}
wins: "{wins}"
parameters:
  receives_ahead: {{meaning: receives that are posted at a time, values: [1, 2, 4], default: 2}}
  segment_size: {{meaning: bytes of a segment, values: [8192, 16384, 32768], default: 8192}}
  tail:
    meaning: bytes of a message that may be under way when its tokens leave
    values: [0, 4096, 8192]
    default: 4096
constraints: [dense]
needs: tables
topology: {topology}
scratch: {scratch}
cost: (load of the bottleneck) × β + (pieces of the busiest rank) × α
reference: Karwande, Yuan and Lowenthal 2003, with pieces and tokens of our own
---#}}
"""

_INCLUDE = '{% include "alltoallv/_pattern.c.j2" %}\n'
_INCLUDE_BY_HOST = '{% include "alltoallv/_pattern_by_host.c.j2" %}\n'

#: How the name of a routine ends whose schedule is between hosts: one message has the blocks of all
#: ranks of two hosts.
BY_HOST = "by-host"
#: Calls of a pattern may have blocks half as long again as those that tuning measures
#: (recognition.c). Leaders carry all of them.
_AGAIN = 1.5
#: A leader holds so many copies of its ranks' blocks (`templates/engines/vector_leaders.c`).
_COPIES = 4


def algorithm_name(pattern: Pattern, construction: str = "segments") -> str:
    """Return the name of the algorithm that carries out a pattern's schedule."""
    name = re.sub(r"[^a-z0-9]+", "_", pattern.name.lower()).strip("_") or "unnamed"
    suffix = "" if construction == "segments" else f"_{construction.replace('-', '_')}"
    return f"{PREFIX}{name}{suffix}"


def algorithm_names(pattern: Pattern) -> tuple[str, ...]:
    """Return the names of all algorithms that carry out an order of a pattern's own messages."""
    constructions = (*PATTERN_CONSTRUCTIONS, BY_HOST) if pattern.has_order else ()
    return tuple(algorithm_name(pattern, construction) for construction in constructions)


def _unheard(_text: str) -> None:
    """Tell nobody."""


def pattern_root(
    topology: Topology,
    patterns: Sequence[Pattern],
    source: str,
    say: Callable[[str], None] = _unheard,
    scales: Sequence[float] = DEFAULT_SCALES,
) -> Root:
    """Return a template for each order of each pattern; orders that are equal have one template.

    Args:
        topology: the cluster.
        patterns: each an alltoallv on all ranks of the cluster, or of its group, and no class.
        source: what messages call the file of the patterns.
        say: is told which orders are not possible on this cluster, and why; each once.
        scales: the factors of tuning for patterns that have none of their own.

    Raises:
        InputError: a pattern is no alltoallv on these ranks, a block is too long, or two names
            become one.
    """
    files: dict[str, str] = {}
    owner: dict[str, str] = {}
    lacking: dict[str, None] = {}
    for pattern in patterns:
        if int(pattern.array.max(initial=0)) > BLOCK_MOST:
            raise InputError(
                f"the pattern {pattern.name!r} has a block above {BLOCK_MOST} B", source
            )
        ranks = _ranks_of(topology, pattern)
        own = algorithm_names(pattern)
        # The suffix tells the functions of a group's routines apart; names may end likewise.
        names = dict.fromkeys([*own, *(f"{name}{ranks.suffix}" for name in own)])
        for name in names:
            if name in owner:
                both = f"the patterns {owner[name]!r} and {pattern.name!r}"
                raise InputError(f"{both} both become {name}; rename one", source)
        owner |= dict.fromkeys(names, pattern.name)
        scaled = pattern if pattern.scales else replace(pattern, scales=tuple(scales))
        files |= _files(ranks, scaled, lacking)
    for text in lacking:
        say(text)
    return Root(source, files, LABEL)


def _ranks_of(topology: Topology, pattern: Pattern) -> RankGroup:
    """Return the ranks that have a pattern."""
    name = pattern.group or WHOLE
    return next(group for group in groups_of(topology) if group.name == name)


def _files(ranks: RankGroup, pattern: Pattern, lacking: dict[str, None]) -> dict[str, str]:
    """Return the templates of a pattern; add to `lacking` which orders have none, and why."""
    topology = ranks.topology
    seen: set[object] = set()
    files: dict[str, str] = {}
    for construction in ("segments", *(one for one in PATTERN_CONSTRUCTIONS if one != "segments")):
        try:
            schedule = pattern_schedule(topology, pattern, construction)
        except NotFoundError as error:  # a link is too slow, or there are too many messages
            lacking[f"no routine of the schedule {construction}: {error}"] = None
            continue
        order = schedule.phases, schedule.waits
        if schedule.phases and order not in seen:
            seen.add(order)
            path = f"alltoallv/{algorithm_name(pattern, construction)}.c.j2"
            about = f"go in an order that overloads no link ({construction}); other blocks follow."
            files[path] = _template(topology, pattern, about, schedule) + _INCLUDE
    try:
        return {**files, **_by_host(ranks, pattern)}
    except NotFoundError as error:
        lacking[f"no routine by host: {error}"] = None
        return files


def _by_host(of: RankGroup, pattern: Pattern) -> dict[str, str]:
    """Return the template of the schedule between hosts, where some host has several ranks.

    There is none if all data stays on its host, or if leaders lack the memory for the blocks.
    """
    topology = of.topology
    if why_undivided(topology, "hosts", topology.ranks) is not None:
        return {}
    largest = int(pattern.array.max())
    hosts = hierarchy(topology)
    ranks = max(map(len, hosts.members))
    if largest > LEADER_BYTES // (_COPIES * ranks * topology.rank_count):
        return {}
    schedule = pattern_schedule(*aggregated(topology, pattern))
    if not schedule.phases:
        return {}
    about = (
        "go from host to host, those of all ranks of a host as one, in an order that overloads "
        "no link; other blocks follow."
    )
    longest = min(math.ceil(_AGAIN * max(1.0, *pattern.scales) * largest), BLOCK_MOST)
    names = (
        f"enum {{ HOSTS = {len(hosts.leaders)}, GROUP = {of.number} }};\n",
        "/* The first rank of each host. */",
        _array("leader_of", numbers(hosts.leaders)),
        "/* In the tables from here on, positions are hosts. */",
    )
    made = _template(
        hosts.topology, pattern, about, schedule,
        of=topology, scratch=f"4 * m * p * {longest}", names=names,
    )  # fmt: skip
    text = f"{made}{{% set longest = {longest} %}}\n{_INCLUDE_BY_HOST}"
    return {f"alltoallv/{algorithm_name(pattern, BY_HOST)}.c.j2": text}


def _template(
    topology: Topology,
    pattern: Pattern,
    about: str,
    schedule: PatternSchedule,
    of: Topology | None = None,
    scratch: str = "2 * p",
    names: Sequence[str] = (),
) -> str:
    """Return the front matter and the tables of a template, once its schedule is proven.

    Args:
        topology: of the schedule's positions.
        pattern: of the ranks.
        about: what its messages do.
        schedule: its order.
        of: the ranks that the routine is for; None: the schedule's positions.
        scratch: bytes that a rank allocates.
        names: lines before the tables.

    Raises:
        ScheduleError: the schedule fails its proof.
    """
    proof = verify(topology, schedule)
    front = _FRONT.format(
        summary=f"The messages of the pattern {plain_name(pattern.name)} {about}",
        wins="Calls whose counts are about those of the pattern.",
        topology=(of or topology).hash,
        scratch=scratch,
    )
    tables = "\n".join((*_about(proof), *names, *_tables(schedule)))
    return f"{front}{{% set tables %}}\n{tables}\n{{% endset %}}\n"


def plain_name(name: str) -> str:
    """Return a name without what means something in YAML, Jinja or C."""
    return re.sub(r"[^A-Za-z0-9_ .+-]+", "-", name)


def _about(proof: Proof) -> Iterator[str]:
    lines = [f" * proven: {line}" for line in proof.lines()]
    yield "\n".join(("/*", *lines, " */"))


def _tables(schedule: PatternSchedule) -> Iterator[str]:
    """Yield the tables; docs/interfaces.md (Generated C tables) says what they mean."""
    rows, cuts = pattern_rows(schedule)
    made = aapc_tables(rows)
    yield "/* Bytes of each block of the pattern, by senders. */"
    yield _array("sizes", numbers(size for row in schedule.sizes for size in row))
    yield "/* The first step of each position, and at the end the number of all steps. */"
    yield _array("first_step", made["first_step"])
    yield "/* Phase, to, from, number of awaited tokens, number of owed tokens. */"
    yield _array("steps", made["steps"], "struct aapc_step")
    yield "/* Of each step: the part that is sent, of how many; the same of what is received. */"
    yield _array("parts", rank_lines(map(_cut_lines, cuts)), "struct pattern_step")
    yield "/* The place of each step's message in its phase. */"
    yield _array("places", made["places"])
    yield "/* The first token of each position, and at the end the number of all tokens. */"
    yield _array("first_token", made["first_token"])
    yield "/* Peer, phase of the message at the other end, windows. */"
    yield _array("tokens", made["tokens"], "struct aapc_token")
    yield f"""\
static const struct aapc_schedule schedule = {{
    .phases = {made["phase_count"]},
    .giver = AAPC_RECEIVER,
    .blocks = false,
    .barriers = false,
    .first_step = first_step,
    .steps = steps,
    .awaited_most = {made["awaited_most"]},
    .owed_most = {made["owed_most"]},
    .first_token = first_token,
    .tokens = tokens,
}};"""


def _array(name: str, body: str, c_type: str = "int") -> str:
    return f"static const {c_type} {name}[] = {{\n{body}\n}};\n"


def _cut_lines(cuts: Iterable[Cut]) -> Iterator[str]:
    for cut in cuts:
        yield f"    {{{', '.join(map(str, cut))}}},"
