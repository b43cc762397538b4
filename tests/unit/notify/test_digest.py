"""Many alerts in one message."""

from __future__ import annotations

import pytest

from tune_guard.notify.alert import Alert, Kind
from tune_guard.notify.digest import IDS_PER_ALERT, compose, split
from tune_guard.notify.service import Delivery, Limit
from tune_guard.notify.texts import Language


class Sized:
    """A service that takes so many bytes."""

    name = mark = "sized"
    limit = Limit(count=1)

    def __init__(self, most_bytes: int, keyword: str = "") -> None:
        self.most_bytes, self.keyword = most_bytes, keyword

    def size(self, title: str, body: str) -> int:
        """Return the bytes of both."""
        return len((title + body).encode())

    def send(self, title: str, body: str, within_s: float) -> Delivery:
        """Take nothing."""
        raise NotImplementedError


def faults(count: int, **more: object) -> list[Alert]:
    """Return as many faults."""
    return [
        Alert(
            kind=Kind.FAULT,
            sweep="s",
            trials=(f"t{n}",),
            reason="gpu_fault",
            step=n,
            message="It fell off the bus.",
            facts={"host": f"node{n}", "gpu_uuid": f"GPU-{n}", **more},
        )
        for n in range(count)
    ]


def test_one_alert_is_told_in_full() -> None:
    """Reason, trial, step, sentence, host and GPU."""
    digest = compose(faults(1), Sized(10_000))
    head, said, place, *_ = digest.body.split("\n")
    assert digest.title == "tune_guard · s"
    assert head == "Machine fault (gpu_fault) in trial t0 at step 0"
    assert said == "It fell off the bus."
    assert place == "on node0, GPU GPU-0"


def test_many_alike_are_one_paragraph_with_every_id() -> None:
    """The first sentence stands for all; hosts are named as far as they are few."""
    digest = compose(faults(40), Sized(10_000))
    assert digest.count == 40
    assert not digest.full
    assert digest.title == "tune_guard · s (40 events)"
    assert "Machine faults (gpu_fault) in 40 trials" in digest.body
    assert "on node0, node1, node2 +37, GPU GPU-0, GPU-1, GPU-2 +37" in digest.body
    assert all(f"t{n}@{n}" in digest.body for n in range(40))


@pytest.mark.parametrize("most_bytes", [300, 1000, 19_000])
def test_a_message_holds_as_many_as_fit_and_no_more(most_bytes: int) -> None:
    """One more would be too large."""
    alerts, service = faults(5000), Sized(most_bytes)
    digest = compose(alerts, service)
    assert digest.full
    assert service.size(digest.title, digest.body) <= most_bytes
    more = compose(alerts[: digest.count + 1], Sized(10**9))
    assert more.count == digest.count + 1
    assert service.size(more.title, more.body) > most_bytes


def test_a_single_alert_that_does_not_fit_is_cut() -> None:
    """Its beginning says what it is about."""
    service = Sized(120)
    digest = compose(faults(1), service)
    assert digest.count == 1
    assert service.size(digest.title, digest.body) <= 120
    assert digest.body.startswith("Machine fault (gpu_fault) in trial t0")
    assert digest.body.endswith("…")


def test_alerts_of_several_sweeps_say_whose_they_are() -> None:
    """One robot may serve many."""
    other = Alert(kind=Kind.CUT, sweep="other", trials=("x",), reason="plateau")
    digest = compose([*faults(1), other], Sized(10_000))
    assert digest.title == "tune_guard · s + 1 (2 events)"
    assert "other: Cut by the guard (plateau): trial x" in digest.body


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_a_text_though_facts_are_missing(
    kind: Kind, language: Language
) -> None:
    """What comes back from a file of another version may lack some."""
    for count in (1, 3):
        alert = Alert(kind=kind, sweep="s", trials=("t",), reason="plateau")
        assert compose([alert] * count, Sized(10_000), language).body


def test_the_keyword_is_added_only_where_it_is_missing() -> None:
    """A keyword that the text holds anyway needs no second one."""
    assert compose(faults(1), Sized(999, "oncall")).title.startswith("oncall · ")
    assert compose(faults(1), Sized(999, "tune_guard")).title == "tune_guard · s"


def test_an_alert_on_many_trials_is_split() -> None:
    """Each part holds the facts, and together they name every trial."""
    alert = Alert(
        kind=Kind.SHARE, trials=tuple(map(str, range(50))), facts={"dead": 50}
    )
    parts = split(alert)
    assert [len(part.trials) for part in parts] == [20, 20, 10]
    assert sum((part.trials for part in parts), ()) == alert.trials
    assert all(part.facts == {"dead": 50} for part in parts)
    short = Alert(kind=Kind.SHARE, trials=("a",) * IDS_PER_ALERT)
    assert split(short) == [short]


def test_an_alert_survives_the_file() -> None:
    """Numbers that are not finite come back as texts."""
    (alert,) = faults(1, value=float("nan"), again=True)
    back = Alert.restored(alert.stored())
    assert back.facts["value"] == "NaN"
    assert back.trials == alert.trials
    assert back.time == alert.time
    with pytest.raises(ValueError, match="no alert"):
        Alert.restored({"sweep": "s"})
    with pytest.raises(ValueError, match="nokind"):
        Alert.restored({"kind": "nokind"})
