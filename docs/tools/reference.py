"""Makes `generated/reference` again: the small cluster that the tests regenerate and compare.

python docs/tools/reference.py             from its log: the library's skeleton or comments changed
python docs/tools/reference.py --resume    measures the routines that were changed or added
python docs/tools/reference.py --measure   measures everything anew
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "generated" / "reference"
TOPOLOGY = FOLDER / "topology.yaml"
LOG = FOLDER / "measurements.jsonl"
SIZES = "1,4KiB,64KiB"

#: Not kept: the plots depend on the library that draws them, the old log is in the history.
UNKEPT = ("report.html", "tune.log", "measurements.1.jsonl")


def main() -> int:
    """Make the folder; return the exit status of `stagegen tune`."""
    parser = argparse.ArgumentParser(description="Make the reference cluster again.")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--resume", action="store_true", help="measure what was changed or added")
    how.add_argument("--measure", action="store_true", help="measure all, some ten minutes")
    asked = parser.parse_args()
    if asked.measure:
        source = ["--communicators", "whole", "--sizes", SIZES, "--budget", "1"]
    else:
        source = ["--resume"] if asked.resume else ["--from-log", str(LOG)]
    command = [sys.executable, "-m", "stagegen", "tune", "--topology", TOPOLOGY]
    status = subprocess.run([*command, "--output", FOLDER, *source], check=False).returncode
    for name in UNKEPT:
        (FOLDER / name).unlink(missing_ok=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
