"""Read a study's first trial back: ``python -m tests.cases.reload ADDRESS STUDY``."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage, JournalStorage, get_storage
from optuna.storages.journal import JournalFileBackend


def open_storage(address: str) -> BaseStorage:
    """Open a storage by its address; ``journal:PATH`` is a journal file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        if address.startswith("journal:"):
            return JournalStorage(JournalFileBackend(address.removeprefix("journal:")))
        return get_storage(address)


def stored_trial(study: optuna.Study) -> dict[str, Any]:
    """Return state and attributes of the first trial."""
    (trial,) = study.get_trials(deepcopy=False)
    return {"state": trial.state.name, **trial.user_attrs}


if __name__ == "__main__":
    address, name = sys.argv[1:]
    study = optuna.load_study(study_name=name, storage=open_storage(address))
    print(json.dumps(stored_trial(study)))
