"""Processes that end, are killed, fork, or come later: nothing is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.notify.robots import Robots, answers, never_answers
from tune_guard.notify.outbox_files import left_behind

ROOT = Path(__file__).parents[3]

HEAD = """
import sys
from tests.integration.notify.events import SWEEP, fault, nan
from tune_guard import listeners
from tune_guard.events import SweepStarted

def drained():
    ((_, dispatcher),) = listeners._told
    dispatcher.wait(60.0)
"""

ANNOUNCE = """
for number in range(300):
    listeners.announce(fault(f"train_a_{number}"))
"""

GREET = """
listeners.announce(SweepStarted(sweep="next"))
"""

Child = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    """Start a Python process that announces, with settings of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, alerts: str, **more: str) -> subprocess.Popen[str]:
        clean = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
        environment = {
            **clean,
            "TUNE_GUARD_ALERTS": alerts,
            "TUNE_GUARD_STATE": str(tmp_path),
            "PYTHONPATH": str(ROOT),
            **more,
        }
        process = subprocess.Popen(
            [sys.executable, "-c", HEAD + textwrap.dedent(code)],
            env=environment,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the end of a process that must end well; return what it logged."""
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    return errors


def ids(robots: Robots) -> list[str]:
    """Return the trials that arrived, each time that they did."""
    return re.findall(r"train_[a-z]+_\d+", robots.text())


def kept(folder: Path) -> int:
    """Return how many alerts wait on disk."""
    return sum(len(entries) for _, _, entries in left_behind(folder / "alerts"))


EVERY = {f"train_a_{number}" for number in range(300)}


def test_what_waits_at_the_exit_is_delivered(
    robots: Robots, child: Child, tmp_path: Path
) -> None:
    """A script that ends right after its last cut tells of it all the same."""
    finish(child(ANNOUNCE, robots.url("dingtalk")))
    assert set(ids(robots)) == EVERY
    assert kept(tmp_path) == 0
    assert list((tmp_path / "alerts").glob("*.jsonl")) == []


def test_what_cannot_be_delivered_at_the_exit_is_sent_by_the_next_process(
    robots: Robots, child: Child, tmp_path: Path
) -> None:
    """The server hangs for the first process and is well for the second."""
    robots.faults = [never_answers] * 3
    finish(child(ANNOUNCE, robots.url("dingtalk")))
    assert robots.messages == []
    assert kept(tmp_path) == 301
    robots.faults = []
    finish(child(GREET, robots.url("dingtalk")))
    assert set(ids(robots)) == EVERY
    assert kept(tmp_path) == 0


def test_another_service_does_not_get_what_waits_for_the_first(
    robots: Robots, child: Child, tmp_path: Path
) -> None:
    """A second team's robot is not told of the first team's sweep."""
    robots.faults = [answers(503)] * 9
    finish(child(ANNOUNCE, robots.url("dingtalk")))
    before = kept(tmp_path)
    with Robots(token="c" * 32) as other:
        finish(child(GREET, other.url("dingtalk")))
        assert other.requests == 0
    assert kept(tmp_path) == before == 301


def test_a_new_secret_of_the_same_robot_sends_what_the_old_one_could_not(
    robots: Robots, child: Child, tmp_path: Path
) -> None:
    """Who put a wrong secret right gets what was missed."""
    said = finish(child(ANNOUNCE, robots.url("feishu", secret="SECwrong")))
    assert "the signature does not match" in said
    finish(child(GREET, robots.url("feishu")))
    assert set(ids(robots)) == EVERY


def test_kill_9_loses_nothing(robots: Robots, child: Child, tmp_path: Path) -> None:
    """What was handed over is on disk, though not one byte was delivered."""
    robots.faults = [never_answers] * 3
    code = ANNOUNCE + "drained(); print('all', flush=True); sys.stdin.read()"
    process = child(code, robots.url("dingtalk"))
    assert process.stdout is not None
    assert process.stdout.readline() == "all\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert robots.messages == []
    robots.faults = []
    finish(child(GREET, robots.url("dingtalk")))
    assert set(ids(robots)) == EVERY
    assert kept(tmp_path) == 0


def test_kill_9_between_two_messages_sends_the_rest(
    robots: Robots, child: Child, tmp_path: Path
) -> None:
    """What the service took is not sent again."""
    code = """
    listeners.announce(fault("train_b_1"))
    sys.stdin.readline()
    for number in range(300):
        listeners.announce(fault(f"train_a_{number}"))
    drained()
    print("all", flush=True)
    sys.stdin.read()
    """
    process = child(code, robots.url("dingtalk"))
    assert process.stdin is not None
    assert process.stdout is not None
    assert robots.wait_for(lambda: len(robots.messages) == 1)
    # The answer is on its way back: until it is there, the message counts as unsent.
    while kept(tmp_path):
        time.sleep(0.01)
    process.stdin.write("on\n")
    process.stdin.flush()
    assert process.stdout.readline() == "all\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    finish(child(GREET, robots.url("dingtalk")))
    assert ids(robots).count("train_b_1") == 1
    assert set(ids(robots)) == EVERY | {"train_b_1"}


def test_a_torn_line_is_passed_over(
    robots: Robots, child: Child, tmp_path: Path
) -> None:
    """A process may die while it writes; what stands before is sent."""
    robots.faults = [answers(503)] * 9
    finish(child(ANNOUNCE, robots.url("dingtalk")))
    (path,) = (tmp_path / "alerts").glob("*.jsonl")
    whole = path.read_bytes()
    path.write_bytes(b"\xff\xfe\n[]\n{}\n" + whole + whole.splitlines()[0][:-9])
    robots.faults = []
    finish(child(GREET, robots.url("dingtalk")))
    assert set(ids(robots)) == EVERY


def test_alerts_of_another_version_are_told_as_far_as_they_can_be_read(
    robots: Robots, child: Child, tmp_path: Path
) -> None:
    """Facts that are missing, or of another kind, hold up nothing."""
    robots.faults = [answers(503)] * 9
    finish(child(ANNOUNCE, robots.url("dingtalk")))
    (path,) = (tmp_path / "alerts").glob("*.jsonl")
    marks = json.loads(path.read_text().splitlines()[0])["for"]
    odd = [
        {"kind": "share", "facts": {"region": {"param": 1}}},
        {"kind": "share", "facts": 5},
        {"kind": "end", "facts": {"ended": 7}},
        {"kind": "fault", "facts": {"gpu_uuid": ["x"]}, "step": "y", "reason": "r"},
        {"kind": "fault", "reason": 7, "message": None},
    ]
    with path.open("a") as file:
        for number, alert in enumerate(odd):
            line = {"alert": {**alert, "trials": [f"train_odd_{number}"]}}
            file.write(json.dumps({"id": 9000 + number, "for": marks, **line}) + "\n")
    robots.faults = []
    finish(child(GREET, robots.url("dingtalk")))
    assert set(ids(robots)) >= EVERY
    assert {"train_odd_0", "train_odd_1", "train_odd_3"} <= set(ids(robots))
    assert kept(tmp_path) == 0


def test_a_living_process_keeps_its_own(
    robots: Robots, child: Child, tmp_path: Path
) -> None:
    """Another process does not take over what a living one will send."""
    robots.faults = [answers(503)]
    code = (
        "listeners.announce(fault('train_a_1')); drained(); print(); sys.stdin.read()"
    )
    process = child(code, robots.url("dingtalk"))
    assert process.stdout is not None
    process.stdout.readline()
    assert robots.wait_for(lambda: robots.requests == 1)
    finish(child(GREET, robots.url("dingtalk")))
    finish(process)
    finish(child(GREET, robots.url("dingtalk")))
    assert ids(robots).count("train_a_1") == 1


def test_forked_and_spawned_processes_deliver_their_own(
    robots: Robots, child: Child, tmp_path: Path
) -> None:
    """Parent, forked child and process of a pool each announce and end."""
    code = """
    import multiprocessing, os
    from tests.integration.notify.test_processes import announce_one
    listeners.announce(fault("train_parent_1"))
    drained()
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        process = context.Process(target=announce_one, args=(f"train_{method}_1",))
        process.start()
        process.join()
        assert process.exitcode == 0
    listeners.announce(fault("train_parent_2"))
    """
    finish(child(code, robots.url("dingtalk")))
    found = {"train_parent_1", "train_parent_2", "train_fork_1", "train_spawn_1"}
    assert set(ids(robots)) == found
    assert kept(tmp_path) == 0


def announce_one(name: str) -> None:
    """Announce one fault, as a worker of a pool does."""
    from tests.integration.notify.events import fault
    from tune_guard import listeners

    listeners.announce(fault(name))


@pytest.mark.parametrize(
    "alerts",
    [
        "dingtalk://",
        "dingtalk://tokentoken?secrt=SECabcdef",
        "/does/not/exist",
        "nonsense",
        "nosuchservice://x",
    ],
)
def test_a_wrong_setting_is_said_once_and_harms_nothing(
    child: Child, alerts: str
) -> None:
    """The sweep goes on, and the setting's own text is not shown."""
    said = finish(child(ANNOUNCE + "print('fine')", alerts))
    assert said.count("TUNE_GUARD_ALERTS is set, but has no effect") == 1
    assert "SECabcdef" not in said
    assert "tokentoken" not in said


def test_a_folder_that_cannot_be_written_is_said_and_alerts_are_still_sent(
    robots: Robots, child: Child
) -> None:
    """They wait in memory alone."""
    said = finish(
        child(ANNOUNCE, robots.url("dingtalk"), TUNE_GUARD_STATE="/proc/nowhere")
    )
    assert said.count("Alerts cannot be kept in /proc/nowhere") == 1
    assert set(ids(robots)) == EVERY


def test_settings_from_a_file(robots: Robots, child: Child, tmp_path: Path) -> None:
    """Secrets may lie in a file that only the user can read."""
    path = tmp_path / "alerts.txt"
    path.write_text(f"# the team's robot\n\n{robots.url('feishu')}\n")
    finish(child(ANNOUNCE, str(path)))
    assert set(ids(robots)) == EVERY
