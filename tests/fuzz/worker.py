"""One target under atheris: ``python -m tests.fuzz.worker NAME [FLAGS]``."""

from __future__ import annotations

import logging
import sys
import warnings


def main() -> None:
    """Instrument the package as it is imported, then fuzz; this does not return."""
    import atheris

    name = sys.argv.pop(1)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with atheris.instrument_imports(include=["tune_guard", "yaml"]):
        from tests.fuzz.targets import every_target

        target = every_target()[name]
        for seed in target.seeds():  # so that what is imported late is instrumented
            target.call(seed)
    atheris.Setup(sys.argv, target.call)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
