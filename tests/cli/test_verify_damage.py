"""`stagegen verify` sees whatever is damaged in a routine, and says it: never a traceback."""

from __future__ import annotations

import re
from functools import partial

import pytest

from stagegen.audit import audit_folder
from stagegen.errors import ScheduleError
from tests.cli.folders import ARRAY, CLUSTERS, file_of_tables, scheduled, write_folder

DAMAGED = {
    "fig-3-2": scheduled(CLUSTERS["fig-3-2"]),
    "groups": ["allgather_logical_ring_lr2", "alltoall_aapc_receiver", "bcast_topology_binary"],
    "slots": ["alltoall_aapc_sender", "alltoall_hierarchical", "bcast_topology_kary"],
    "capacity 2": ["alltoall_aapc_receiver_window", "alltoall_aapc_sender_partial"],
}
CASES = [(name, routine) for name, routines in DAMAGED.items() for routine in routines]
CONSTANTS = re.compile(r"(?:\benum \w*|\bschedule =) ?\{([^{}]*)\}")
OF_SCHEMES = {"AAPC_NO_TOKENS", "AAPC_SENDER", "AAPC_RECEIVER"}, {"true", "false"}
UNPROVEN = {"IN_FLIGHT"}
"""Constants that a schedule has nothing to do with."""


class Damage:
    """A folder with one routine, whose tables are written again and again."""

    def __init__(self, cluster, routine, folder):
        write_folder(CLUSTERS[cluster], folder, routine)
        self.folder, self.file = folder, file_of_tables(folder, routine)
        self.text = self.file.read_text()
        assert self.told(self.text) is None
        # Blanks for comments: what stands there is damaged to no effect.
        blanks = partial(re.sub, r"[^\n]", " ")
        self.bare = re.sub(r"/\*.*?\*/", lambda m: blanks(m[0]), self.text, flags=re.DOTALL)

    def told(self, text: str) -> str | None:
        """What the error says; None if there is none. Other errors than typed ones fail a test."""
        self.file.write_text(text)
        try:
            list(audit_folder(self.folder))
        except ScheduleError as error:
            return str(error) if self.file.name in str(error) else None
        return None

    def with_text(self, start: int, end: int, new: str) -> str:
        return self.text[:start] + new + self.text[end:]

    def sees_scheme(self, start: int, end: int, new: str) -> None:
        """Another scheme is seen if the name of the routine says which one it is."""
        if "aapc_" in self.file.name:
            self.sees(start, end, new)

    def sees(self, start: int, end: int, new: str) -> None:
        near = self.text[max(0, start - 30) : end + 30]
        assert self.told(self.with_text(start, end, new)), (near, new)


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def damage(request, tmp_path):
    return Damage(*request.param, tmp_path / "g")


def test_every_changed_number_is_seen(damage):
    """In each table at some ten places: one more, an octal number, far too large, left out."""
    tables = list(ARRAY.finditer(damage.bare))
    assert tables
    for table in tables:
        places = list(re.finditer(r"-?\d+", table[2]))
        for at, found in enumerate(places[:: 1 + len(places) // 10]):
            start, end = table.start(2) + found.start(), table.start(2) + found.end()
            number = int(found[0])
            more, octal = str(number + 1), f"0{abs(number)}"
            new = (more, octal, more, str(number + 10**6), more, str(-2 - abs(number)))[at % 6]
            damage.sees(start, end, new)
            damage.sees(start, end + 1, "")


def test_every_changed_constant_is_seen(damage):
    found = 0
    for group in CONSTANTS.finditer(damage.bare):
        for item in re.finditer(r"(\w+) = (-?\w+)", group[1]):
            start, end = group.start(1) + item.start(2), group.start(1) + item.end(2)
            if re.fullmatch(r"-?\d+", item[2]) and item[1] not in UNPROVEN:
                found += 1
                damage.sees(start, end, str(int(item[2]) + 1))
                damage.sees(start, end, str(int(item[2]) - 1))
            for others in OF_SCHEMES:
                for other in others - {item[2]} if item[2] in others else ():
                    found += 1
                    damage.sees_scheme(start, end, other)
    assert found


def test_every_changed_member_is_seen(damage):
    """A member of `schedule` that is left out, stands twice, or has another name."""
    members = list(re.finditer(r"^    \.(\w+) = \w+,$", damage.bare, re.MULTILINE))
    assert bool(members) == ("struct aapc_schedule schedule" in damage.text)
    for member in members:
        start, end, text = member.start(), member.end(), member[0]
        for other in ("", f"{text}\n{text}", text.replace(member[1], "other", 1)):
            damage.sees(start, end, other)


def test_every_other_declaration_is_seen(damage):
    for table in ARRAY.finditer(damage.bare):
        whole, name = damage.text[table.start() : table.end()], table[1]
        for other in (
            whole.replace("[]", f"[{table[2].count(',')}]"),
            whole.replace("[]", "  []"),
            whole.replace("static const", "static const signed"),
            whole.replace("static const", "static  const"),
            whole.replace("static const", "const static"),
            whole.replace("static const", "static"),
            whole.replace(name, f"{name}x", 1),
            f"#if 0\n{whole}\n#endif",
            f" # if 0\n{whole}\n#endif",
            f"#define {name} other\n{whole}",
            f'#include "other.h"\n{whole}',
            f"/* {whole} */",
            f"// {' '.join(whole.split())}",
            f"{whole}\n{whole}",
            "",
        ):
            damage.sees(table.start(), table.end(), other)


@pytest.mark.parametrize("cluster", DAMAGED)
def test_every_change_of_the_cluster_is_seen(cluster, tmp_path):
    """The end of any string or number of what `cluster.c` says of the cluster."""
    write_folder(CLUSTERS[cluster], tmp_path / "g", "bcast_flat")
    file = tmp_path / "g" / "src" / "cluster.c"
    text = file.read_text()
    start, end = text.index("const char *const"), text.index("int coll_cluster_place_of")
    blank = re.sub(r"/\*.*?\*/", lambda m: " " * len(m[0]), text[start:end], flags=re.DOTALL)
    places = [start + m.end() - 1 for m in re.finditer(r'[^"](?=")(?<=[\w.])|\d\b', blank)]
    assert len(places) > 3 * len(CLUSTERS[cluster].hosts)
    for at in places:
        file.write_text(f"{text[:at]}{'8' if text[at] == '7' else '7'}{text[at + 1 :]}")
        with pytest.raises(ScheduleError, match=r"cluster\.c"):
            list(audit_folder(tmp_path / "g"))
