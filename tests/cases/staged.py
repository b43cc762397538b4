"""Cases that need surroundings: real engines and files, and faults put into them."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

from tests.cases.adapter import Plan
from tests.cases.decode import decode
from tests.cases.staging import Environment, NotStagedError
from tests.cases.stream import Outcome
from tune_guard.rules import NonFinite

_STAGINGS = {
    "_results": "sweeps.place",
    "flow": "sweeps.optuna_flow",
    "case_": "sweeps.locked",
    "result.json": "sweeps.replay_files",
    "nvml_devices": "machines.choose_gpu",
    "samples": "machines.sample_gpu",
    "per_rank_": "machines.agree",
    "response": "messages.refuse",
    "alerts_at": "messages.sign",
    "tensorboard_writer": "messages.export",
}
"""By the beginning or end of a key of the environment."""


def stage(environment: Environment, plan: Plan) -> dict[str, Outcome]:
    """Stage a case and return what became of its trials, by name.

    Raises:
        NotStagedError: If it needs what does not exist.
    """
    environment = decode(environment)
    if not plan.rules:
        plan.add(NonFinite())
    for needed, staging in _STAGINGS.items():
        if any(key.startswith(needed) or key.endswith(needed) for key in environment):
            return _run(staging, environment, plan)
    msg = f"a staging of {', '.join(sorted(environment))}"
    raise NotStagedError(msg)


def _run(staging: str, environment: Environment, plan: Plan) -> dict[str, Outcome]:
    module, _, function = staging.partition(".")
    try:
        run = getattr(importlib.import_module(f"tests.cases.{module}"), function)
        with tempfile.TemporaryDirectory() as folder:
            outcomes: dict[str, Outcome] = run(environment, plan, Path(folder))
    except ImportError as error:
        msg = f"the package {error.name}"
        raise NotStagedError(msg) from error
    return outcomes
