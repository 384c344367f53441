"""``stagegen verify``: proves a generated folder again, from its files of tables."""

from __future__ import annotations

from pathlib import Path

import click

from stagegen.audit import RoutineProof, audit_folder
from stagegen.cli._options import format_option, print_json
from stagegen.generate.schedules import summary


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@format_option
def command(folder: Path, output_format: str) -> None:
    """Prove the schedules of a generated folder again.

    Reads the folder's topology.yaml and the data in src/ (each routine's file of tables,
    routines.c, rules.c, patterns.c and cluster.c), rebuilds the schedules and checks them. The
    templates say which routines must have tables. The code that uses the tables is not read: make
    check tests it. Ends with status 1 at the first error.
    """
    proofs = []
    for proof in audit_folder(folder):
        proofs.append(proof)
        if output_format == "text":
            click.echo(_line(proof))
    if output_format == "json":
        print_json({"routines": [_form(proof) for proof in proofs]})


def _line(routine: RoutineProof) -> str:
    if routine.unproven:
        return f"{routine.routine}: NOT PROVEN: its tables are a user's own"
    if not routine.proofs:
        return f"{routine.routine}: no tables, nothing to prove"
    lines = "; ".join(summary(dict(routine.proofs)))
    # If there are several labels, the summary itself names those that it needs.
    label = routine.proofs[0][0] if len(routine.proofs) == 1 else ""
    return f"{routine.routine}: {label}: {lines}" if label else f"{routine.routine}: {lines}"


def _form(routine: RoutineProof) -> dict[str, object]:
    proofs = [{"label": label, **proof.to_json()} for label, proof in routine.proofs]
    unproven = {"unproven": True} if routine.unproven else {}
    return {"routine": routine.routine, "proofs": proofs, **unproven}
