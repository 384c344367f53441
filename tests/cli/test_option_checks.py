"""Options that have no effect, and values that nothing can do: usage errors, not silence."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stagegen.measure.launch import registry
from tests.cli.here import stagegen

TUNE = ("tune", "--topology", "topologies/quickstart.yaml")
#: A launcher that never starts anything.
_OWN = """\
from dataclasses import dataclass
from stagegen.measure.launch.local import LocalLauncher
@dataclass(frozen=True)
class Own(LocalLauncher):
    name: str = "NAME"
    def why_unavailable(self, topology, mpi="mpich"):
        return "gone fishing"
"""
COMPARE = ("compare", "--topology", "topologies/quickstart.yaml", "--collective", "bcast")


def test_characters_that_the_terminal_lacks_are_escaped():
    """There are arrows in it, which Latin-1 lacks. In place of ASCII, click takes UTF-8."""
    command = ["stagegen", "topology", "show", "--topology", "topologies/two-switch-16.yaml"]
    texts = {}
    for encoding in ("utf-8", "latin-1"):
        variables = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(command, env=variables, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        texts[encoding] = done.stdout.decode(encoding)
    whole = texts["utf-8"]
    assert "\u2192" in whole
    assert texts["latin-1"] == whole.encode("latin-1", "backslashreplace").decode("latin-1")


@pytest.mark.parametrize("name", ["doctor", "bench"])
def test_launchers_of_stagegen_yaml_are_known_to_all_commands(tmp_path, monkeypatch, name):
    topology = tmp_path / "t.yaml"
    topology.write_text(Path("topologies/quickstart.yaml").read_text())
    monkeypatch.setattr(registry, "_LAUNCHERS", dict(registry._LAUNCHERS))
    (tmp_path / "own.py").write_text(_OWN.replace("NAME", f"of-{name}"))
    (tmp_path / "stagegen.yaml").write_text(f"launchers: {{of-{name}: own.py:Own}}\n")
    more = ("--library", tmp_path) if name == "bench" else ()
    ended = stagegen(name, "--topology", topology, "--launcher", f"of-{name}", *more)
    said = f"{ended.stdout}{ended.stderr}"
    assert f"of-{name}: {'gone fishing' if name == 'doctor' else 'asked for'}" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*TUNE, "--from-log", "x", "--sbatch", "-"), "--sbatch and --from-log exclude each other"),
        ((*TUNE, "--time-limit", "30"), "--time-limit needs --sbatch"),
        ((*TUNE, "--scales", "3"), "--scales needs --patterns"),
        ((*TUNE, "--algorithms", "native"), "so there is nothing to tune"),
        (
            (*TUNE, "--classes", "--communicators", "patterns", "--collectives", "bcast"),
            "--communicators patterns and --collectives exclude each other",
        ),
        (("profile", "x", "--topology", "x"), "--topology needs --histogram"),
        (("patterns", "of", "x", "--hosts", "n[0-3]"), "--hosts needs --topology"),
        (("patterns", "of", "x", "--name", "y"), "--name needs --picture"),
        (
            ("arrivals", "--calibrate", "x", "--html", "y", "--", "true"),
            "--calibrate only measures",
        ),
        (("bench", *TUNE[1:], "--library", "x", "--seed", "2"), "--seed needs --arrivals"),
        (("record", "--output", "", "--", "true"), "--output is no file name"),
        ((*TUNE, "--gain", "nan"), "'nan' is not a finite number"),
        ((*TUNE, "--width", "nan"), "'nan' is not a finite number"),
        (("patterns", "of", "x", "--threshold", "nan"), "'nan' is not a finite number"),
        ((*COMPARE, "--sizes", "2GiB"), "the library leaves calls of 2 GiB and more to the MPI"),
        ((*COMPARE, "--sizes", "1:4GiB"), "the library leaves calls of 2 GiB and more to the MPI"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_has_no_effect_is_a_usage_error(words, said):
    ended = stagegen(*words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in " ".join(ended.stderr.split())
