"""Finds the experiments: every file of a group's folder defines one."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from docs.tools.experiments.experiment import Experiment

_PATH = [str(Path(__file__).parent)]


def find_groups() -> list[str]:
    """Return the names of all groups, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(_PATH) if module.ispkg)


def find_experiments(group: str) -> dict[str, Experiment]:
    """Return the experiments of a group by name, sorted.

    Raises:
        ValueError: one has another name than its file.
    """
    found = {}
    experiments = importlib.import_module(f"{__package__}.{group}")
    names = (module.name for module in pkgutil.iter_modules(experiments.__path__))
    for name in sorted(name for name in names if not name.startswith("_")):
        module = importlib.import_module(f"{experiments.__name__}.{name}")
        experiment: Experiment = module.EXPERIMENT
        if experiment.name != name:
            raise ValueError(f"the experiment of {name}.py calls itself {experiment.name}")
        found[name] = experiment
    return found
