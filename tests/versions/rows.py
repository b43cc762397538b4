"""Which versions are run together, and which tests judge them.

The oldest of each is what ``pyproject.toml`` states; the newest on Python 3.11 is
what ``constraints.txt`` pins and every change is tested with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_TRUNK = (
    "tests/unit",
    "tests/contract",
    "tests/property",
    "tests/cases",
    "--ignore=tests/unit/worker",
)
_ON_RANKS = "tests/cases/test_cases.py::test_a_case_ends_as_expected"
_NO_RANKS = f"--deselect={_ON_RANKS}[TG-decision-reaches-every-rank]"
_RAY = (
    "tests/integration/ray/test_function_trainables.py",
    "tests/integration/ray/test_class_trainables.py",
    "tests/integration/ray/test_experiment_stop.py",
    "tests/integration/ray/test_schedulers.py",
    "tests/integration/ray/test_searchers.py",
    "tests/integration/ray/test_restore.py",
    "tests/integration/ray/test_load_sweep.py",
)
_OPTUNA = (
    "tests/integration/optuna/test_sql.py",
    "tests/integration/optuna/test_locked_sqlite.py",
    "tests/integration/optuna/test_spared.py",
)
_TORCH = (
    "tests/unit/worker",
    "tests/unit/test_coercion.py",
    "tests/unit/test_intake.py",
    "tests/unit/test_strict_json.py",
    "tests/integration/worker/test_lightning.py",
    "tests/integration/worker/test_transformers.py",
    "tests/integration/worker/test_optuna.py",
    "tests/integration/optuna/test_example.py",
    # Transformers 4.46 was written for NumPy 1.
    "-Wignore:numpy.core is deprecated:DeprecationWarning",
)
_ENGINES = ("ray", "optuna", "gpu", "notify", "prometheus", "tensorboard", "report")
_NO_TORCH = ("torch", "lightning", "transformers")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One environment and what is run in it.

    Attributes:
        python: The interpreter's version, ``major.minor``.

        extras: Those of the package that are installed, besides ``dev``.

        pins: Distribution to version; all else is the newest that goes with them.

        absent: Modules that are not there: a test that imports one is skipped.

        parallel: Paths and options for the tests that share no cluster.

        alone: Paths of the tests that run one at a time.
    """

    python: str
    extras: tuple[str, ...] = _ENGINES
    pins: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = _NO_TORCH
    parallel: tuple[str, ...] = (*_TRUNK, _NO_RANKS)
    alone: tuple[str, ...] = (*_RAY, *_OPTUNA)


ROWS: dict[str, Row] = {
    "oldest": Row(
        python="3.11",
        pins={
            "ray": "2.58.0",
            "optuna": "4.9.0",
            "cyclopts": "4.0.0",
            "fsspec": "2023.5.0",
            "PyYAML": "6.0",
            "rich": "13.6.0",
        },
    ),
    "oldest-torch": Row(
        python="3.11",
        extras=("ray", "optuna", "torch", "gpu", "lightning", "transformers"),
        pins={
            "torch": "2.6.0",
            "lightning": "2.4.0",
            "transformers": "4.46.0",
            "accelerate": "1.1.0",
        },
        absent=(),
        parallel=_TORCH,
        alone=(),
    ),
    "python-3.12": Row(python="3.12", pins={"ray": "2.60.0", "optuna": "5.0.0"}),
    "python-3.13": Row(python="3.13", pins={"ray": "2.60.0", "optuna": "5.0.0"}),
    "python-3.13-old-engines": Row(
        python="3.13", pins={"ray": "2.58.0", "optuna": "4.9.0"}
    ),
}
