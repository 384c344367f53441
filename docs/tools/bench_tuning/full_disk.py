"""Runs in namespaces of its own: tune on a small disk that fills up, make room, and go on.

The arguments are a folder, in which a small file system is mounted, megabytes, and a tuning as
JSON. Prints what the runs said as JSON, and leaves a copy of the generated folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from docs.tools.bench_tuning.tunings import REPOSITORY, Tuning

#: Runs a command as root of its own mounts and processes: all of them end with it.
UNSHARE = (
    *("unshare", "--user", "--map-root-user", "--mount"),
    *("--fork", "--pid", "--mount-proc", "--kill-child"),
)

#: Measurements before the disk is filled.
BEFORE = 3

#: How often the trial waits for as long as a tuning's patience, and seconds for all else.
WAITS, BESIDE = 4, 40.0


def why_no_small_disk() -> str | None:
    """Return why this machine has no small disk for a trial; None if it has."""
    mount = "mount -t tmpfs -o size=1m tmpfs /mnt"
    try:
        tried = subprocess.run(
            [*UNSHARE, "sh", "-c", mount], capture_output=True, text=True, timeout=20, check=False
        )
    except OSError as error:
        return str(error)
    return (tried.stderr.strip() or "refused") if tried.returncode else None


def tuned_on_a_full_disk(tuning: Tuning, megabytes: int) -> dict[str, Any]:
    """Tune where the disk fills up, again while it is full, and once more with room.

    Returns:
        The status and the standard error of each of the three runs, ``full``, ``again`` and
        ``resumed``; and of the log, whether it had whole lines only, ``whole``, and whether each
        run went on with it, ``goes on``.

    Raises:
        subprocess.CalledProcessError: a trial failed.
    """
    form = {
        name: getattr(tuning, name) for name in ("options", "environment", "program", "patience")
    }
    words = [str(tuning.folder), str(megabytes), json.dumps(form)]
    command = [*UNSHARE, sys.executable, "-m", "docs.tools.bench_tuning.full_disk", *words]
    limit = WAITS * tuning.patience + BESIDE
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=limit, check=True, cwd=REPOSITORY
    )
    if tuning.output.exists():
        tuning.output.rmdir()  # what was mounted there is gone
    (tuning.folder / "copy").rename(tuning.output)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def fill(path: Path) -> None:
    """Write until nothing fits any more."""
    with path.open("wb", buffering=0) as stream:
        for size in (1 << 16, 1):
            try:
                while stream.write(bytes(size)):
                    pass
            except OSError:
                continue


def main(folder: Path, megabytes: int, form: dict[str, Any]) -> None:
    """Do the trial, and print what the runs said."""
    options, program = tuple(form["options"]), tuple(form["program"])
    tuning = Tuning(folder, options, form["environment"], program, form["patience"])
    tuning.output.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(tuning.output)]
    subprocess.run(mount, check=True, timeout=20)
    with tuning.started(BEFORE) as process:
        fill(tuning.output / "filler")
        full = tuning.ended(process)
    data = tuning.log.read_bytes()
    kept = len(tuning.records())
    again = tuning.run("--resume")
    still = tuning.log.read_bytes()
    (tuning.output / "filler").unlink()
    resumed = tuning.run("--resume")
    shutil.copytree(tuning.output, folder / "copy")
    said = {
        "full": [full.returncode, full.stderr],
        "again": [again.returncode, again.stderr],
        "resumed": [resumed.returncode, resumed.stderr],
        "whole": data.endswith(b"\n") and still.startswith(data),
        "goes on": tuning.log.read_bytes().startswith(still),
        "kept": kept,
    }
    print(json.dumps(said))


if __name__ == "__main__":
    os.umask(0o022)
    main(Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
