"""Run every benchmark that needs nothing but this repository, one after another."""

from __future__ import annotations

from tests.benchmarks import (
    load_sweep,
    monitor,
    optuna_pruner,
    ray_stopper,
    worker_step,
)


def main() -> None:
    """Print each benchmark's figures under its name."""
    for benchmark in (monitor, ray_stopper, optuna_pruner, worker_step, load_sweep):
        print(f"== {benchmark.__name__}: {(benchmark.__doc__ or '').splitlines()[0]}")
        benchmark.main()
        print()


if __name__ == "__main__":
    main()
