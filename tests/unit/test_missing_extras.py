"""An extra that is not installed is named, with the command that installs it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tune_guard.exceptions import ConfigError
from tune_guard.export.prometheus import Prometheus
from tune_guard.export.tensorboard import TensorBoard
from tune_guard.notify.targets import read_targets


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what the extras install."""
    for name in list(sys.modules):
        if name.split(".")[0] in ("apprise", "prometheus_client", "tensorboardX"):
            monkeypatch.delitem(sys.modules, name)
    for name in ("apprise", "prometheus_client", "tensorboardX"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "tune_guard.export.metrics", raising=False)


@pytest.mark.usefixtures("missing")
def test_another_service_needs_apprise() -> None:
    """Our own robots do not."""
    assert read_targets("dingtalk://tokentoken feishu://tokentoken")
    with pytest.raises(ConfigError, match=r"pip install 'tune-guard\[notify\]'"):
        read_targets("slack://a/b/c")


@pytest.mark.usefixtures("missing")
def test_metrics_need_their_library() -> None:
    """It is said when they are asked for."""
    with pytest.raises(ConfigError, match=r"pip install 'tune-guard\[prometheus\]'"):
        Prometheus("9464")


@pytest.mark.usefixtures("missing")
def test_runs_need_their_library(tmp_path: Path) -> None:
    """The same."""
    with pytest.raises(ConfigError, match=r"pip install 'tune-guard\[tensorboard\]'"):
        TensorBoard(tmp_path)
