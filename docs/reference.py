"""Makes `generated/reference` again: the small cluster that the tests regenerate and compare.

python docs/reference.py             from its log: after a change of the library's skeleton
python docs/reference.py --measure   with a new log: after a change of an algorithm's template
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "generated" / "reference"
TOPOLOGY = FOLDER / "topology.yaml"
LOG = FOLDER / "measurements.jsonl"
SIZES = "1,4KiB,64KiB"

#: Not kept: the plots depend on the library that draws them, the old log is in the history.
UNKEPT = ("report.html", "measurements.1.jsonl")


def main() -> int:
    """Make the folder; return the exit status of `stagegen tune`."""
    parser = argparse.ArgumentParser(description="Make the reference cluster again.")
    parser.add_argument("--measure", action="store_true", help="in the lab, some five minutes")
    measure = parser.parse_args().measure
    source = ["--sizes", SIZES, "--budget", "1"] if measure else ["--from-log", LOG]
    command = [sys.executable, "-m", "stagegen", "tune", "--topology", TOPOLOGY]
    status = subprocess.run([*command, "--output", FOLDER, *source], check=False).returncode
    for name in UNKEPT:
        (FOLDER / name).unlink(missing_ok=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
