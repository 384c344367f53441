"""The hash of a routine changes with what is compiled, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagegen.catalogue import load_catalogue
from stagegen.catalogue.c_tokens import tokens
from stagegen.errors import InputError

NATIVE = """{#---
summary: The MPI library's own.
constraints: [unprepared]
cost: unknown
reference: none
scratch: 0
---#}
{{ banner }}
"""
RING = """{#---
summary: One after the other.
parameters:
  segment_size: {meaning: bytes of a segment, values: [1024, 4096], default: 4096}
cost: (p - 1) α
reference: Faraj 2006, section 4.1
scratch: n
---#}
{% include "_shared/_loop.c.j2" %}
{{ banner }}
#include "engine.h"
/* Around the ring. */
int ring(void) {
    return 1; // done
}
"""
LOOP = '{# Shared. #}\n#include "coll.h"\nconst char *text = "a /* no comment */  b";\n'
COLL = """/* What all share. */
enum coll_kind { COLL_FIRST, COLL_SECOND, COLL_TAG = 1 };
struct coll_comm {
    int rank;
};
int coll_copy(int count);
#define COLL_TRY(expression) \\
    if (expression) return 1
static inline int coll_peer(int rank) { return rank; }
static inline int coll_unasked(int rank) { return rank; }
"""
DATA = """#include "coll.h"
enum { PIECE = 64 };
static const int limits[] = {1, 2};
static const int most = 9;
static int fits(int count) { return count < limits[1] * PIECE; }
int coll_copy(int count) { return fits(count); }
int coll_other(int count) { return count + most; }
"""
OTHER_DATA = "static int fits(int count) { return count < 3; }\n"
CALL = """int coll_run(void) { return coll_run_inside(); }
int coll_run_inside(void) { return 0; }
int coll_run_reduction(void) { return 0; }
"""
DESCRIPTION = """summary: Every rank gets the message of the root.
arguments: [buffer, count, datatype, root, comm]
send: nothing
recv: one
size: whole
bound: bcast
view: the message
"""
REDUCTION = """summary: The root gets the elements of all ranks, combined by an operation.
arguments: [sendbuf, recvbuf, count, datatype, op, root, comm]
send: one
recv: one
in_place: sendbuf
size: whole
bound: reduce
view: the elements
"""
DIRECT = """{#---
summary: All at once.
cost: α
reference: Faraj 2006, section 4.2
scratch: 0
---#}
{{ banner }}
int direct(void) { return 1; }
"""
VIEW = "static void view(void) { COLL_TRY(coll_copy(COLL_TAG)); }\n"
FILES = {
    "bcast/collective.yaml": DESCRIPTION,
    "reduce/collective.yaml": REDUCTION,
    "reduce/direct.c.j2": DIRECT,
    "reduce/view.c": "static void view(void) {}\n",
    "libcoll/native.c.j2": NATIVE,
    "bcast/ring.c.j2": RING,
    "bcast/view.c": VIEW,
    "bcast/_other.c.j2": "int other;\n",
    "_shared/_loop.c.j2": LOOP,
    "engines/engine.h": '#include "inner.h"\nint turn(void); /* Turns. */\n',
    "engines/engine.c": '#include "engine.h"\nint turn(void) { return inner() + coll_peer(1); }\n',
    "engines/inner.h": "int inner(void);\n",
    "engines/inner.c": '#include "inner.h"\nint inner(void) { return 7; }\n',
    "engines/unused.c": "int unused;\n",
    "libcoll/coll.h": COLL,
    "libcoll/data.c": DATA,
    "libcoll/more.c": OTHER_DATA,
    "libcoll/call.c": CALL,
}


def hashes(root: Path, **changes: tuple[str, str]) -> dict[str, str]:
    """Return the hashes of templates in which a file has one text replaced by another."""
    by_stem = {
        Path(name).name.partition(".")[0].strip("_"): name for name in sorted(FILES, reverse=True)
    }
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for stem, (old, new) in changes.items():
        path = root / by_stem[stem]
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
    return dict(load_catalogue(root).hashes)


@pytest.fixture
def before(tmp_path):
    return hashes(tmp_path / "before")


@pytest.mark.parametrize(
    "change",
    [
        {"ring": ("/* Around the ring. */", "/* Once around,\n   and home. */")},
        {"ring": (" // done", "")},
        {"ring": ("{\n    return 1;", "{ return 1 ;")},
        {"ring": ("One after the other.", "In turn.")},
        {"ring": ("bytes of a segment", "bytes of each segment")},
        {"ring": ("section 4.1", "section 4.2")},
        {"loop": ("{# Shared. #}\n", "")},
        {"loop": ("const char", "{% tables %}\nconst char")},
        {"ring": ("    return 1; // done\n", "{% tables %}\n    return 1;\n{% endtables %}\n")},
        {"collective": ("Every rank gets", "All ranks get")},
        {"collective": ("bound: bcast", "bound: reduce")},
        {"coll": ("/* What all share. */", "/* What all routines share. */\n")},
    ],
)
def test_what_only_people_read_changes_no_hash(before, tmp_path, change):
    assert hashes(tmp_path / "after", **change) == before


@pytest.mark.parametrize(
    "change",
    [
        {"other": ("int other;", "long other;")},
        {"unused": ("int unused;", "long unused;")},
        {"coll": ("int rank;\n", "int rank;\n    int told;\n")},
        {"coll": ("COLL_SECOND,", "COLL_SECOND, COLL_THIRD = 7,")},
        {"coll": ("int coll_copy(int count);", "int coll_new(void);\nint coll_copy(int count);")},
        {"coll": ("coll_unasked(int rank) { return rank", "coll_unasked(int rank) { return 7")},
        {"data": ("count + most", "count - most")},
        {"data": ("most = 9", "least = 9")},
        {"more": ("count < 3", "count < 4")},
        {"call": ("int coll_run(void) { return", "int coll_run(void) { return 1 +")},
    ],
)
def test_what_no_routine_reaches_changes_no_hash(before, tmp_path, change):
    assert hashes(tmp_path / "after", **change) == before


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"ring": ("return 1", "return 2")}, {"bcast/ring"}),
        ({"ring": ("values: [1024, 4096]", "values: [4096]")}, {"bcast/ring"}),
        ({"ring": ("default: 4096", "default: 1024")}, {"bcast/ring"}),
        ({"ring": ("scratch: n", "scratch: 2 * n")}, {"bcast/ring"}),
        ({"loop": ("*/  b", "*/ b")}, {"bcast/ring"}),
        ({"engine": ("return inner()", "return 1 + inner()")}, {"bcast/ring"}),
        ({"inner": ("return 7", "return 8")}, {"bcast/ring"}),
        (
            {"native": ("{{ banner }}", "{{ banner }} int n;")},
            {"bcast/native", "reduce/native"},
        ),
        ({"view": ("view(void)", "view(int n)")}, {"bcast/native", "bcast/ring"}),
        ({"collective": ("recv: one", "recv: all")}, {"bcast/native", "bcast/ring"}),
        ({"coll": ("int rank) { return rank", "int rank) { return rank + 1")}, {"bcast/ring"}),
        ({"coll": ("if (expression)", "while (expression)")}, {"bcast/native", "bcast/ring"}),
        ({"coll": ("COLL_TAG = 1", "COLL_TAG = 2")}, {"bcast/native", "bcast/ring"}),
        ({"data": ("PIECE = 64", "PIECE = 128")}, {"bcast/native", "bcast/ring"}),
        ({"data": ("{1, 2}", "{1, 3}")}, {"bcast/native", "bcast/ring"}),
        ({"data": ("return count <", "return count <=")}, {"bcast/native", "bcast/ring"}),
        (
            {
                "call": (
                    "int coll_run_inside(void) { return 0",
                    "int coll_run_inside(void) { return 1",
                )
            },
            {"bcast/ring", "reduce/direct"},
        ),
        (
            {
                "call": (
                    "int coll_run_reduction(void) { return 0",
                    "int coll_run_reduction(void) { return 1",
                )
            },
            {"reduce/direct"},
        ),
    ],
)
def test_what_is_compiled_changes_the_hash_of_its_routines(before, tmp_path, change, changed):
    after = hashes(tmp_path / "after", **change)
    assert {name for name, value in after.items() if value != before[name]} == changed


def test_the_hash_does_not_depend_on_the_folder(before, tmp_path):
    assert hashes(tmp_path / "elsewhere") == before


@pytest.mark.parametrize("name", ["coll_run_inside", "coll_run_reduction"])
def test_what_runs_around_routines_has_to_be_there(tmp_path, name):
    with pytest.raises(InputError, match=f"libcoll: no C file defines {name}"):
        hashes(tmp_path, call=(f"int {name}(void)", "int another(void)"))


def test_a_shared_template_that_is_missing_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"_gone\.c\.j2.*no template") as caught:
        hashes(tmp_path, ring=("_shared/_loop", "_shared/_gone"))
    assert caught.value.file == str(tmp_path / "bcast/ring.c.j2")


def test_tokens_keep_texts_whole():
    text = 'f("a // b", \'"\', 1.5e-3); /* "c" */ {# it\'s #} x->y'
    assert list(tokens(text))[:6] == ["f", "(", '"a // b"', ",", "'\"'", ","]
    assert list(tokens(text))[-4:] == ["x", "-", ">", "y"]
