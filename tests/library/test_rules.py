"""The rules in C find what the decision table says, for any communicator and size."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass, replace

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.generate import Build, Renderer, Toolchain
from stagegen.generate.routines import Routine
from stagegen.generate.sources import runtime_values
from stagegen.library.rules import c_tables
from stagegen.measure.records import Candidate
from stagegen.tune import DecisionTable, Rule, Table
from stagegen.tune.decision import CLUSTER, HOSTS, ONE_HOST, OTHER
from stagegen.tune.ranges import of_all_shapes
from stagegen.tune.shapes import Shape
from tests.strategies import make_topology

CATALOGUE = load_catalogue()
TOPOLOGY = make_topology([2, 2], [0])
GROUPS = ["whole", "left", "right"]
NAMES = ("native", "one", "three", "two")
OWN = {CLUSTER: Shape(20, 2), "group left": Shape(8, 1), "group right": Shape(1, 8)}
BUILD = Build.of(TOPOLOGY, CATALOGUE, CATALOGUE.algorithms)

#: Reads `collective kind group hosts ranks_per_host bytes`, prints the names of all that may serve,
#: in order.
PROGRAM = """
#include <stdio.h>
#include <string.h>
#include "dispatch.h"

const struct coll_routine coll_routines[] = {%s};

int main(void) {
    int collective, kind, group, hosts, ranks;
    long bytes;
    while (scanf("%%d %%d %%d %%d %%d %%ld", &collective, &kind, &group, &hosts, &ranks,
                 &bytes) == 6) {
        struct coll_comm cc = {
            .kind = (enum coll_kind)kind, .group = group, .hosts = hosts, .ranks_per_host = ranks};
        coll_find_rule((enum coll_collective)collective, &cc, (MPI_Aint)(97 - bytes %% 97));
        const struct coll_rule *rule =
            coll_find_rule((enum coll_collective)collective, &cc, (MPI_Aint)bytes);
        while (rule != NULL && strcmp(rule->routine->name, "native") != 0)
            printf("%%s ", (rule++)->routine->name);
        printf("native\\n");
    }
    return 0;
}
"""


@dataclass(frozen=True)
class Question:
    """A communicator and a message."""

    collective: str
    kind: str
    shape: Shape
    bytes: int

    def line(self) -> str:
        group = {CLUSTER: 0, "group left": 1, "group right": 2}.get(self.kind, -1)
        kind = {OTHER: 1, HOSTS: 2, ONE_HOST: 1 + self.bytes % 2}.get(self.kind, 3)
        number = CATALOGUE.collectives.index(self.collective)
        shape = f"{self.shape.hosts} {self.shape.ranks_per_host}"
        return f"{number} {kind} {group} {shape} {self.bytes}\n"


def some_rules(chance: random.Random) -> tuple[Rule, ...]:
    starts = sorted({0, *(chance.randint(1, 99) for _ in range(chance.randint(0, 40)))})
    made = []
    for start in starts:
        choice, *others = chance.sample(NAMES, chance.randint(1, 4))
        kept = [] if choice == "native" else [name for name in others if name != "native"]
        made.append(Rule(start, Candidate(choice), None, tuple(map(Candidate, kept))))
    return tuple(made)


def some_tables(chance: random.Random, collective: str) -> list[Table]:
    kinds = chance.sample(sorted(OWN), chance.randint(0, 3))
    shapes = [(kind, OWN[kind]) for kind in sorted(kinds)]
    for _ in range(chance.randint(1, 6)):
        shape = Shape(chance.randint(2, 20), chance.randint(1, 8))
        shapes += [(HOSTS, shape), (OTHER, shape)]
    for ranks in chance.sample(range(2, 9), chance.randint(0, 2)):
        shapes.append((ONE_HOST, Shape(1, ranks)))
    return [
        Table.exactly(collective, kind, shape.ranks, shape.hosts, some_rules(chance))
        for kind, shape in dict.fromkeys(shapes)
    ]


def some_decision(chance: random.Random) -> DecisionTable:
    collectives = chance.sample(CATALOGUE.collectives, 5)
    tables = [t for name in collectives for t in of_all_shapes(name, some_tables(chance, name))]
    return DecisionTable("c", "0" * 64, "1" * 64, True, tuple(tables))


def routines() -> list[Routine]:
    """Routines of every collective by the names that the tables choose from."""
    any_one = BUILD.routines[0]
    rows = [(collective, name) for collective in CATALOGUE.collectives for name in NAMES]
    return [
        replace(any_one, algorithm=name, collective=collective, group=0, index=index)
        for index, (collective, name) in enumerate(rows)
    ]


def test_tables_of_one_name_have_the_same_rules():
    """What was learned of a shape is in its confirmed table alone, not in the predicted one."""
    shape = Shape(4, 2)
    rules = (Rule(0, Candidate("native")), Rule(64, Candidate("one")))
    made = of_all_shapes("bcast", [Table.exactly("bcast", HOSTS, shape.ranks, shape.hosts, rules)])
    learned = (*rules, Rule(4096, Candidate("two")))
    tables = tuple(replace(t, rules=learned) if t.confirmed else t for t in made)
    found = c_tables(DecisionTable("c", "0" * 64, "1" * 64, True, tables), routines(), GROUPS)
    assert len({one.rules for one in found}) == 2
    by_name = {one.c_name: one.rules for one in found}
    assert all(by_name[one.c_name] == one.rules for one in found)


def compiled(decision: DecisionTable, folder):
    renderer = Renderer("a test", "c", "0" * 64, CATALOGUE.hash)
    values = {
        **runtime_values(BUILD),
        "tables": c_tables(decision, routines(), GROUPS),
    }
    for name in ("catalogue.h", "coll.h", "dispatch.h", "rules.c"):
        (folder / name).write_text(renderer.made(f"libcoll/{name}", values))
    rows = (f'{{.name = "{one.algorithm}"}}' for one in routines())
    (folder / "main.c").write_text(PROGRAM % ", ".join(rows))
    command = [
        Toolchain.find().mpicc,
        "-std=c11",
        "-D_GNU_SOURCE",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unused",
    ]
    command += ["-o", str(folder / "main"), "main.c", "rules.c"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return folder / "main"


def asked(kind: str, chance: random.Random) -> list[Shape]:
    """Shapes of communicators; those of the cluster and of a group have always the same."""
    if kind in OWN:
        return [OWN[kind]] * 3
    hosts = [1] if kind == ONE_HOST else [2, 3, 4, 5, 6, 8, 11, 16, 23, 40, 2000]
    return [Shape(n, ranks) for n in hosts for ranks in (1, 2, 3, 4, 7, chance.randint(1, 99))]


def expected(decision: DecisionTable, question: Question) -> str:
    table = decision.table(question.collective, question.kind, question.shape)
    if table is None:
        return "native"
    return " ".join(option.algorithm for option in table.rule(question.bytes).options)


@pytest.mark.mpi
@pytest.mark.parametrize("seed", range(3))
def test_the_dispatcher_s_rules_are_the_decision_table(seed, tmp_path):
    chance = random.Random(seed)
    decision = some_decision(chance)
    program = compiled(decision, tmp_path)
    kinds = (CLUSTER, "group left", "group right", ONE_HOST, HOSTS, OTHER)
    questions = [
        Question(name, kind, shape, chance.randint(0, 120))
        for name in CATALOGUE.collectives
        for kind in kinds
        for shape in asked(kind, chance)
    ]
    text = "".join(question.line() for question in questions)
    result = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    answers = result.stdout.splitlines()
    assert answers == [expected(decision, question) for question in questions]
    assert {"native", "one native", "two native"} < set(answers)


def test_rules_without_any_table_compile_without_a_warning_and_leave_all_to_native(tmp_path):
    """Such as of a tuning for patterns alone, if the native routine won with all of them."""
    program = compiled(DecisionTable("c", "0" * 64, CATALOGUE.hash, True, ()), tmp_path)
    asked = "0 3 0 4 1 1024\n"
    done = subprocess.run([program], input=asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["native"]
