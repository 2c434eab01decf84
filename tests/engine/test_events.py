"""The event feed: records for observers, who cannot disturb the planning."""

from __future__ import annotations

import json
import logging

import pytest

from context_gatekeeper.engine.events import EventFeed, EventKind, PageEvent


def event(kind: EventKind = EventKind.FAULT, **fields: object) -> PageEvent:
    return PageEvent(kind, "s1", 7, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", EventKind)
def test_an_event_is_a_json_record(kind: EventKind) -> None:
    record = event(kind, pages=("p1", "p4"), tokens=30, reason="named by its handle").to_dict()
    assert json.loads(json.dumps(record)) == record
    assert record == {
        "kind": kind.value,
        "session": "s1",
        "turn": 7,
        "pages": ["p1", "p4"],
        "tokens": 30,
        "reason": "named by its handle",
    }


def test_every_kind_that_the_design_names_is_there() -> None:
    names = {kind.value for kind in EventKind}
    assert names == {"hit", "fault", "swapped_in", "swapped_out", "epoch", "pinned", "refetched"}


def test_subscribers_hear_every_event_in_order_and_in_the_order_they_came() -> None:
    feed, heard = EventFeed(), []
    feed.subscribe(lambda one: heard.append(("a", one.kind)))
    feed.subscribe(lambda one: heard.append(("b", one.kind)))
    feed.publish(event(EventKind.FAULT))
    feed.publish(event(EventKind.EPOCH))
    assert heard == [("a", "fault"), ("b", "fault"), ("a", "epoch"), ("b", "epoch")]


def test_a_subscription_ends_when_it_is_ended_and_once_more_changes_nothing() -> None:
    feed, heard = EventFeed(), []
    end = feed.subscribe(heard.append)
    feed.subscribe(heard.append)
    end()
    end()
    feed.publish(event())
    assert heard == [event()]


def test_a_subscriber_that_fails_is_dropped_with_one_warning_and_the_others_hear_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    feed, heard = EventFeed(), []

    def broken(_: PageEvent) -> None:
        raise ValueError("the text of a page")

    feed.subscribe(broken)
    feed.subscribe(heard.append)
    with caplog.at_level(logging.WARNING, logger="context_gatekeeper"):
        feed.publish(event())
        feed.publish(event())
    assert heard == [event(), event()]
    (warning,) = caplog.messages
    assert "broken" in warning
    assert "ValueError" in warning
    assert "text of a page" not in warning


def test_a_failing_object_is_named_by_its_type(caplog: pytest.LogCaptureFixture) -> None:
    class Counter:
        def __call__(self, _: PageEvent) -> None:
            raise KeyError("x")

    feed = EventFeed()
    feed.subscribe(Counter())
    feed.publish(event())
    assert "Counter failed with KeyError" in caplog.text


def test_who_subscribes_or_ends_while_an_event_is_passed_on_changes_the_next_one_only() -> None:
    feed, heard = EventFeed(), []
    ends = []

    def first(_: PageEvent) -> None:
        heard.append("first")
        ends.append(feed.subscribe(lambda _: heard.append("late")))
        end_second()

    feed.subscribe(first)
    end_second = feed.subscribe(lambda _: heard.append("second"))
    feed.publish(event())
    assert heard == ["first", "second"]
    feed.publish(event())
    assert heard[2:] == ["first", "late"]


def test_an_interrupt_is_not_swallowed() -> None:
    feed = EventFeed()

    def stop(_: PageEvent) -> None:
        raise KeyboardInterrupt

    feed.subscribe(stop)
    with pytest.raises(KeyboardInterrupt):
        feed.publish(event())
