"""What a command needs: without it, the command ends with a usage error."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from stagegen.cli import group


def _commands(command: click.Command, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its words."""
    if not isinstance(command, click.Group):
        yield " ".join(words), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _commands(inner, *words, name)


#: Each parameter that must be given, with its command, by both names.
REQUIRED = {
    f"{words} {parameter.name}": (command, parameter)
    for words, command in _commands(group)
    for parameter in command.params
    if parameter.required
}


def test_parameters_that_must_be_given_are_found():
    assert {"tune topology_file", "compare sizes", "learn files"} <= REQUIRED.keys()


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_a_parameter_that_is_needed_and_missing_is_a_usage_error(name):
    command, parameter = REQUIRED[name]
    with pytest.raises(click.MissingParameter):
        parameter.handle_parse_result(click.Context(command), {}, [])
