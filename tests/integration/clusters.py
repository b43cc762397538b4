"""One local Ray cluster at a time: folders of tests need different ones."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def local_cluster(num_cpus: int) -> Iterator[None]:
    """Start Ray without dashboard, in place of the cluster of another folder.

    Clusters live for a whole session, so one may be left from the folder before.

    Args:
        num_cpus: Slots for trials; they need not be real cores.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray

        ray.shutdown()
        ray.init(
            num_cpus=num_cpus,
            include_dashboard=False,
            logging_level="ERROR",
            log_to_driver=False,
        )
        yield
        ray.shutdown()
