"""A real Prometheus scrapes a real study, and what is shipped for it works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.export.conftest import (
    MONITORING,
    ROOT,
    Server,
    eventually,
    fetch,
    free_port,
    program,
)

DASHBOARD = json.loads((MONITORING / "grafana-dashboard.json").read_text())

StartServer = Callable[[int], Server]


class Study:
    """The study of ``sweep.py``, running with settings in its environment."""

    def __init__(self, setting: str, folder: Path) -> None:
        clean = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.export.sweep"],
            env={**clean, "TUNE_GUARD_PROMETHEUS": setting, "PYTHONPATH": str(ROOT)},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.wait_for("trained")

    def wait_for(self, word: str) -> None:
        """Wait until the study says a word."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n"

    def lose_a_gpu(self) -> None:
        """Run one more trial, whose GPU is lost."""
        assert self.process.stdin is not None
        self.process.stdin.write("fault\n")
        self.process.stdin.flush()
        self.wait_for("lost")

    def end(self) -> None:
        """Let the study end, and see that it ended well."""
        self.process.communicate("end\n", timeout=60)
        assert self.process.returncode == 0


StartStudy = Callable[[str], Study]


@pytest.fixture
def start_study(tmp_path: Path) -> Iterator[StartStudy]:
    """Start studies, and end them with the test."""
    started: list[Study] = []

    def start(setting: str) -> Study:
        started.append(Study(setting, tmp_path))
        return started[-1]

    yield start
    for study in started:
        study.process.kill()
        study.process.communicate()


def test_a_server_scrapes_a_study_and_our_alerts_fire(
    start_server: StartServer, start_study: StartStudy
) -> None:
    """Counts, reasons and GPU arrive; NaN fires at once, the fault when it comes."""
    port = free_port()
    study, server = start_study(str(port)), start_server(port)
    seen = 'tuneguard_trials_ended_total{reason="non_finite"}'
    ((labels, count),) = eventually(lambda: server.query(seen))
    assert (labels["outcome"], labels["blame"], count) == ("guard", "config", 6.0)
    assert "trial" not in " ".join(labels)
    eventually(lambda: "TuneGuardNonFinite" in server.firing())
    eventually(lambda: "TuneGuardTrialsDying" in server.firing())
    assert "TuneGuardMachineFault" not in server.firing()
    study.lose_a_gpu()
    eventually(lambda: "TuneGuardMachineFault" in server.firing())
    eventually(lambda: "TuneGuardGpuLost" in server.firing())
    assert "TuneGuardUnhealthy" not in server.firing()
    study.end()


def test_every_expression_of_the_dashboard_shows_something(
    start_server: StartServer, start_study: StartStudy
) -> None:
    """Each names existing metrics only, and the server answers it with data."""
    port = free_port()
    study, server = start_study(f"127.0.0.1:{port}"), start_server(port)
    study.lose_a_gpu()
    eventually(lambda: server.query("tuneguard_gpu_lost == 1"))
    names = set(server.get("label/__name__/values"))
    expressions = [
        target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]
    ]
    assert len(expressions) > 15
    # No memory error and no failure of the guard: these stay empty, as they should.
    quiet = ("ecc_uncorrected_errors", "guard_errors")
    for expression in expressions:
        used = set(re.findall(r"tuneguard_\w+", expression))
        spoken = expression.replace("$job", ".*").replace("$instance", ".*")
        found = server.query(spoken)
        if any(word in expression for word in quiet):
            assert found == []
        else:
            assert used <= names, expression
            assert found, expression
    assert set(re.findall(r"tuneguard_\w+", " ".join(expressions))) - names <= {
        "tuneguard_guard_errors_total"
    }


def test_the_dashboards_variables_are_answered(
    start_server: StartServer, start_study: StartStudy
) -> None:
    """Job and process can be chosen."""
    port = free_port()
    start_study(str(port))
    server = start_server(port)
    eventually(lambda: server.query("tuneguard_build_info"))
    variables = DASHBOARD["templating"]["list"]
    for query in (v["query"] for v in variables if v["type"] == "query"):
        metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()  # type: ignore[union-attr]
        metric = metric.replace("$job", ".*")
        assert server.get(f"label/{label}/values", **{"match[]": metric})


def test_every_rule_is_evaluated_without_an_error(
    start_server: StartServer, start_study: StartStudy
) -> None:
    """The server itself says so of each."""
    port = free_port()
    start_study(str(port))
    server = start_server(port)

    def health() -> list[str]:
        (group,) = server.get("rules")["groups"]
        return [rule["health"] for rule in group["rules"]]

    eventually(lambda: set(health()) == {"ok"})
    assert len(health()) == 8


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "rules", str(MONITORING / "tune_guard.rules.yml")],
        ["check", "config", str(MONITORING / "prometheus.yml")],
        ["test", "rules", str(Path(__file__).with_name("rules_test.yml"))],
    ],
    ids=["rules", "config", "unit-tests"],
)
def test_promtool_finds_no_fault_in_what_is_shipped(arguments: list[str]) -> None:
    """Syntax, and when exactly each alert fires and what it says."""
    done = subprocess.run(
        [program("promtool", "prometheus"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def promtool_check(metrics: str) -> None:
    """Let promtool look at metrics: names, units, types."""
    done = subprocess.run(
        [program("promtool", "prometheus"), "check", "metrics"],
        input=metrics,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_promtool_finds_no_fault_in_the_metrics(start_study: StartStudy) -> None:
    """Names, base units, types and help texts."""
    port = free_port()
    start_study(str(port))
    promtool_check(eventually(lambda: fetch(f"http://127.0.0.1:{port}/metrics")))


def test_the_endpoint_listens_on_loopback_alone(start_study: StartStudy) -> None:
    """Unless another address is given."""
    port = free_port()
    study = start_study(str(port))
    eventually(lambda: fetch(f"http://127.0.0.1:{port}/metrics"))
    table = Path(f"/proc/{study.process.pid}/net/tcp").read_text()
    listening = [row.split()[1] for row in table.splitlines() if f":{port:04X} " in row]
    assert f"0100007F:{port:04X}" in listening
    assert f"00000000:{port:04X}" not in listening


def test_a_text_file_is_written_whole(start_study: StartStudy, tmp_path: Path) -> None:
    """For the node exporter, which reads it at any moment."""
    path = tmp_path / "metrics" / "tune_guard.prom"
    study = start_study(str(path))
    study.lose_a_gpu()
    study.end()
    promtool_check(path.read_text())
    families = {f.name: f for f in text_string_to_metric_families(path.read_text())}
    samples = families["tuneguard_trials_ended"].samples
    ended = {sample.labels["reason"]: sample.value for sample in samples}
    assert ended["non_finite"] == 6.0
    assert ended["gpu_fault"] == 1.0
    assert [p.name for p in path.parent.iterdir()] == ["tune_guard.prom"]


def test_a_push_gateway_gets_the_last_state(
    start_study: StartStudy, tmp_path: Path
) -> None:
    """A real one; the study is over before anybody could scrape it."""
    binary = program("prometheus-pushgateway", "prometheus-pushgateway")
    port = free_port()
    with (tmp_path / "gateway.log").open("wb") as log:
        # Debian's package keeps what was pushed from one run to the next.
        arguments = [
            f"--web.listen-address=127.0.0.1:{port}",
            f"--persistence.file={tmp_path / 'pushed'}",
        ]
        gateway = subprocess.Popen([binary, *arguments], stdout=log, stderr=log)
    try:
        eventually(lambda: fetch(f"http://127.0.0.1:{port}/-/ready"))
        start_study(f"push+http://user:pw@127.0.0.1:{port}").end()
        pushed = fetch(f"http://127.0.0.1:{port}/metrics")
    finally:
        gateway.terminate()
        gateway.wait(timeout=60)
    pattern = r"^tuneguard_trials_ended_total{.*non_finite.*$"
    (line,) = re.findall(pattern, pushed, re.MULTILINE)
    assert line.endswith(" 6")
    assert 'job="tune_guard"' in line
    assert re.search(r'instance="[^"]+:\d+"', line)


def test_a_port_that_is_taken_costs_one_notice(
    start_study: StartStudy, tmp_path: Path
) -> None:
    """The second worker on a machine goes on, and its file is written."""
    port = free_port()
    first = start_study(str(port))
    eventually(lambda: fetch(f"http://127.0.0.1:{port}/metrics"))
    path = tmp_path / "second.prom"
    start_study(f"{port} {path}").end()
    assert "tuneguard_trials_ended_total" in path.read_text()
    assert "tuneguard_trials_ended_total" in fetch(f"http://127.0.0.1:{port}/metrics")
    first.end()
