"""Print each part that is asked for, or all of them."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import warnings
from collections.abc import Callable

from tests.benchmarks.scale.limits import Limits


def _parts() -> dict[str, Callable[[Limits], None]]:
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    from tests.benchmarks.scale import controller, study, sweep

    return {
        "controller": controller.measure,
        "study": study.measure,
        "sweep": sweep.measure,
    }


def main() -> int:
    """Run the parts; return 1 where a limit was not kept."""
    parts = _parts()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    chosen = parser.parse_args().parts or list(parts)
    unknown = set(chosen) - set(parts)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    limits = Limits()
    for name in chosen:
        print(
            f"== {name}: {sys.modules[parts[name].__module__].__doc__}".splitlines()[0]
        )
        parts[name](limits)
    return 0 if limits.kept else 1


if __name__ == "__main__":
    sys.exit(main())
