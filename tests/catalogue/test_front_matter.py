"""Mistakes in a template's front matter, each reported with its file; what every template has."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.catalogue.algorithm import NATIVE
from stagegen.catalogue.references import cited_in, load_works
from stagegen.data import TEMPLATES
from stagegen.errors import InputError
from stagegen.schedule import SCHEME_NAMES

CATALOGUE = load_catalogue()
WORKS = load_works()
BARE = "summary: It works.\ncost: α\nreference: Faraj 2006, §1"
GOOD = f"{BARE}\nscratch: 0"
PARAMETER = "parameters: {{segment: {{{}}}}}"
RANGE = "parameters: {{segment: {{meaning: a, values: {{{}}}, default: {}}}}}"
AROUND = "int coll_run_inside(void) { return 0; }\nint coll_run_reduction(void) { return 0; }\n"
WHOLE = "meaning: bytes, values: [1, 2], default: 1"


def write(root: Path, text: str, name: str = "alltoall/mine.c.j2") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def describe(root: Path, *collectives: str) -> None:
    """Write the descriptions of collectives, their native routines, and what runs around others."""
    write(root, f"{{#---\n{GOOD}\n---#}}\n", "libcoll/native.c.j2")
    write(root, AROUND, "libcoll/call.c")
    for name in collectives:
        text = (TEMPLATES / name / "collective.yaml").read_text(encoding="utf-8")
        write(root, text, f"{name}/collective.yaml")


def load(root: Path, front_matter: str, name: str = "alltoall/mine.c.j2"):
    describe(root, "alltoall")
    write(root, f"{{#---\n{front_matter}\n---#}}\nint x;\n", name)
    return load_catalogue(root)


@pytest.mark.parametrize(
    ("collective", "steps", "there"),
    [("alltoall", "ring", "leave it out"), ("allgather", "line", "ring, direct"),
     ("reduce", "ring", "line, binomial"), ("bcast", "doubling", "line, binomial")],
)  # fmt: skip
def test_steps_that_nothing_plans_for_the_collective_are_refused(
    tmp_path, collective, steps, there
):
    describe(tmp_path, collective)
    text = f"{{#---\n{GOOD}\npersistent: {steps}\n---#}}\nint x;\n"
    write(tmp_path, text, f"{collective}/mine.c.j2")
    with pytest.raises(InputError, match=f"no {steps} for {collective}; .*{there}"):
        load_catalogue(tmp_path)


# (front matter, line, what the message says)
MISTAKES = {
    "not YAML": ("summary: [1", 2, "not YAML"),
    "not YAML, third line": (f"{GOOD}\n  x: ]", 6, "not YAML"),
    "no mapping": ("- summary", 2, "must be a mapping"),
    "empty": ("# nothing", 2, "must be a mapping"),
    "no summary": ("cost: α\nreference: b", 1, "lacks `summary`"),
    "no cost": ("summary: a\nreference: b", 1, "lacks `cost`"),
    "no scratch": (BARE, 1, "lacks `scratch`"),
    "no reference": ("summary: a\ncost: b\nscratch: 0", 1, "lacks `reference`"),
    "blank summary": ("summary: ' '\ncost: α\nreference: b", 2, "`summary`: expected a text"),
    "cost a number": ("summary: a\ncost: 7\nreference: b", 3, "`cost`: expected a text"),
    "unknown key": (f"{GOOD}\nspeed: high", 6, "unknown in the front matter: speed"),
    "unknown constraint": (f"{GOOD}\nconstraints: [odd]", 6, "`constraints`: expected a list"),
    "constraint no list": (f"{GOOD}\nconstraints: unprepared", 6, "`constraints`: expected"),
    "parts no list": (f"{GOOD}\nparts: {{alltoall: n}}", 6, "`parts`: expected 1 to 2 entries"),
    "no part": (f"{GOOD}\nparts: []", 6, "`parts`: expected 1 to 2 entries"),
    "too many parts": (f"{GOOD}\nparts: [a: n, b: n, c: n]", 6, "`parts`: expected 1 to 2"),
    "part without a size": (f"{GOOD}\nparts: [alltoall]", 6, "`parts`:"),
    "size of hosts": (f"{GOOD}\nparts: [alltoall: m]", 6, "`parts`: expected a formula of"),
    "parameters and parts": (
        f"{GOOD}\nparts: [alltoall: n]\n" + PARAMETER.format(WHOLE), 6, "has no parameters, uses"
    ),
    "parts that need": (f"{GOOD}\nparts: [alltoall: n]\nneeds: order", 6, "uses or needs"),
    "unknown schedule": (f"{GOOD}\nneeds: magic", 6, "`needs`: expected one of aapc, hosts, ring"),
    "kind of nothing": (f"{GOOD}\nkind: none", 6, "`kind` is none, but has to be nothing without"),
    "no kind": (f"{GOOD}\nneeds: aapc", 1, "`kind` is None, but has to be none, dummy, sender,"),
    "kind of another": (f"{GOOD}\nneeds: ring\nkind: binary", 7, "is binary, but has to be lr2,"),
    "barriers of some ranks": (f"{GOOD}\nneeds: hosts\nkind: barrier", 7, "has to be none, sender"),
    "ranks no number": (f"{GOOD}\nmax_ranks: many", 6, "`max_ranks`: expected a number"),
    "negative size": (f"{GOOD}\nmin_bytes: -1", 6, "`min_bytes`: expected a number"),
    "size no number": (f"{GOOD}\nmax_bytes: 1KiB", 6, "`max_bytes`: expected a number"),
    "an aim of no model": (
        f"{GOOD}\nadaptive: {{group: 1, optimises: speed}}", 6, "expected `optimises` to be of α"
    ),
    "size a truth": (f"{GOOD}\nmax_bytes: true", 6, "`max_bytes`: expected a number"),
    "parameters a list": (f"{GOOD}\nparameters: [a]", 6, "`parameters`:"),
    "parameter incomplete": (
        f"{GOOD}\n" + PARAMETER.format("meaning: a"), 6, "`segment` needs meaning, values and"
    ),
    "parameter with more": (
        f"{GOOD}\n" + PARAMETER.format(WHOLE + ", unit: B"), 6, "and nothing else"
    ),
    "values descend": (
        f"{GOOD}\n" + PARAMETER.format("meaning: a, values: [2, 1], default: 1"), 6, "ascending"
    ),
    "no values": (
        f"{GOOD}\n" + PARAMETER.format("meaning: a, values: [], default: 1"), 6, "ascending"
    ),
    "no list": (
        f"{GOOD}\n" + PARAMETER.format("meaning: a, values: 7, default: 7"), 6, "`parameters`:"
    ),
    "range without an end": (
        f"{GOOD}\n" + RANGE.format("from: 1", 1), 6, "from and to"
    ),
    "range with more": (
        f"{GOOD}\n" + RANGE.format("from: 1, to: p, by: 2", 1), 6,
        "`segment` need from and to, and maybe times",
    ),
    "range from nothing": (
        f"{GOOD}\n" + RANGE.format("from: 0, to: p", 1), 6,
        "must begin `from` 1 or more",
    ),
    "range to hosts": (
        f"{GOOD}\n" + RANGE.format("from: 1, to: m", 1), 6,
        "and the names n, p",
    ),
    "range that stands still": (
        f"{GOOD}\n" + RANGE.format("from: 1, to: p, times: 1", 1),
        6, "`times` of `segment` must be 2 or more",
    ),
    "default before the range": (
        f"{GOOD}\n" + RANGE.format("from: 2, to: p", 1), 6,
        "default of `segment` is not one",
    ),
    "default beside the range": (
        f"{GOOD}\n" + RANGE.format("from: 2, to: p, times: 2", 6),
        6, "default of `segment` is not one",
    ),
    "default beyond the range": (
        f"{GOOD}\n" + RANGE.format("from: 2, to: 9", 10), 6,
        "default of `segment` is not one",
    ),
    "range of tables": (
        f"{GOOD}\nneeds: aapc\nkind: sender\n"
        "parameters: {window: {meaning: a, values: {from: 1, to: p}, default: 1}}", 8,
        "each value of `window` has a table here: list them",
    ),
    "default elsewhere": (
        f"{GOOD}\n" + PARAMETER.format("meaning: a, values: [1, 2], default: 3"), 6, "default of"
    ),
    "scratch of what": (f"{BARE}\nscratch: n * segment", 5, "`scratch`: expected a formula of"),
    "scratch a power": (f"{BARE}\nscratch: n ** p", 5, "max, min, and the names n, p, m, e"),
    "scratch a list": (f"{BARE}\nscratch: [n]", 5, "`scratch`: expected a formula"),
    "uses a text": (f"{GOOD}\nuses: bcast/flat", 6, "`uses`: expected a list of collective/"),
    "uses no path": (f"{GOOD}\nuses: [flat]", 6, "`uses`: expected a list of collective/"),
    "uses a number": (f"{GOOD}\nuses: [7]", 6, "`uses`: expected a list of collective/"),
    "dense without pack": (
        f"{GOOD}\nconstraints: [dense]", 6, "`dense`: alltoall/view.c has no pack and unpack"
    ),
    "variants a list": (f"{GOOD}\nvariants: [a]", 6, "`variants`: expected a mapping from names"),
    "no variants": (f"{GOOD}\nvariants: {{}}", 6, "`variants`: expected a mapping from names"),
    "variant a text": (f"{GOOD}\nvariants: {{a: b}}", 6, "`variants`: expected a mapping"),
    "variant's mistake": (
        f"{GOOD}\nvariants:\n  one:\n    cost: β\n  two:\n    max_ranks: many", 10, "`max_ranks`:"
    ),
    "common mistake": (
        f"{GOOD}\nmax_ranks: many\nvariants:\n  one:\n    cost: β", 6, "`max_ranks`: expected a"
    ),
    "variant lacks a key": (f"{BARE}\nvariants:\n  one:\n    cost: β", 6, "lacks `scratch`"),
    "unknown key of a variant": (
        f"{GOOD}\nvariants:\n  one:\n    cost: β\n    speed: high", 9, "unknown in the front matter"
    ),
    "traits a text": (f"{GOOD}\ntraits: fast", 6, "`traits`: expected a mapping from names"),
    "traits a list": (f"{GOOD}\ntraits: {{a: [1]}}", 6, "`traits`: expected a mapping from names"),
    "parameter's name": (
        f"{GOOD}\nparameters: {{Seg-ment: {{{WHOLE}}}}}", 6, "needs a name"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_with_its_file_and_line(tmp_path, text, line, message):
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    place = f"{tmp_path / 'alltoall/mine.c.j2'}:{line}:"
    assert str(caught.value).startswith(place + " ")
    assert message in str(caught.value)
    assert caught.value.exit_status == 2


def test_a_wrong_name_of_a_variant_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"`Own-Way` is no name of an algorithm: use a-z"):
        load(tmp_path, f"{GOOD}\nvariants:\n  Own-Way:\n    cost: β")


def test_dense_blocks_are_allowed_where_the_collective_packs(tmp_path):
    write(tmp_path, "{.measure = a, .pack = b, .unpack = c}", "alltoall/view.c")
    catalogue = load(tmp_path, f"{GOOD}\nconstraints: [dense]")
    assert catalogue.find("alltoall", "mine").constraints == ("dense",)


@pytest.mark.parametrize("text", ["int x;\n", "{# ordinary #}\n", "\n{#---\na: b\n---#}\n", ""])
def test_a_missing_front_matter_is_reported_with_its_file(tmp_path, text):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match="front matter is missing") as caught:
        load_catalogue(tmp_path)
    assert (caught.value.file, caught.value.line) == (str(path), 1)


def test_a_wrong_file_name_is_refused(tmp_path):
    with pytest.raises(InputError, match="My-Ring` is no name of an algorithm: use a-z"):
        load(tmp_path, GOOD, "alltoall/My-Ring.c.j2")


def test_every_collective_has_a_description(tmp_path):
    with pytest.raises(InputError, match=r"gather has no collective\.yaml") as caught:
        load(tmp_path, GOOD, "gather/flat.c.j2")
    assert caught.value.file == str(tmp_path / "gather/flat.c.j2")


def test_every_collective_has_its_native_routine(tmp_path):
    describe(tmp_path, "gather", "alltoall")
    assert load_catalogue(tmp_path).collectives == ("alltoall", "gather")
    with pytest.raises(InputError, match="there is a second alltoall/native"):
        load(tmp_path, GOOD, "alltoall/native.c.j2")


def test_one_parameter_has_one_meaning(tmp_path):
    load(tmp_path, f"{GOOD}\n" + PARAMETER.format(WHOLE))
    other = PARAMETER.format(WHOLE.replace("bytes", "elements"))
    with pytest.raises(InputError, match=r"`segment` has another meaning in .*mine\.c\.j2") as e:
        load(tmp_path, f"{GOOD}\n{other}", "alltoall/other.c.j2")
    assert e.value.file == str(tmp_path / "alltoall/other.c.j2")


def test_an_unknown_algorithm_is_reported_with_those_that_there_are():
    with pytest.raises(InputError, match=r"no algorithm 'nope' of bcast; there is .*binomial"):
        CATALOGUE.find("bcast", "nope")
    with pytest.raises(InputError, match="the collective is unknown"):
        CATALOGUE.find("gossip", "nope")


def test_a_file_with_an_underscore_is_no_algorithm(tmp_path):
    write(tmp_path, "{# shared #}", "alltoall/_shared.c.j2")
    assert {a.name for a in load(tmp_path, GOOD).algorithms} == {"mine", "native"}


VARIANTS = """
traits: {turns: 1}
variants:
  once:
  twice:
    summary: It works twice.
    traits: {turns: 2}
  bcast/thrice:
    cost: 3α
    max_ranks: 3
"""


def test_variants_are_algorithms_of_one_file_with_keys_in_common(tmp_path):
    describe(tmp_path, "bcast")
    catalogue = load(tmp_path, GOOD + VARIANTS)
    once, twice = (catalogue.find("alltoall", name) for name in ("once", "twice"))
    thrice = catalogue.find("bcast", "thrice")
    assert {a.template.as_posix() for a in (once, twice, thrice)} == {"alltoall/mine.c.j2"}
    assert "mine" not in {a.name for a in catalogue.algorithms}
    assert (once.summary, once.cost, once.traits) == ("It works.", "α", (("turns", 1),))
    assert (twice.summary, twice.cost, twice.traits) == ("It works twice.", "α", (("turns", 2),))
    assert (thrice.cost, thrice.max_ranks, once.max_ranks) == ("3α", 3, None)
    assert len({once.hash, twice.hash, thrice.hash}) == 3


def test_two_algorithms_of_one_name_are_refused(tmp_path):
    write(tmp_path, f"{{#---\n{GOOD}\nvariants:\n  mine:\n---#}}\n", "alltoall/other.c.j2")
    with pytest.raises(
        InputError, match=r"there is a second alltoall/mine, in .*/mine\.c\.j2"
    ) as e:
        load(tmp_path, GOOD)
    assert e.value.file == str(tmp_path / "alltoall/other.c.j2")


@pytest.mark.parametrize("algorithm", CATALOGUE.algorithms, ids=lambda a: a.routine)
def test_every_front_matter_says_what_when_and_where_from(algorithm):
    assert algorithm.summary.endswith(".")
    assert algorithm.cost
    if algorithm.name != NATIVE:
        assert algorithm.wins.endswith(".")
        assert all(len(line) <= 88 for line in algorithm.example.splitlines())
        cited = cited_in(algorithm.reference)
        assert cited
        assert set(cited) <= set(WORKS), "authors and year as in references.yaml"


#: The allgathers that STAR-MPI makes allreduces of in both ways (Faraj 2006, §4.3.1.1).
GATHERED = "bruck mesh_2d mesh_3d recursive_doubling ring"


def test_the_algorithms_of_the_dissertation_are_all_there():
    barriers = "{0} {0}_light_barrier {0}_mpi_barrier {0}_n_mpi_barriers".format
    meshes = "simple spreading_simple mesh_2d mesh_3d recursive_doubling bruck native"
    rings = "{0} {0}_light_barrier {0}_mpi_barrier".format
    wanted = {
        "alltoall": f"{meshes} {barriers('ring')} {barriers('pair')} throttled_spreading",
        "allgather": f"{meshes} {barriers('ring_direct')} {barriers('pair')} ring gather_bcast "
        "neighbour_exchange circulant",
        "allreduce": "reduce_bcast recursive_doubling rabenseifner "
        + " ".join(f"allgather_based_{x}" for x in GATHERED.split())
        + f" rab1_simple rab1_lr1 rab1_ring {' '.join(f'rab1_{x}' for x in GATHERED.split())} "
        + f"{rings('rab1_ring_direct')} {rings('rab2_ring')} "
        + " ".join(f"{x}_lr {x}_lr1" for x in rings("rab2_ring").split()),
        "bcast": "linear flat binomial knomial scatter_recursive_doubling_allgather "
        "scatter_ring_allgather pipelined_linear pipelined_binary pipelined_kary native",
    }
    for collective, names in wanted.items():
        assert set(names.split()) <= {a.name for a in CATALOGUE.of(collective)}


@pytest.mark.parametrize(
    ("needs", "constructions"),
    [("aapc", SCHEME_NAMES), ("ring", ("lr2", "lr3")), ("tree", ("binary", "kary"))],
)
def test_every_construction_has_its_algorithm(needs, constructions):
    """LR1 and linear trees need no table, binomial and flat trees no topology."""
    found = {a.construction for a in CATALOGUE.algorithms if a.needs == needs}
    assert found == set(constructions)


def test_tokens_come_with_windows_and_segments_too():
    """A routine whose receivers give tokens has two streams, and these parameters."""
    parameters = {
        a.name: {p.name for p in a.parameters}
        for a in CATALOGUE.algorithms
        if "dense" in a.constraints and a.needs in ("aapc", "hosts")
    }
    streams = {"receives_ahead", "segment_size", "tail"}
    assert parameters == {
        "aapc_barrier_partial_receiver": {*streams, "block_size"},
        "aapc_receiver": streams,
        "aapc_receiver_partial": {*streams, "block_size"},
        "aapc_receiver_window": {*streams, "window"},
        "aapc_rounds": {"in_flight", "segment_size"},
        "aapc_sender_window": {"window", "segment_size"},
        "hierarchical": streams,
    }


@pytest.mark.parametrize("ranks", [2, 4, 5])
def test_an_algorithm_works_up_to_its_most_ranks_and_for_powers_of_two_if_it_asks(tmp_path, ranks):
    catalogue = load(tmp_path, f"{GOOD}\nmax_ranks: 4\nconstraints: [power_of_two]")
    assert catalogue.find("alltoall", "mine").works_for(ranks) == (ranks in (2, 4))


def test_a_part_of_no_collective_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no collective gather") as caught:
        load(tmp_path, f"{GOOD}\nparts: [gather: n]")
    assert caught.value.file == str(tmp_path / "alltoall/mine.c.j2")


def test_a_part_may_be_of_the_same_collective(tmp_path):
    mine = load(tmp_path, f"{GOOD}\nparts: [alltoall: n // 2, alltoall: n]").find(
        "alltoall", "mine"
    )
    assert [(part.collective, part.size.text) for part in mine.parts] == [
        ("alltoall", "n // 2"), ("alltoall", "n")
    ]  # fmt: skip
