"""Many events, few messages: what arrives, when, and what is kept until then."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.integration.notify.clock import VirtualClock
from tests.integration.notify.events import SWEEP, completed, fault, nan, plateau
from tests.integration.notify.robots import (
    SECRET,
    TOKEN,
    Robots,
    answers,
    closes,
    never_answers,
)
from tune_guard.dispatcher import Dispatcher
from tune_guard.events import SweepEnded, SweepStarted, TrialStarted
from tune_guard.notify.alerts import Alerts
from tune_guard.notify.outbox_files import left_behind

Start = Callable[..., Alerts]

KINDS = ("dingtalk", "feishu")


def ids(robots: Robots) -> set[str]:
    """Return the trials that arrived."""
    return set(re.findall(r"train_[0-9a-f]+_\d+", robots.text()))


def kept(folder: Path) -> int:
    """Return how many alerts wait on disk."""
    return sum(len(entries) for _, _, entries in left_behind(folder / "alerts"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_burst_of_500_becomes_a_few_messages_that_name_every_trial(
    timed_robots: Robots, clock: VirtualClock, start: Start, kind: str
) -> None:
    """The first goes at once; the rest is merged."""
    alerts = start(timed_robots.url(kind))
    names = [f"train_a1b2c_{number:05d}" for number in range(500)]
    alerts.handle(fault(names[0]))
    assert timed_robots.wait_for(lambda: len(timed_robots.messages) == 1)
    for name in names[1:]:
        alerts.handle(fault(name))
    assert clock.run_until(lambda: len(ids(timed_robots)) == 500)
    assert ids(timed_robots) == set(names)
    assert len(timed_robots.messages) == 2
    assert timed_robots.over_limit == 0


@pytest.mark.parametrize("kind", KINDS)
def test_10000_cuts_in_a_minute_lose_nothing_and_stay_under_the_limit(
    timed_robots: Robots, clock: VirtualClock, start: Start, kind: str
) -> None:
    """Every trial is named, though its names fill more messages than it may send."""
    if kind == "feishu":
        timed_robots.per_minute = 100
    alerts = start(timed_robots.url(kind), on="fault,cut")
    names = [f"train_a1b2c_{number:05d}" for number in range(10_000)]
    for name in names:
        alerts.handle(plateau(f"{name}_lr=0.0001,weight_decay=0.01,dropout=0.3"))
        clock.advance(0.006)
    assert clock.run_until(lambda: len(ids(timed_robots)) == 10_000)
    assert ids(timed_robots) == set(names)
    assert timed_robots.over_limit == 0
    assert timed_robots.refusals == []
    assert len(timed_robots.messages) > 30
    assert max(message.size for message in timed_robots.messages) < 20_000


def test_several_processes_keep_a_robots_limit_together(
    timed_robots: Robots, clock: VirtualClock, start: Start
) -> None:
    """Forty messages of eight senders need three minutes, and none is refused."""
    senders = [start(timed_robots.url("dingtalk")) for _ in range(8)]
    for round_ in range(5):
        for number, alerts in enumerate(senders):
            alerts.handle(fault(f"train_{number}_{round_}"))
        due = 8 * (round_ + 1)
        assert clock.run_until(lambda n=due: len(ids(timed_robots)) == n)
    assert len(timed_robots.messages) == 40
    assert timed_robots.over_limit == 0


def test_a_robot_silenced_by_others_is_waited_for(
    timed_robots: Robots, clock: VirtualClock, start: Start
) -> None:
    """Ten minutes later everything arrives; it is not asked in between."""
    for _ in range(20):
        assert not timed_robots.is_too_fast()
    alerts = start(timed_robots.url("dingtalk"))
    for number in range(50):
        alerts.handle(fault(f"train_a_{number}"))
    began = clock.time()
    assert clock.run_until(lambda: len(ids(timed_robots)) == 50)
    assert timed_robots.over_limit == 1
    assert clock.time() - began >= 600.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_in_trouble_is_tried_until_all_has_arrived(
    timed_robots: Robots, clock: VirtualClock, start: Start, kind: str
) -> None:
    """Each failure is followed by a longer wait, and nothing is lost."""
    timed_robots.faults = [answers(503), closes, answers(500), answers(200, b"<html>")]
    alerts = start(timed_robots.url(kind))
    for number in range(30):
        alerts.handle(fault(f"train_a_{number}"))
    assert clock.run_until(lambda: len(ids(timed_robots)) == 30)
    assert timed_robots.requests <= 7


def test_429_is_obeyed(timed_robots: Robots, clock: VirtualClock, start: Start) -> None:
    """The next request comes after the wait that the server asked for."""
    timed_robots.faults = [answers(429, b"", Retry_After="120")]
    alerts = start(timed_robots.url("feishu"))
    began = clock.time()
    alerts.handle(fault("train_a_1"))
    assert clock.run_until(lambda: len(timed_robots.messages) == 1)
    assert timed_robots.messages[0].at - began >= 120.0


def test_a_refusal_is_said_once_and_asked_again_by_the_hour(
    timed_robots: Robots,
    clock: VirtualClock,
    start: Start,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once the robot's settings are changed, what was kept arrives."""
    timed_robots.keyword = "sweep-alert"
    alerts = start(timed_robots.url("dingtalk"))
    for number in range(20):
        alerts.handle(fault(f"train_a_{number}"))
    began = clock.time()
    assert clock.run_until(lambda: timed_robots.requests == 4)
    assert clock.time() - began >= 3 * 3600.0
    assert kept(tmp_path) == 20
    said = [r.message for r in caplog.records if "310000" in r.message]
    assert len(said) == 1
    assert "keyword" in said[0]
    timed_robots.keyword = ""
    assert clock.run_until(lambda: len(ids(timed_robots)) == 20)
    assert kept(tmp_path) == 0


def test_a_refused_message_shows_why_it_waits(
    timed_robots: Robots, clock: VirtualClock, start: Start, tmp_path: Path
) -> None:
    """The reason lies beside it on disk."""
    timed_robots.allowed = False
    alerts = start(timed_robots.url("feishu"))
    alerts.handle(fault("train_a_1"))
    clock.run_until(lambda: timed_robots.requests == 2)
    ((_, _, (entry,)),) = left_behind(tmp_path / "alerts")
    assert "19022 Ip Not Allowed" in next(iter(entry.why.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_the_keyword_is_in_every_message(
    timed_robots: Robots, clock: VirtualClock, start: Start, kind: str
) -> None:
    """Also where one event was split over several messages."""
    timed_robots.keyword = "告警 sweep"
    timed_robots.per_minute = 100
    alerts = start(timed_robots.url(kind, keyword="告警 sweep"))
    for number in range(3000):
        alerts.handle(fault(f"train_a_{number}"))
    assert clock.run_until(lambda: len(ids(timed_robots)) == 3000)
    assert len(timed_robots.messages) > 1
    assert timed_robots.refusals == []


@pytest.mark.parametrize("kind", KINDS)
def test_texts_over_the_size_limit_are_cut_and_none_is_refused(
    timed_robots: Robots, clock: VirtualClock, start: Start, kind: str
) -> None:
    """Names of 100 kB in four-byte letters, and sentences like them."""
    alerts = start(timed_robots.url(kind))
    for number in range(40):
        name = f"train_a_{number} " + "🔥" * 25_000
        alerts.handle(fault(name, message="x" * 100_000, sweep="s" * 100_000))
    assert clock.run_until(lambda: len(ids(timed_robots)) == 40)
    assert timed_robots.refusals == []


MARKUP = (
    '<at user_id="all">all</at> [click](http://evil.example) **b** `c` @everyone'
    " <!channel> <script>alert(1)</script> # h\n> quote\u202e | a & b"
)


@pytest.mark.parametrize("kind", KINDS)
def test_markup_in_names_is_only_text(
    timed_robots: Robots, clock: VirtualClock, start: Start, kind: str
) -> None:
    """Neither a name of a trial nor of a sweep or metric can call or link."""
    alerts = start(timed_robots.url(kind))
    alerts.handle(
        fault(f"train_a_1{MARKUP}", sweep=MARKUP, message=MARKUP, host=MARKUP)
    )
    assert clock.run_until(lambda: len(timed_robots.messages) == 1)
    text = timed_robots.messages[0].text
    assert "train_a_1" in text
    assert not set("<>`*[]@&|#\u202e") & set(text)
    assert "://" not in text


def test_a_hanging_service_does_not_hold_up_another(
    timed_robots: Robots, clock: VirtualClock, start: Start
) -> None:
    """Each service has its own thread."""
    with Robots(clock=clock.time, token="b" * 32) as hanging:
        hanging.faults = [never_answers]
        alerts = start(f"{hanging.url('feishu')} {timed_robots.url('dingtalk')}")
        alerts.handle(fault("train_a_1"))
        assert hanging.wait_for(lambda: hanging.requests == 1)
        assert timed_robots.wait_for(lambda: len(timed_robots.messages) == 1)


def test_announcements_return_while_a_server_hangs(
    settings_of: Callable[..., object], clock: VirtualClock, tmp_path: Path
) -> None:
    """Nothing waits for it, and everything is on disk, the summary too."""
    with Robots(clock=clock.time) as hanging:
        hanging.faults = [never_answers]
        settings = settings_of(hanging.url("dingtalk"))
        dispatcher = Dispatcher(
            lambda: Alerts(settings, clock.as_clock()),  # type: ignore[arg-type]
            exit_within_s=0.0,
        )
        for number in range(1000):
            dispatcher.put(fault(f"train_a_{number}"))
        assert clock.run_until(lambda: kept(tmp_path) == 1000)
        dispatcher.close()
        assert dispatcher.dropped == 0
        assert kept(tmp_path) == 1000 + 1


def test_a_plateau_is_worth_no_message(
    timed_robots: Robots, clock: VirtualClock, start: Start
) -> None:
    """What the guard cuts every day waits for the summary."""
    alerts = start(timed_robots.url("dingtalk"))
    for number in range(4):
        alerts.handle(plateau(f"train_a_{number}"))
    alerts.handle(fault("train_b_9"))
    assert clock.run_until(lambda: len(timed_robots.messages) == 1)
    assert "plateau" not in timed_robots.text()


def test_only_the_first_nan_of_a_sweep_is_told(
    timed_robots: Robots, clock: VirtualClock, start: Start
) -> None:
    """The second is told by the share of trials that die of it."""
    alerts = start(timed_robots.url("dingtalk"))
    for number in range(3):
        alerts.handle(nan(f"train_a_{number}"))
    alerts.handle(fault("train_b_9"))
    assert clock.run_until(lambda: "train_b_9" in ids(timed_robots))
    assert ids(timed_robots) == {"train_a_0", "train_b_9"}
    assert "First non-finite trial of the sweep: train_a_0 at step 3" in (
        timed_robots.text()
    )


def test_the_first_nan_is_told_by_one_process_alone(
    timed_robots: Robots, clock: VirtualClock, start: Start
) -> None:
    """Eight workers of one study notice it at once."""
    for number in range(8):
        alerts = start(timed_robots.url("dingtalk"))
        alerts.handle(nan(f"train_a_{number}"))
        alerts.handle(fault(f"train_b_{number}"))
    assert clock.run_until(lambda: timed_robots.text().count("train_b_") == 8)
    assert {name for name in ids(timed_robots) if "_a_" in name} == {"train_a_0"}


def test_a_share_that_dies_is_told_with_the_region_that_kills(
    timed_robots: Robots, clock: VirtualClock, start: Start
) -> None:
    """Nine of thirty died, all of them at high learning rates."""
    alerts = start(timed_robots.url("dingtalk"), on="share")
    alerts.handle(SweepStarted(sweep=SWEEP, metric="loss"))
    for number in range(30):
        params = {"lr": 0.001 * (number + 1), "seed": number * 7 % 5}
        alerts.handle(
            TrialStarted(sweep=SWEEP, trial=f"train_a_{number}", params=params)
        )
    for number in range(22, 30):
        alerts.handle(nan(f"train_a_{number}"))
    assert clock.run_until(lambda: len(timed_robots.messages) == 1)
    text = timed_robots.text()
    assert "8 of 30 trials died of non_finite" in text
    assert "8 of these 8 have lr at or above 0.023; of the other 22, 0 do." in text
    assert ids(timed_robots) == {f"train_a_{number}" for number in range(22, 30)}


def test_the_end_is_told_with_its_summary(
    timed_robots: Robots, clock: VirtualClock, start: Start
) -> None:
    """Counts by outcome and reason, compute, and the best trial."""
    alerts = start(timed_robots.url("feishu"), on="end")
    alerts.handle(SweepStarted(sweep=SWEEP, metric="loss"))
    for number in range(20):
        event = plateau if number % 4 == 0 else completed
        alerts.handle(event(f"train_a_{number}", time_s=360.0, saved_s=180.0))
    alerts.handle(SweepEnded(sweep=SWEEP, best_trial="train_a_3", best_value=0.03125))
    assert clock.run_until(lambda: len(timed_robots.messages) == 1)
    text = timed_robots.text()
    assert "The sweep has ended: 20 trials" in text
    assert "cut by the guard: 5 (plateau 5)" in text
    assert "completed: 15" in text
    assert "Best: trial train_a_3, loss 0.03125" in text
    assert "Compute: 2.0 h spent, 1.0 h saved by cutting" in text


def test_chinese_is_a_setting(
    timed_robots: Robots, clock: VirtualClock, start: Start
) -> None:
    """The words are Chinese; ids, names and numbers are what they are."""
    alerts = start(timed_robots.url("dingtalk"), lang="zh")
    alerts.handle(nan("train_a_1"))
    assert clock.run_until(lambda: len(timed_robots.messages) == 1)
    text = timed_robots.text()
    assert "本次搜索首个出现 NaN/Inf 的试验：train_a_1，第 3 步" in text
    assert "loss = NaN" in text
    assert "Lower the learning rate" not in text


def test_a_clock_that_is_off_costs_no_message(
    robots: Robots,
    settings_of: Callable[..., object],
    clock: VirtualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """This machine is three hours behind the server: said once, made up for."""
    settings = settings_of(robots.url("dingtalk"))
    robots.clock = lambda: clock.time() + 3 * 3600.0
    for service in settings.services:  # type: ignore[attr-defined]
        service._clock = clock.time
    alerts = Alerts(settings, clock.as_clock())  # type: ignore[arg-type]
    alerts.handle(fault("train_a_1"))
    assert clock.run_until(lambda: len(robots.messages) == 1)
    alerts.close(0.0)
    said = [r.message for r in caplog.records if "clock is" in r.message]
    assert len(said) == 1


def test_secrets_are_in_no_log_and_no_file(
    timed_robots: Robots,
    clock: VirtualClock,
    start: Start,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever fails, and however it is written down."""
    caplog.set_level(logging.DEBUG)
    secret = "SEC+/odd=&secret%"
    timed_robots.faults = [answers(503), closes]
    urls = [
        timed_robots.url("dingtalk", secret=secret),
        timed_robots.url("feishu", secret=secret),
        f"dingtalk+http://robot.invalid/robot/send?access_token={TOKEN}x&secret={SECRET}",
    ]
    alerts = start(" ".join(urls))
    for number in range(10):
        alerts.handle(fault(f"train_a_{number}"))
    clock.run_until(lambda: timed_robots.requests >= 6)
    files = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    written = "\n".join([caplog.text, *files, *map(str, tmp_path.rglob("*"))])
    assert timed_robots.refusals
    assert "train_a_1" in written
    for hidden in (secret, SECRET, TOKEN, quote(secret, safe="")):
        assert hidden not in written


def test_only_the_user_can_read_what_waits(
    timed_robots: Robots, clock: VirtualClock, start: Start, tmp_path: Path
) -> None:
    """Folders and files are closed to others."""
    timed_robots.allowed = False
    start(timed_robots.url("dingtalk")).handle(fault("train_a_1"))
    clock.run_until(lambda: timed_robots.requests == 1)
    found = list((tmp_path / "alerts").rglob("*"))
    assert found
    for path in [*found, tmp_path / "alerts"]:
        assert path.stat().st_mode & 0o077 == 0, path
