"""Random trees, and random tree files that may be wrong."""

from __future__ import annotations

import random
import re

from stagegen.topology import Topology
from stagegen.trees import ConfiguredTree, Node, ordered, tree_yaml


def random_tree(chance: random.Random, ranks: int, name: str = "t") -> ConfiguredTree:
    """A tree of any shape: any rank may do the work of any node, and of several."""
    below: list[int | str] = list(range(ranks))
    chance.shuffle(below)
    nodes: list[Node] = []
    while len(below) > 1 or not nodes:
        take = chance.choice([1, 2, 2, 3, len(below)]) if len(nodes) < 3 * ranks else len(below)
        taken = [below.pop(chance.randrange(len(below))) for _ in range(min(take, len(below)))]
        nodes.append(Node(f"v{len(nodes)}", chance.randrange(ranks), tuple(taken)))
        below.append(nodes[-1].name)
    return ConfiguredTree(name, ordered(nodes), ranks)


def correct_file(chance: random.Random, topology: Topology) -> str:
    """The text of a file of a random tree: half of them have comments, and half of them hosts.

    A host stands for a rank that does the work of a node: not for the tree's own, but for one
    there. Of the files with hosts, half of the nodes have one.
    """
    tree = random_tree(chance, topology.rank_count)
    text = tree_yaml(tree, topology if chance.random() < 0.5 else None)
    if chance.random() < 0.5:
        return text

    def host_or_rank(match: re.Match[str]) -> str:
        return f"{{host: {topology.ranks[int(match[1])]}" if chance.random() < 0.5 else match[0]

    return re.sub(r"\{rank: (\d+)", host_or_rank, text)


def random_file(chance: random.Random, topology: Topology) -> str:
    """The text of a tree file; about half of them have something wrong."""
    text = correct_file(chance, topology)
    if chance.random() < 0.4:
        return text
    lines = text.splitlines()
    at = chance.randrange(len(lines))
    number = str(chance.randrange(topology.rank_count + 2))
    name = f"v{chance.randrange(6)}"
    change = chance.randrange(9)
    if change == 0:
        lines.pop(at)
    elif change == 1:
        lines.insert(chance.randrange(len(lines)), lines[at])
    elif change == 2:
        lines[at] = lines[at].replace("[", f"[{number}, ", 1)
    elif change == 3:
        lines[at] = lines[at].replace("[", f"[{name}, ", 1)
    elif change == 4:
        lines[at] = re.sub(r"rank: |host: n", rf"\g<0>{number}", lines[at], count=1)
    elif change == 5:
        host = chance.choice([*topology.host_by_name, "nowhere"])
        lines[at] = re.sub(r"\{(rank: |host: \w+, )", rf"{{host: {host}, \1", lines[at], count=1)
    elif change == 6:
        name = chance.choice(["rank:", "host:", "worker:", ""])
        lines[at] = re.sub("rank:|host:", name, lines[at], count=1)
    elif change == 7:
        place = chance.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:place] + chance.choice("[]{},:-x \t#0'") + lines[at][place:]
    else:
        parts = lines[at].split(", ")
        parts.pop(chance.randrange(len(parts)))
        lines[at] = ", ".join(parts)
    return "\n".join(lines) + "\n"


#: What does not belong in a file: characters, YAML of other kinds, numbers of all forms.
_PIECES = (
    "\t", "\r", "\0", "\x85", "\u2028", "\ufeff", "²", "&a ", "*a", "&a [*a]", "!!int ", "!x ", "=",
    '"', "'", '"\\UFFFFFFFF"', '"\\U00110000"', '"\\ud800"', '"\\xZZ"', "|\n", ">\n", "<<: ", "@",
    "`", "%YAML 9.9\n", "%TAG ! x\n", "---\n", "...\n", "? ", "- ", ": ", "#", "{", "}", "[", "]",
    ", ,", "9" * 20, "-1", "0x10", "1e3", "0o7", "1_0", "~", "null", "yes", "2001-01-01", "1:30",
    "0-999999999", "0-5", "5-0", "1-", "a" * 999, "[" * 1200,
)  # fmt: skip


def damaged(chance: random.Random, text: str) -> bytes:
    """A file whose text has one or more random changes; most of these make it wrong."""
    data = text.encode()
    for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
        data = chance.choice(_DAMAGES)(chance, data)
    return data


def _cut(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _insert(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.choice(_PIECES).encode() + data[place:]


def _change_byte(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(len(data) + 1)
    return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]


def _change_word(chance: random.Random, data: bytes) -> bytes:
    """Another piece, or another word of the file, in the place of a word: circles, doubled keys."""
    words = list(re.finditer(rb"\w+", data))
    if not words:
        return data
    word = chance.choice(words)
    new = chance.choice([chance.choice(words)[0], chance.choice(_PIECES).encode()])
    return data[: word.start()] + new + data[word.end() :]


def _change_line(chance: random.Random, data: bytes) -> bytes:
    """A line that is doubled, gone, indented in another way, or elsewhere."""
    lines = data.split(b"\n")
    line = lines.pop(chance.randrange(len(lines)))
    indented = b" " * chance.randrange(6) + line.lstrip()
    for one in chance.choice([(), (line,), (line, line), (indented,)]):
        lines.insert(chance.randrange(len(lines) + 1), one)
    return b"\n".join(lines)


_DAMAGES = (_cut, _insert, _change_byte, _change_word, _change_word, _change_line)
