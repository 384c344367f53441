"""The definitions of plain C, which the hashes of routines cover where they reach them."""

from __future__ import annotations

import re

import pytest

from stagegen.catalogue.shared_code import SharedCode, definitions
from stagegen.data import TEMPLATES
from stagegen.errors import InputError

LIBCOLL = sorted((TEMPLATES / "libcoll").glob("*.[ch]"))
#: The head of a function that begins a line: all up to its name, without a semicolon to its body.
HEAD = re.compile(
    r"^(?P<before>[a-zA-Z_][\w *()]*?)\b(?P<name>\w+)\((?:[^;{}()]|\([^()]*\))*\)\s*\{",
    re.MULTILINE,
)


def found(text: str, path: str = "libcoll/one.c") -> dict[str, bool]:
    """Return whether each definition of a file is local."""
    return {one.name: one.is_local for one in definitions(path, text)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("int f(int a) { return a; }", {"f": False}),
        ("static int f(void) { return 1; }", {"f": True}),
        ("inline static int f(void) { return 1; }", {"f": True}),
        ("enum kind f(void) { return FIRST; }", {"f": False}),
        ("static enum kind f(void) { return FIRST; }", {"f": True}),
        ("_Atomic(int) *f(int a) { return 0; }", {"f": False}),
        ('__attribute__((format(printf, 1, 2))) void f(char *t, ...) { use("{"); }', {"f": False}),
        ("int f(int a) __attribute__((noinline)) { return a; }", {"f": False}),
        ("int (*f(int a))(char) { return 0; }", {"f": False}),
        ("int (f)(int a) { return 0; }", {"f": False}),
        ("int (*const table[])(int) = {f, g};", {"table": False}),
        ("static int (*chosen)(int) = f;", {"chosen": True}),
        ("struct t *p = &(struct t){1, 2};\nint f(void) { return 1; }", {"p": False, "f": False}),
        ("static _Atomic(int) slots[2][2] = {{1, 2}, {3, 4}};", {"slots": True}),
        ("static const int a[] = {{1, 2}, 3};\nint f(void) { return 1; }", {"a": True, "f": False}),
        ("struct t a = {{-1, 2}, {3 %b}};", {"a": False}),
        ("int a = 1, *b = &a, c;", {"a": False, "b": False}),
        ("int a = b == c;", {"a": False}),
        ("enum { A = 1 };", {"A": True}),
        ("typedef enum kind { A = (1, 2), B, C = 3 } kind;", {"A": True, "B": True, "C": True}),
        ("enum { A, B = 1 };", {"B": True}),
        ("enum __attribute__((packed)) kind { A = 1, B, };", {"A": True, "B": True}),
        ("#define F(a) {#a, a}\nint f(void) { return 1; }", {"F": True, "f": False}),
        ("int f(int a);\nextern int b;\nstruct t { int c; };\ntypedef int (*d)(int);", {}),
        ("#if X\nint f(int a) {\n#else\nint f(long a) {\n#endif\n}\nint g(void) {}", "fg"),
        ("#if X\nint f(int a) {\n#elif Y\nint h(int a) {\n#endif\n}\nint g(void) {}", "fhg"),
        ("#if X\nint f(int a)\n#else\nint f(long a)\n#endif\n{\n}\nint g(void) {}", "fg"),
        ("int f(void) {\n#if X\nif (a) {\n#else\nif (b) {\n#endif\n}\n}\nint g(void) {}", "fg"),
        ("#if X\nint f(void) { }\n#else\nint f(int a) { }\n#endif\nint g(void) {}", "fg"),
    ],
)
def test_what_a_file_defines_is_found(text, names):
    assert found(text) == (dict.fromkeys(names, False) if isinstance(names, str) else names)


def test_nothing_of_a_header_is_local():
    text = "#define A 1\nenum { B = 2 };\nstatic inline int f(void) { return 1; }"
    assert found(text, "libcoll/one.h") == {"A": False, "B": False, "f": False}


@pytest.mark.parametrize(
    "text",
    [
        "int f(void) { return 1;",
        "int f(void) { return 1; } }",
        "int a",
        "#endif",
        "int f(a) int a; { return a; }",
        "int (int a) { return a; }",
        "int = 3;",
        "#if X\n} else {\n#endif\n",
    ],
)
def test_what_cannot_be_told_apart_is_an_error(text):
    with pytest.raises(InputError, match=r"^libcoll/one\.c: its definitions cannot be told apart"):
        definitions("libcoll/one.c", text)


@pytest.mark.parametrize(
    ("changed", "is_covered"),
    [
        ("enum { A, B = 2, C, D };", True),
        ("enum { A, B = 1, X, C, D };", True),
        ("enum { X, A, B = 1, C, D };", False),
        ("enum { A, B = 1, C, D, X };", False),
        ("enum { A, B = 1, C, D = 9 };", False),
    ],
)
def test_a_constant_counts_from_the_last_value_before_it(changed, is_covered):
    before, after = (
        SharedCode({"one.h": text}).hash_from({"C"})
        for text in ("enum { A, B = 1, C, D };", changed)
    )
    assert (before != after) == is_covered


@pytest.mark.parametrize("path", LIBCOLL, ids=lambda path: path.name)
def test_every_function_of_libcoll_is_found(path):
    text = path.read_text(encoding="utf-8")
    heads = {
        head["name"]: "static" in head["before"].split() and path.suffix == ".c"
        for head in HEAD.finditer(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    }
    assert heads or path.suffix == ".h"
    assert heads.items() <= found(text, path.name).items()
