"""A sweep that Ray's memory monitor interferes with: ``-m tests.faults.memory FOLDER``.

The monitor's threshold is set 3 GB above what is in use, and is Ray's to read once:
hence a process and a cluster of its own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

_ROOM_KB = 3_000_000


def threshold() -> float:
    """Return the share of the memory that is in use, and 3 GB more."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    known = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    used = known["MemTotal"] - known["MemAvailable"]
    return min(0.95, (used + _ROOM_KB) / known["MemTotal"])


def main(folder: Path) -> None:
    """Run the sweep and print what is recorded of it."""
    settings = {"usage_threshold": threshold(), "monitor_refresh_ms": 100}
    os.environ |= {f"RAY_memory_{name}": str(v) for name, v in settings.items()}
    from tests.faults.processes import start_ray
    from tests.faults.ray_faults import recorded, sweep

    start_ray(num_cpus=1, address="local")
    sweep(folder, {"host_memory": None})
    found = recorded(str(folder / "sweep"))
    print(json.dumps([[trial, *verdict] for trial, verdict in found]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
