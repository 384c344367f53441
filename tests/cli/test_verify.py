"""`stagegen verify`: proves what is in the C files, and sees every number that is changed there."""

from __future__ import annotations

import json
import random
import re
import shutil
from dataclasses import replace

import pytest
from click.testing import CliRunner

from stagegen.audit import audit_folder
from stagegen.catalogue import alltoall_schedules, load_catalogue
from stagegen.catalogue.cluster_schedules import schedules_of
from stagegen.cli.verify import command
from stagegen.errors import InputError, ScheduleError
from stagegen.generate.schedules import table_maker_of
from stagegen.schedule.alltoall.schedule import alltoall_phases
from stagegen.schedule.bounds.lower import COLLECTIVES
from stagegen.topology import restricted_to, topology_yaml
from tests.cli.folders import (
    ARRAY,
    CLUSTERS,
    edit,
    file_of_tables,
    own_routines,
    scheduled,
    write_folder,
)
from tests.cli.test_tune import stagegen
from tests.strategies import make_topology

FIGURE = CLUSTERS["fig-3-2"]
BARRIER, DUMMY, NONE, RECEIVER, ROUNDS, SENDER = (
    f"alltoall_aapc_{name}.tables.h"
    for name in ("barrier", "dummy", "none", "receiver", "rounds", "sender")
)
KARY = "bcast_topology_kary.tables.h"


@pytest.fixture(scope="module")
def figure(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify") / "figure"
    write_folder(FIGURE, folder)
    return folder


@pytest.mark.parametrize("topology", CLUSTERS.values(), ids=CLUSTERS)
def test_verify_proves_every_generated_table(topology, tmp_path):
    routines = write_folder(topology, tmp_path / "g")
    found = {proof.routine: proof for proof in audit_folder(tmp_path / "g")}
    assert set(found) == {routine.function for routine in routines}
    specific = {r.function for r in routines if "COLL_NEEDS_" in r.c_constraints}
    uses = {a.routine for a in load_catalogue().algorithms if a.has_tables and a.uses}
    without = {r.function for r in routines if f"{r.collective}_{r.algorithm}" in uses}
    assert {name for name, proof in found.items() if proof.proofs} == specific - without
    assert specific - without > set(scheduled(topology))
    for number, group in enumerate(topology.groups, 1):
        own = {r.function for r in routines if r.group == number}
        assert len(own) > 15
        count = restricted_to(topology, group.hosts).rank_count
        proofs = [(label, p) for name in own for label, p in found[name].proofs]
        assert {p.ranks for label, p in proofs if "of the depth-first order" not in label} <= {
            count,
            len(group.hosts),
        }
    labels = {name: [label for label, _ in proof.proofs] for name, proof in found.items()}
    # Those of the defaults and of the rules.
    assert "block_size 3" in labels["alltoall_aapc_receiver_partial"]
    assert len(labels["alltoall_aapc_receiver_partial"]) == 2
    assert {"window 1", "window 2", "window 4"} <= set(labels["alltoall_aapc_receiver_window"])
    assert labels["bcast_topology_kary"] == labels["reduce_topology_kary"] == ["arity 3", "arity 4"]
    assert {p.collective for _, p in found["reduce_topology_kary"].proofs} == {"reduce"}


def test_the_command_lists_what_is_proven_of_every_routine(figure):
    result = CliRunner().invoke(command, [str(figure)], catch_exceptions=False)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert len(lines) == len(list(audit_folder(figure)))
    (aapc,) = (line for line in lines if line.startswith("alltoall_aapc_receiver:"))
    assert "6 ranks, 9 phases (lower bound 9" in aapc
    assert "no two messages of a phase share a network edge" in aapc
    (tree,) = (line for line in lines if line.startswith("barrier_combining_tree:"))
    assert "of the depth-first order in cluster.c: 6 ranks" in tree
    assert "a ring around the order uses no network edge more than once" in tree
    assert "no network edge is used" not in tree  # by its own messages, which are not of a ring
    form = json.loads(CliRunner().invoke(command, [str(figure), "--format", "json"]).output)
    names = [routine["routine"] for routine in form["routines"]]
    assert names == [proof.routine for proof in audit_folder(figure)]


def edited(figure, tmp_path, name, old, new):
    folder = tmp_path / "g"
    shutil.copytree(figure, folder)
    edit(folder / "src" / name, old, new)
    return folder


@pytest.mark.parametrize(
    ("name", "old", "new", "part"),
    [
        (NONE, "    {0, 4, ", "    {0, 3, ", "rank 0, phase 0: sends 0→3"),
        (NONE, "    {0, 4, ", "    {0, 4.5, ", "'4.5', which is no number"),
        (NONE, "    {0, 4, ", "    {0, 04, ", "'04', which is no number"),
        (NONE, "    {0, 4, ", "    {0, ", "4 numbers, not 5"),
        (ROUNDS, "    {0, 4, ", "    {0, 3, ", "rank 0, phase 0: sends 0→3"),
        (SENDER, "SENDER", "RECEIVER", "of scheme receiver, not of sender"),
        (SENDER, "SENDER", "ANYBODY", "giver is AAPC_ANYBODY, not of"),
        (RECEIVER, "AAPC_RECEIVER", "AAPC_NO_TOKENS", "awaited_most is not"),
        (RECEIVER, ".awaited_most = ", ".awaited_most = 1", "awaited_most"),
        (RECEIVER, "    .owed_most", "    .due_most", "due_most is not known"),
        (RECEIVER, " = tokens,", " = steps,", "tokens is steps, not tokens"),
        (RECEIVER, " */\n", " */\nint more;\n", "'int more;"),
        (BARRIER, "barriers = true", "barriers = false", "of scheme none, not"),
        (DUMMY, "    .dummies = dummies,\n", "", "of scheme none, not of dummy"),
        (
            "alltoall_aapc_sender.c",
            '"aapc_senders.h"',
            '"aapc_streams.h"',
            "its tokens are of receiver, expected sender",
        ),
        ("alltoall_aapc_sender.c", "sender.tables.h", "none.tables.h", "not its file of tables"),
        (
            "alltoall_aapc_sender.c",
            '#include "alltoall',
            '// "alltoall',
            "does not include its file",
        ),
        ("alltoall_aapc_sender.c", "int alltoall_aapc", "int alltoall", "there is no function"),
        (KARY, " tree_3[]", " tree_5[]", "CHILDREN_MOST is 4, expected 5"),
        (KARY, " tree_3[]", " trees[]", "no proof for its tables: tree_4 trees"),
        (KARY, "const short", "const long", "is not understood"),
        (KARY, "CHILDREN_MOST = 4", "CHILDREN_MOST = 3", "CHILDREN_MOST is 3, expected 4"),
        ("aapc.h", "struct aapc_step {", "#define steps s\nstruct aapc_step {", "changes what"),
        ("coll.h", "\n#include", "\n#define short char\n#include", "changes what"),
        (
            "tree.h",
            "struct tree_node {",
            "#define tree_2 tree_3\nstruct tree_node {",
            "changes what",
        ),
        ("tree.h", "TREE_H\n#define TREE_H", "tree_2\n#define tree_2", "changes what"),
        (
            "cluster.c",
            "0, 0, 0, 0, 1, 2",
            "0, 0, 0, 0, 1, 1",
            "depth_before_place[5] disagrees with topology.yaml: it is 1, expected 2",
        ),
        (
            "cluster.c",
            '"n0", "n0"',
            '"n1", "n1"',
            "hosts[0] disagrees with topology.yaml: it is ('n1', 'n1'), expected",
        ),
        (
            "cluster.c",
            "0, 1, 2, 4",
            "1, 0, 2, 4",
            "host_of_position[0] disagrees with topology.yaml: it is 1, expected 0",
        ),
        (
            "cluster.c",
            "_hosts = 6",
            "_hosts = 5",
            "coll_cluster_hosts disagrees with topology.yaml: it is 5, expected 6",
        ),
        (
            "cluster.c",
            '"whole"',
            '"part"',
            "coll_cluster_group_names[0] disagrees with topology.yaml: it is part, ",
        ),
        (
            "cluster.c",
            "    0, 6,",
            "    0, 5,",
            "first_position[1] disagrees with topology.yaml: it is 5, expected 6",
        ),
        ("cluster.c", "    0, 1, 2, 3,", "    0, 1, 3, 2,", "place_of_host[], with hosts as ranks"),
        (
            "cluster.c",
            "    0, 1, 2,",
            "    0, 0, 2,",
            "it has 0, 0, 2, 3, 4, 5, expected each of 0 to 5 once",
        ),
        ("routines.c", "COLL_NEEDS_ORDER", "COLL_ANY", "ranks whose hosts are not known"),
        ("rules.c", ".window = 4", ".window = 0", "window is 0"),
        ("rules.c", ".window = 4", ".window = 32", "window is 32"),
        ("rules.c", ", .window = 4", "", "window is not given"),
        ("rules.c", ".arity = 4", ".arity = 5", "arity is 5, not of [3, 4]"),
        ("rules.c", ".block_size = 3", ".block_size = 03", "cannot be read"),
        ("rules.c", "INT_MAX", "8192", "does not come after"),
        ("rules.c", "{4096,", "{148,", "does not come after"),
        ("rules.c", "6, 1, 6, 6, 1, 1, 1,", "6, 1, 5, 6, 1, 1, 0,", "for 5 to 6 hosts"),
        ("rules.c", "6, 1, 6, 6, 1, 1, 1,", "6, 1, 6, 6, 1, 2, 0,", "1 to 2 ranks on each"),
        ("rules.c", "6, 1, 6, 6, 1, 1, 1,", "6, 1, 5, 6, 1, 1, 1,", "confirmed for shapes that"),
        ("rules.c", "6, 1, 6, 6, 1, 1, 1,", "6, 2, 6, 6, 1, 1, 1,", "does not serve the shape"),
        ("rules.c", "1, 1, 1, 2, bcast", "1, 1, 1, 2, alltoall", "list all tables of rules"),
        (
            "rules.c",
            "CLUSTER, 0, 6",
            "CLUSTER, 1, 6",
            "for group 1, which the topology does not have",
        ),
        ("rules.c", "KIND_CLUSTER, 0", "KIND_OTHER, -1", "serves only the whole cluster"),
        ("rules.c", "coll_routines[", "coll_routines[1", "belongs to another collective"),
        ("rules.c", "    {148,", "#if 0\n    {148,", "changes what"),
        ("routines.c", "{.arity = 3", "{.arity = 6", "arity is 6, not of [3, 4]"),
        ("routines.c", ".block_size = 4", ".block_size = 0", "block_size is 0"),
        (
            "routines.c",
            "     allgather_bruck",
            "     allgather_ring",
            "functions differ: only one of them has allgather_bruck",
        ),
        ("routines.c", '"bruck"', '"ring"', "is called ring of allgather"),
        ("routines.c", "&coll_routines[6]", "&coll_routines[5]", ", not allgather_native"),
    ],
)
def test_verify_names_the_file_and_the_fault(figure, tmp_path, name, old, new, part):
    folder = edited(figure, tmp_path, name, old, new)
    with pytest.raises(ScheduleError) as error:
        list(audit_folder(folder))
    assert name in str(error.value)
    assert part in str(error.value)


@pytest.mark.parametrize(
    ("end", "old", "new", "part"),
    [
        (".tables.h", "RING = 2", "RING = 3", "of the ring lr3, not of lr2"),
        (".tables.h", "RING = 2", "RING = 4", "LOGICAL_RING is 4, expected one of 1, 2, 3"),
        (".tables.h", "    0, ", "    1, ", "place_of[] contradicts ring["),
        (".c", "lr2.tables.h", "lr3.tables.h", "does not include its file"),
        (".c", '#include "allgather', '// "allgather', "does not include its file"),
    ],
)
def test_what_is_wrong_with_a_ring_is_named(tmp_path, end, old, new, part):
    routine = "allgather_logical_ring_lr2"
    write_folder(CLUSTERS["groups"], tmp_path, routine)
    edit(tmp_path / "src" / f"{routine}{end}", old, new)
    with pytest.raises(ScheduleError) as error:
        list(audit_folder(tmp_path))
    assert f"{routine}{end}: " in str(error.value)
    assert part in str(error.value)


LOCAL = re.compile(
    r"^(?:static .*?|    +(?:const |static )*(?:struct \w+|int|short|char|bool|size_t|MPI_\w+) )"
    r"\*?(\w+)(?= =|;|,|\(|\[)",
    re.MULTILINE,
)


def reworded(code: str, tables: str) -> str:
    """C with other comments, and other names of its own functions and of their variables."""
    code = re.sub(r"/\*.*?\*/", "/* Said otherwise, with no proof. */", code, flags=re.DOTALL)
    for name in {found[1] for found in LOCAL.finditer(code)}:
        if not re.search(rf"\b{name}\b", tables) and not re.search(rf"(?:\.|->){name}\b", code):
            code = re.sub(rf"\b{name}\b(?!\.h)", f"my_{name}", code)
    return re.sub(r"^( +)return", r"\1/* back */\n\1return", code, flags=re.MULTILINE)


def test_verify_reads_no_code_but_names_and_includes(tmp_path):
    """Of C files, only their names count, their functions' names, and what they include."""
    topology, folder = CLUSTERS["groups"], tmp_path / "g"
    routines = write_folder(topology, folder, added=own_routines(topology))
    wanted = list(audit_folder(folder))
    proven = {proof.routine for proof in wanted if proof.proofs}
    changed = set()
    for routine in (one.function for one in routines):
        file, data = folder / "src" / f"{routine}.c", file_of_tables(folder, routine)
        text = file.read_text()
        file.write_text(reworded(text, data.read_text() if data.is_file() else ""))
        changed |= {routine} if "my_" in file.read_text() else set()
        if data.is_file():
            data.write_text(re.sub(r"/\*.*?\*/", "/* Data. */", data.read_text(), flags=re.DOTALL))
    assert list(audit_folder(folder)) == wanted
    for one in (
        "allgather_logical_ring_lr2",
        "allreduce_configured_tree_flat",
        "allreduce_hierarchical",
        "alltoall_aapc_receiver_group_left",
        "alltoall_aapc_rounds",
        "alltoall_hierarchical",
        "alltoallv_pattern_zipf",
        "barrier_combining_tree",
        "bcast_topology_kary_group_one_each",
        "bcast_topology_linear",
        "reduce_configured_tree_flat",
        "reduce_topology_binary",
    ):
        assert one in proven & changed, one


@pytest.mark.parametrize(
    "routine", ["alltoallv_pattern_zipf", "barrier_configured_tree_flat", "reduce_topology_kary"]
)
def test_tables_that_are_gone_are_missed(tmp_path, routine):
    """Also if nothing includes them any more."""
    topology, folder = CLUSTERS["slots"], tmp_path / "g"
    write_folder(topology, folder, routine, added=own_routines(topology))
    assert [proof.routine for proof in audit_folder(folder) if proof.proofs] == [routine]
    file_of_tables(folder, routine).unlink()
    with pytest.raises(ScheduleError, match=rf"{routine}\.c: it includes \"{routine}\.tables\.h\""):
        list(audit_folder(folder))
    edit(folder / "src" / f"{routine}.c", f'#include "{routine}.tables.h"\n', "")
    with pytest.raises(ScheduleError, match=rf"{routine}\.c: .* has no file \"{routine}\.tables"):
        list(audit_folder(folder))


@pytest.mark.parametrize("routine", ["alltoall_aapc_none", "alltoall_aapc_receiver"])
def test_a_file_of_tables_has_its_routine(figure, tmp_path, routine):
    folder = tmp_path / "g"
    shutil.copytree(figure, folder)
    file = folder / "src" / f"{routine}.tables.h"
    shutil.copy(file, folder / "src" / "alltoall_other.tables.h")
    with pytest.raises(ScheduleError, match=r"alltoall_other\.tables\.h: routines.c does not name"):
        list(audit_folder(folder))
    (folder / "src" / "alltoall_other.tables.h").unlink()
    file.unlink()
    with pytest.raises(ScheduleError, match=rf"{routine}\.c: it includes \"{routine}\.tables\.h\""):
        list(audit_folder(folder))


def test_the_last_rule_of_a_size_is_native(figure, tmp_path):
    shutil.copytree(figure, tmp_path / "g")
    file = tmp_path / "g" / "src" / "rules.c"
    file.write_text(re.sub(r"    \{INT_MAX, .*/\* native \*/.*\n", "", file.read_text(), count=1))
    with pytest.raises(ScheduleError, match="must be the native routine, for every size"):
        list(audit_folder(tmp_path / "g"))


def test_rules_of_a_group_are_of_its_routines(tmp_path):
    write_folder(CLUSTERS["groups"], tmp_path / "g")
    file = tmp_path / "g" / "src" / "rules.c"
    text = file.read_text()
    for old, new, told in (
        ("1, 3, 2, 3, 3, 2, 2,", "1, 3, 1, 3, 3, 1, 1,", "for 1 ranks on each, but group 1 has 2"),
        ("CLUSTER, 2, 3, 2", "CLUSTER, 1, 3, 2", "tables of another group"),
        ("CLUSTER, 1, 3, 2", "CLUSTER, 3, 3, 2", "for group 3, which the topology does not have"),
    ):
        assert old in text
        file.write_text(text.replace(old, new))
        with pytest.raises(ScheduleError, match=told):
            list(audit_folder(tmp_path / "g"))


def test_another_topology_is_seen_and_status_1(figure, tmp_path):
    folder = tmp_path / "g"
    shutil.copytree(figure, folder)
    other = make_topology([1, 2, 3], [0, 0])
    (folder / "topology.yaml").write_text(topology_yaml(other))
    with pytest.raises(ScheduleError):
        list(audit_folder(folder))
    assert stagegen("verify", folder).returncode == 1


def test_what_is_no_generated_folder_is_status_2(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="not a generated folder"):
            list(audit_folder(folder))
        assert stagegen("verify", folder).returncode == 2


def test_each_routine_is_in_its_file_and_no_other(figure, tmp_path):
    routines = [
        path.name
        for path in (figure / "src").glob("*.c")
        if path.name.partition("_")[0] in COLLECTIVES
    ]
    shutil.copytree(figure, tmp_path / "g")
    sources = tmp_path / "g" / "src"
    for name in routines:
        (sources / name).rename(sources / f"{name}.away")
        with pytest.raises(ScheduleError, match=f"{name}: routines.c names it"):
            list(audit_folder(tmp_path / "g"))
        shutil.copy(sources / f"{name}.away", sources / name)
    shutil.copy(sources / "bcast_flat.c", sources / "bcast_other.c")
    with pytest.raises(ScheduleError, match=r"bcast_other.c: routines.c does not name it"):
        list(audit_folder(tmp_path / "g"))
    (sources / "bcast_other.c").unlink()
    shutil.copy(sources / "bcast_binomial.c", sources / "bcast_flat.c")
    with pytest.raises(ScheduleError, match=r"bcast_flat.c: there is no function bcast_flat"):
        list(audit_folder(tmp_path / "g"))


@pytest.mark.parametrize("name", ["routines.c", "rules.c", "cluster.c"])
def test_a_missing_file_of_the_build_is_reported(figure, tmp_path, name):
    folder = edited(figure, tmp_path, name, "", "")
    shutil.copy(figure / "src" / "rules.c", folder / "src" / "dispatch.c")
    (folder / "src" / name).unlink()
    with pytest.raises(InputError, match=f"src/ has no {name}"):
        list(audit_folder(folder))


@pytest.mark.parametrize("routine", scheduled(FIGURE))
def test_a_routine_that_needs_tables_has_them_and_the_whole_cluster(figure, tmp_path, routine):
    folder = tmp_path / "g"
    write_folder(FIGURE, folder, routine)
    file = file_of_tables(folder, routine)
    text = file.read_text()
    file.write_text(ARRAY.sub("", text))
    with pytest.raises(ScheduleError, match="no proof for its tables: it has none"):
        list(audit_folder(folder))
    file.write_text(text)
    edit(folder / "src" / "routines.c", "COLL_NEEDS_CLUSTER, 0", "COLL_ANY, 0")
    with pytest.raises(ScheduleError, match="lets it serve other ranks"):
        list(audit_folder(folder))


def forget_schedules():
    schedules_of.cache_clear()
    table_maker_of.cache_clear()


@pytest.mark.parametrize("seed", range(3))
def test_phases_in_any_order_hold_with_the_places_that_their_tokens_were_made_by(
    tmp_path, monkeypatch, seed
):
    """Where an edge carries two messages of a phase, which comes first decides on the tokens."""
    topology, chance = CLUSTERS["capacity 2"], random.Random(seed)
    made = alltoall_phases(topology)
    phases = [tuple(chance.sample(phase, len(phase))) for phase in made.phases]
    chance.shuffle(phases)
    shuffled = replace(made, phases=tuple(phases))
    forget_schedules()
    with monkeypatch.context() as patch:
        patch.setattr(alltoall_schedules, "alltoall_phases", lambda _: shuffled)
        write_folder(topology, tmp_path / "g")
    forget_schedules()
    proven = {proof.routine for proof in audit_folder(tmp_path / "g") if proof.proofs}
    assert proven >= {name for name in scheduled(topology) if "_aapc_" in name}
    file = tmp_path / "g" / "src" / "alltoall_aapc_receiver.tables.h"
    (places,) = (table for table in ARRAY.finditer(file.read_text()) if table[1] == "places")
    edit(file, places[0], "")
    with pytest.raises(ScheduleError, match="aapc_receiver"):
        list(audit_folder(tmp_path / "g"))


def test_what_is_proven_is_reported_for_each_value(figure, tmp_path):
    write_folder(
        CLUSTERS["slots"], tmp_path / "g", "alltoall_hierarchical", "bcast_topology_linear"
    )
    lines = [
        line
        for folder in (figure, tmp_path / "g")
        for line in CliRunner().invoke(command, [str(folder)]).output.splitlines()
    ]
    told = dict(line.split(": ", 1) for line in lines)
    for value in (1, 2, 4):
        assert re.search(
            rf"; window {value}: 6 ranks.*synchron", told["alltoall_aapc_sender_window"]
        )
    assert "a tree from each rank reaches all others, in" in told["bcast_topology_kary"]
    assert "arity 4: no rank has more than 4 children" in told["bcast_topology_kary"]
    assert "between hosts, ranks being their leaders: 5" in told["alltoall_hierarchical"]
