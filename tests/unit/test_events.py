"""The GPU telemetry of a report, for those who listen."""

from __future__ import annotations

from typing import Any

import pytest

from tune_guard.events import gpu_values
from tune_guard.observation import Keys


@pytest.mark.parametrize("bits", ["0x0000000000000060", ["0x60"], 96])
def test_throttle_reasons_may_be_hexadecimal(bits: Any) -> None:
    """As nvidia-smi prints them, and as the rules read them; nothing else is."""
    report = {"heat": bits, "gpu_clock_mhz": "0x60"}
    assert gpu_values(report, Keys(gpu_reasons="heat")) == {"gpu_reasons": 96.0}
