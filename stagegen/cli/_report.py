"""The report of a generated folder whose table a command changes without measuring it all anew."""

from __future__ import annotations

from pathlib import Path

import click

REPORT = "report.html"


def remove_report(folder: Path, lacks: str) -> None:
    """Remove the report of a folder, which tells of an older table, and say so; none is fine.

    Args:
        folder: a generated folder.
        lacks: what the report's table lacks, such as ``the rule``.
    """
    file = folder / REPORT
    if file.exists():
        file.unlink()
        click.echo(f"{file}: removed, since it shows the table without {lacks}")
