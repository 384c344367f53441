"""A wheel built from the repository works where it is installed: its data folders are in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from stagegen.data import DRIVERS, TEMPLATES, TOPOLOGIES
from tests.library.recorded import record

ROOT = Path(__file__).parents[1]


def quiet(*command: str | Path, cwd: Path) -> str:
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    result = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=cwd, env=variables, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    quiet(
        sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet",
        "--disable-pip-version-check", "--wheel-dir", folder, ROOT, cwd=folder,
    )  # fmt: skip
    (found,) = folder.glob("stagegen-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A virtual environment with the wheel; what the wheel requires comes from this one."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    quiet(
        sys.executable, "-m", "pip", "install", "--no-deps", "--quiet",
        "--disable-pip-version-check", "--target", site, wheel, cwd=folder,
    )  # fmt: skip
    # Requirements only: a path file appends, so the wheel's stagegen comes first.
    (site / "requirements.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    where = quiet(python, "-c", "import stagegen; print(stagegen.__file__)", cwd=folder)
    assert Path(where.strip()).is_relative_to(site)
    return python


def test_the_data_folders_are_in_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in (TEMPLATES, DRIVERS, TOPOLOGIES):
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                inside = path.relative_to(folder.parent).as_posix()
                assert f"stagegen/_data/{inside}" in names
    assert "stagegen/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "generated/", "docs/"))]


def test_an_installed_wheel_shows_its_own_topologies(installed, tmp_path):
    script = "from stagegen.data import TOPOLOGIES; print(TOPOLOGIES)"
    topologies = Path(quiet(installed, "-c", script, cwd=tmp_path).strip())
    assert topologies != TOPOLOGIES
    text = quiet(
        installed, "-m", "stagegen", "topology", "show", "--format", "json",
        "--topology", topologies / "quickstart.yaml", cwd=tmp_path,
    )  # fmt: skip
    assert json.loads(text)["name"] == "quickstart"


def test_an_installed_wheel_generates_what_the_checkout_generates(installed, tmp_path):
    cluster, log = TOPOLOGIES / "quickstart.yaml", tmp_path / "log.jsonl"
    record(cluster, log)
    words = ["-m", "stagegen", "tune", "--topology", cluster, "--from-log", log, "--output"]
    quiet(installed, *words, tmp_path / "wheel", cwd=tmp_path)
    quiet(sys.executable, *words, tmp_path / "checkout", cwd=ROOT)
    sides = [
        {p.relative_to(tmp_path / side): p.read_bytes() for p in (tmp_path / side).rglob("*.*")}
        for side in ("wheel", "checkout")
    ]
    assert sides[0] == sides[1]
    assert Path("src/dispatch.c") in sides[0]
