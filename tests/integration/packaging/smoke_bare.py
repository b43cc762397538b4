"""Run in an environment that holds the package and its bare needs."""

from __future__ import annotations

import math
import sys
from importlib.util import find_spec
from pathlib import Path

from tune_guard import Policy, TrialGuard

there = [name for name in sys.argv[1:] if find_spec(name)]
print(", ".join(there) or "no engine")

policy = Policy.default("val_loss", "min", warmup_steps=5, patience=20)
Path("policy.yaml").write_text(policy.to_yaml(), encoding="utf-8")
print("same policy" if Policy.from_yaml("policy.yaml") == policy else "another policy")

guard = TrialGuard(policy)
for loss in (1.0, 0.5, 0.4, math.nan):
    guard.check_epoch(loss)
record = guard.record()
print(f"{record.reason} at {record.step}")
