"""What every store promises about names, sessions and settings."""

from __future__ import annotations

from typing import Any

import pytest

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import PageStore
from tests.conformance.samples import turn

ODD_NAMES = [
    "../../etc/passwd",
    "..%2f..%2f",
    "/etc/passwd",
    "C:\\x",
    "x" * 512,
    "会话",
    "a\nb\tc",
    "'; DROP TABLE sessions; --",
    " leading and trailing ",
    "half \ud83d pair",
    "\U0001f680",
    "%",
    "caf\u00e9",
    "cafe\u0301",
    "CAF\u00c9",
    "sqlite_master",
]
REFUSED_NAMES: list[Any] = ["", " \t", "x" * 513, "x" * 4096, "a\0b", None, 7, b"bytes"]


class TestNames:
    def test_odd_names_are_names_and_all_different(self, store: PageStore) -> None:
        for place, name in enumerate(ODD_NAMES):
            store.append(name, name, turn(0, f"text {place}"), idempotency_key=name)
            store.set_setting(name, name, name, name)
        for place, name in enumerate(ODD_NAMES):
            assert store.sessions(name) == (name,)
            assert next(page.text for page in store.scan(name, name)) == f"text {place}"
            assert next(store.scan(name, name)).session == name
            assert store.settings(name, name) == {name: name}
            assert store.append(name, name, turn(9), idempotency_key=name)[0].text == f"text {place}"

    @pytest.mark.parametrize("name", REFUSED_NAMES, ids=lambda name: repr(name)[:20])
    def test_a_name_that_cannot_be_one_is_refused(self, store: PageStore, name: Any) -> None:
        calls = [
            lambda: store.append(name, "s", turn(0)),
            lambda: store.append("p", name, turn(0)),
            lambda: store.get(name, []),
            lambda: store.scan(name, "s"),
            lambda: store.scan("p", name),
            lambda: store.page_count("p", name),
            lambda: store.postings("p", name),
            lambda: store.sessions(name),
            lambda: store.settings("p", name),
            lambda: store.set_setting("p", name, "k", "v"),
        ]
        for call in calls:
            with pytest.raises(ConfigError, match="name") as refusal:
                call()
            assert len(str(refusal.value)) < 300
        assert store.sessions("p") == ()

    @pytest.mark.parametrize("key", REFUSED_NAMES[:-1], ids=lambda name: repr(name)[:20])
    def test_a_key_that_cannot_be_one_is_refused(self, store: PageStore, key: Any) -> None:
        if key is None:
            assert len(store.append("p", "s", turn(0), idempotency_key=None)) == 2  # None is no key at all
            return
        with pytest.raises(ConfigError, match="idempotency key name"):
            store.append("p", "s", turn(0), idempotency_key=key)
        assert store.sessions("p") == ()


class TestSessions:
    def test_sessions_are_listed_by_their_first_page_or_setting(self, store: PageStore) -> None:
        store.append("p", "zebra", turn(0))
        store.set_setting("p", "middle", "language", "en")
        store.append("q", "elsewhere", turn(0))
        store.append("p", "ant", turn(0))
        store.append("p", "middle", turn(0))
        store.append("p", "zebra", turn(1))
        assert store.sessions("p") == ("zebra", "middle", "ant")
        assert store.sessions("q") == ("elsewhere",)

    def test_looking_at_a_session_does_not_make_it(self, store: PageStore) -> None:
        store.page_count("p", "s")
        store.postings("p", "s")
        store.settings("p", "s")
        list(store.scan("p", "s"))
        store.set_setting("p", "s", "language", None)
        assert store.sessions("p") == ()

    def test_two_conversations_that_begin_alike_stay_apart(self, store: PageStore) -> None:
        opening = "You are a helpful assistant. " * 150
        for number in range(4):
            for session in ("one", "two"):
                store.append("p", session, turn(number, opening if number == 0 else f"{session} {number}", ""))
        for session, other in (("one", "two"), ("two", "one")):
            texts = [page.text for page in store.scan("p", session)]
            assert texts[::2] == [opening, *(f"{session} {number}" for number in range(1, 4))]
            assert store.postings("p", session).document_frequency(other) == 0


class TestSettings:
    def test_settings_keep_the_order_in_which_their_keys_were_first_set(self, store: PageStore) -> None:
        for key, value in [("language", "en"), ("style", "short"), ("avoid", "emoji"), ("language", "zh")]:
            store.set_setting("p", "s", key, value)
        assert list(store.settings("p", "s").items()) == [("language", "zh"), ("style", "short"), ("avoid", "emoji")]

    def test_none_removes_a_setting_and_it_comes_back_last(self, store: PageStore) -> None:
        for key, value in [("a", "1"), ("b", "2"), ("a", None), ("missing", None), ("a", "3")]:
            store.set_setting("p", "s", key, value)
        assert list(store.settings("p", "s").items()) == [("b", "2"), ("a", "3")]

    def test_settings_belong_to_one_session_of_one_pool(self, store: PageStore) -> None:
        store.set_setting("p", "s", "language", "en")
        assert store.settings("p", "t") == {}
        assert store.settings("q", "s") == {}

    def test_a_session_without_settings_has_none(self, store: PageStore) -> None:
        store.append("p", "s", turn(0))
        assert store.settings("p", "s") == {}

    def test_what_is_returned_is_a_copy(self, store: PageStore) -> None:
        store.set_setting("p", "s", "language", "en")
        copy = dict(store.settings("p", "s"))
        store.set_setting("p", "s", "language", "zh")
        assert copy == {"language": "en"}

    @pytest.mark.parametrize("text", ["", "line\nbreak", "a\0b", "half \ud83d pair", '{"json": "\\u0000"}', "设置"])
    def test_any_text_may_be_key_and_value(self, store: PageStore, text: str) -> None:
        store.set_setting("p", "s", text, text)
        assert store.settings("p", "s") == {text: text}

    @pytest.mark.parametrize(("key", "value"), [(7, "v"), ("k", 7), (None, "v"), ("k", b"v")])
    def test_what_is_no_text_is_refused(self, store: PageStore, key: Any, value: Any) -> None:
        with pytest.raises(ConfigError, match="setting"):
            store.set_setting("p", "s", key, value)
        assert store.sessions("p") == ()

    def test_settings_and_pages_do_not_disturb_each_other(self, store: PageStore) -> None:
        store.set_setting("p", "s", "language", "en")
        store.append("p", "s", turn(0))
        store.set_setting("p", "s", "style", "short")
        store.append("p", "s", turn(1))
        assert store.page_count("p", "s") == 4
        assert dict(store.settings("p", "s")) == {"language": "en", "style": "short"}
