"""The command lines in the pages use commands and options that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from stagegen.cli import group

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
BLOCK = re.compile(r"^ *```\S*\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(stagegen [^`]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def command_lines(text: str) -> Iterator[str]:
    """Yield what a page calls; lines that a call is continued on are part of it."""
    blocks = "\n".join(BLOCK.findall(text))
    whole = re.sub(r"\\\n\s*|\n +(?=[\[\-])", " ", blocks)
    yield from re.findall(r"(?:^|\s)(stagegen [a-z].*)$", whole, re.MULTILINE)
    yield from INLINE.findall(BLOCK.sub("", text))


def command_of(words: list[str]) -> click.Command:
    """Return the command that words call; `schedule` and `patterns` may leave one out."""
    command: click.Command = group
    for word in words:
        context = click.Context(command)
        names = command.list_commands(context) if isinstance(command, click.Group) else []
        commands = [one for one in word.split("|") if one in names]
        if not commands:
            break
        assert isinstance(command, click.Group)
        command = command.get_command(context, commands[0]) or command
    return command


def options_of(command: click.Command) -> set[str]:
    """Return the options of a command and of its subcommands."""
    context = click.Context(command)
    parameters = command.get_params(context)
    options = {name for one in parameters for name in (*one.opts, *one.secondary_opts)}
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        assert isinstance(command, click.Group)
        options |= options_of(command.get_command(context, name) or command)
    return options


def unknown_in(text: str) -> list[str]:
    """Return the commands that a page calls and that do not exist, and the options of others."""
    found = []
    for line in command_lines(text):
        called = re.split(r"\s+(?:--|#)\s|;", line)[0]
        command = command_of(called.split()[1:])
        if command is group:
            found.append(f"no such command: {line}")
        elif unknown := set(OPTION.findall(called)) - options_of(command):
            found.append(f"{sorted(unknown)} in: {line}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_a_page_have_the_options_that_they_are_given(page: Path) -> None:
    assert unknown_in(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("```\nstagegen tune --topology T \\\n  --budjet 3\n```\n", "--budjet"),
        ("Call `stagegen schedule alltoall --topologie T` first.", "--topologie"),
        ("```sh\nstagegen tunne --topology T\n```\n", "tunne"),
        ("```\nstagegen bench --topology T\n  [--librarry DIR]\n```\n", "--librarry"),
    ],
)
def test_a_wrong_command_or_option_is_found_wherever_a_page_has_it(text: str, unknown: str) -> None:
    (found,) = unknown_in(text)
    assert unknown in found
    right = {"--budjet": "--budget", "--topologie": "--topology", "tunne": "tune"}
    assert unknown_in(text.replace(unknown, right.get(unknown, "--library"))) == []
