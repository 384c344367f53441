"""Run in namespaces of its own: tune on a small disk that fills up, make room, and go on.

The argument is a folder; a small file system is mounted in it. Prints what the runs said as JSON,
and leaves a copy of the generated folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.faults.tuning import Tuning, ended, wait_until

MEGABYTES = 16


def fill(path: Path) -> None:
    """Write until nothing fits any more."""
    with path.open("wb", buffering=0) as stream:
        for size in (1 << 16, 1):
            try:
                while stream.write(bytes(size)):
                    pass
            except OSError:
                continue


def main(folder: Path) -> None:
    tuning = Tuning(folder)
    tuning.output.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(tuning.output)]
    subprocess.run(mount, check=True, timeout=20)
    process = tuning.start()
    wait_until(lambda: len(tuning.records("measurement")) >= 3, process)
    fill(tuning.output / "filler")
    full = ended(process)
    data = tuning.log.read_bytes()
    again = tuning.run("--resume")
    kept = tuning.log.read_bytes()
    (tuning.output / "filler").unlink()
    resumed = tuning.run("--resume")
    shutil.copytree(tuning.output, folder / "copy")
    said = {
        "full": [full.returncode, full.stderr],
        "again": [again.returncode, again.stderr],
        "resumed": [resumed.returncode, resumed.stderr],
        "whole": data.endswith(b"\n") and kept.startswith(data),
        "goes on": tuning.log.read_bytes().startswith(kept),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    os.umask(0o022)
    main(Path(sys.argv[1]))
