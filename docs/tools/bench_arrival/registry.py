"""Finds the experiments: every file of the folder ``experiments`` defines one."""

from __future__ import annotations

import importlib
import pkgutil

from docs.tools.bench_arrival import experiments
from docs.tools.bench_arrival.experiment import Experiment


def find_experiments() -> dict[str, Experiment]:
    """Return the experiments by name, sorted.

    Raises:
        ValueError: one has another name than its file.
    """
    found = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(experiments.__path__)):
        module = importlib.import_module(f"{experiments.__name__}.{name}")
        experiment: Experiment = module.EXPERIMENT
        if experiment.name != name:
            raise ValueError(f"the experiment of {name}.py calls itself {experiment.name}")
        found[name] = experiment
    return found
