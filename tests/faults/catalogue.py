"""Every fault by name, with what must be recorded of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.faults import optuna_faults, ray_faults, resource_faults
from tests.faults.ledger import Count
from tests.faults.ray_faults import DIED, NAN, one

Run = Callable[[Path], Count]

FAULTS: dict[str, Run] = {
    # ------------------------------------------------------- trials and workers in Ray
    "NaN in a report": one("nan", NAN),
    "NaN between reports": one("worker_nan", ("non_finite", 2)),
    "an exception": one("raises", ("error:ValueError", 2)),
    "GPU memory runs out": one("gpu_memory", ("error:cuda_oom", 2)),
    "a MemoryError": one("no_memory", ("error:MemoryError", 2)),
    "worker killed (-9)": one("killed", DIED),
    "worker crashes (SIGSEGV)": one("crashes", DIED),
    "worker killed, retried anew": one("lost_once", ("non_finite", 5), retries=1),
    "worker killed, retried from checkpoint": one(
        "lost_once_saved", ("non_finite", 5), retries=1
    ),
    "GPU lost at every try": one("worker_gpu", ("gpu_fault", 3), retries=1),
    "GPU lost once, retried": one("worker_gpu_once", None, retries=1),
    "trial hangs": one("hangs", ("stalled", 2)),
    "trial hangs with Python's lock": one("holds_the_lock", ("stalled", 2)),
    "trial never reports": one("never_reports", ("stalled", None)),
    "trial frozen (SIGSTOP)": one("frozen", ("stalled", 2)),
    "trial hangs once, retried": one("hangs_once", None, retries=1),
    "host memory runs out": resource_faults.host_memory,
    "trial paused, then resumed": ray_faults.paused,
    "weights taken over (PBT)": ray_faults.exploited,
    "time budget spent": ray_faults.out_of_time,
    "clocks jump by hours": ray_faults.clocks_jump,
    "NVML answers with errors": ray_faults.nvml_errs,
    "fail_fast": ray_faults.fail_fast,
    # --------------------------------------------------------------- the driver in Ray
    "driver killed (-9), then interrupted": resource_faults.driver_killed,
    # -------------------------------------------------------------------------- Optuna
    "NaN, two workers, one SQLite file": optuna_faults.two_workers,
    "worker killed (-9), then stale": optuna_faults.stale,
    "worker killed after the cut, retried": optuna_faults.inherited,
    "worker killed while it records": optuna_faults.half_written,
    "GPU lost, queued again": optuna_faults.gpu_lost,
    "SQLite file locked": optuna_faults.locked,
    "database gone (server killed)": optuna_faults.server_gone,
    # ------------------------------------------------------------------------ storages
    "Ray: storage full": resource_faults.ray_disk_full,
    "Ray: storage read-only": resource_faults.ray_read_only,
    "Ray: bucket refuses": resource_faults.bucket_refuses,
    "Ray: bucket stalls": resource_faults.bucket_stalls,
    "Optuna: SQLite on a full disk": resource_faults.sqlite_disk_full,
    "Optuna: journal on a read-only disk": resource_faults.journal_read_only,
    "evidence on a full disk": resource_faults.evidence_disk_full,
}
