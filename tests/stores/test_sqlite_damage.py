"""Damaged files: a wrong page is never returned, and what is whole can still be read."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from context_gatekeeper.errors import StoreDamagedError
from context_gatekeeper.stores.drafts import first_page_id
from context_gatekeeper.stores.sqlite import SqliteStore
from context_gatekeeper.types import PageId, PageLabels
from tests.conformance.samples import turn
from tests.stores.damage import Original, check_only_right_answers, write_files


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> tuple[Original, Original]:
    """One store whose pages are in the file, one whose newest pages are in the log."""
    return (
        Original(tmp_path_factory.mktemp("file"), in_log=False),
        Original(tmp_path_factory.mktemp("log"), in_log=True),
    )


def test_a_damaged_file_gives_right_pages_or_an_error(
    originals: tuple[Original, Original],
    tmp_path: Path,
    damage_variant: int,
    record_property: Callable[[str, object], None],
) -> None:
    original = originals[damage_variant % 2]
    files = original.damaged(random.Random(damage_variant))
    path = write_files(tmp_path / "damaged", files)
    answers = check_only_right_answers(original, path, may_be_shorter=original.has_log)
    record_property("damaged files, 0 wrong pages", answers.outcome)


def test_undamaged_copies_give_everything(originals: tuple[Original, Original], tmp_path: Path) -> None:
    for place, original in enumerate(originals):
        path = write_files(tmp_path / str(place), original.files)
        assert check_only_right_answers(original, path, may_be_shorter=False).outcome == "everything is right"


# -- one damage at a time --------------------------------------------------------------------------

PAGE = first_page_id(1) + 2
"""The page that is damaged: ordinal 2 of session ``s``."""
IN_OTHER_SESSION = first_page_id(2) + 2
IN_NO_SESSION = first_page_id(99) + 2


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed store: session ``s`` with six pages, session ``t`` with two, both with a setting."""
    path = tmp_path / "pages.db"
    store = SqliteStore(path)
    for number in range(3):
        user, assistant = turn(number, f"ask {number}", speakers=("Ann", None))
        user = replace(user, labels=PageLabels(path="a.py"))
        store.append("p", "s", [user, assistant], idempotency_key=f"k{number}")
    store.append("p", "t", turn(0))
    store.set_setting("p", "s", "language", "en")
    store.set_setting("p", "t", "language", "zh")
    store.close()
    return path


def tamper(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        assert connection.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE pages SET body = CAST('ask 7' AS BLOB) WHERE page_id = {PAGE}",
        f"UPDATE pages SET body = 'ask 7' WHERE page_id = {PAGE}",
        f"UPDATE pages SET body = 7 WHERE page_id = {PAGE}",
        f"UPDATE pages SET sha256 = zeroblob(32) WHERE page_id = {PAGE}",
        f"UPDATE pages SET digest = zeroblob(16) WHERE page_id = {PAGE}",
        f"UPDATE pages SET page_id = {PAGE + 75} WHERE page_id = {PAGE}",
        f"UPDATE pages SET page_id = {IN_OTHER_SESSION} WHERE page_id = {PAGE}",
        f"UPDATE pages SET page_id = {IN_NO_SESSION} WHERE page_id = {PAGE}",
        f"UPDATE pages SET pool_id = 33 WHERE page_id = {PAGE}",
        f"UPDATE pages SET time = 1.5 WHERE page_id = {PAGE}",
        f"UPDATE pages SET time = 'noon' WHERE page_id = {PAGE}",
        f"UPDATE pages SET speaker = CAST('Bob' AS BLOB) WHERE page_id = {PAGE}",
        f"UPDATE pages SET speaker = x'ff' WHERE page_id = {PAGE}",
        f"UPDATE pages SET speaker = NULL WHERE page_id = {PAGE}",
        f"UPDATE pages SET kind = 7 WHERE page_id = {PAGE}",
        f"UPDATE pages SET kind = x'00' WHERE page_id = {PAGE}",
        f"UPDATE pages SET labels = CAST('{{}}' AS BLOB) WHERE page_id = {PAGE}",
        f'UPDATE pages SET labels = CAST(\'{{"path":"b.py"}}\' AS BLOB) WHERE page_id = {PAGE}',
        f"UPDATE pages SET labels = x'' WHERE page_id = {PAGE}",
        f"UPDATE pages SET labels = 7 WHERE page_id = {PAGE}",
        f"UPDATE pages SET body = NULL WHERE page_id = {PAGE}",
        f"DELETE FROM pages WHERE page_id = {PAGE}",
        f"UPDATE page_terms SET terms = x'00' WHERE page_id = {PAGE}",
        f"UPDATE page_terms SET terms = 7 WHERE page_id = {PAGE}",
        f"UPDATE page_terms SET derived = x'00' WHERE page_id = {PAGE}",
        f"UPDATE page_terms SET digest = zeroblob(16) WHERE page_id = {PAGE}",
        f"UPDATE page_terms SET page_id = {IN_OTHER_SESSION} WHERE page_id = {PAGE}",
        f"UPDATE page_terms SET pool_id = 33 WHERE page_id = {PAGE}",
        f"DELETE FROM page_terms WHERE page_id = {PAGE}",
    ],
)
def test_a_damaged_page_is_named_and_the_others_can_be_read(path: Path, statement: str) -> None:
    tamper(path, statement)
    store = SqliteStore(path)
    with pytest.raises(StoreDamagedError, match="ordinal 2") as damage:
        list(store.scan("p", "s"))
    assert "session 's'" in str(damage.value)
    assert str(path) in str(damage.value)
    scan = store.scan("p", "s")
    assert [next(scan).ordinal, next(scan).ordinal] == [0, 1]
    assert [page.text for page in store.scan("p", "s", from_ordinal=3)][1] == "ask 2"
    assert [page.text for page in store.get("p", [PageId(PAGE + 2), PageId(PAGE - 2)])] == ["ask 2", "ask 0"]
    store.close()


LONG = "a long tool result\n" * 99
SHARED = "a result that two pages have\n" * 99


@pytest.fixture
def path_with_originals(tmp_path: Path) -> Path:
    """A closed store: long texts at ordinals 0 and 1, one that both 2 and 3 have, a short one at 4."""
    path = tmp_path / "originals.db"
    store = SqliteStore(path)
    for number, texts in enumerate([(LONG, "another " + LONG), (SHARED, SHARED), ("short", "")]):
        store.append("p", "s", turn(number, *texts))
    store.close()
    return path


@pytest.mark.parametrize("where", ["original_id = 1", "original_id = 3"])
@pytest.mark.parametrize(
    "change",
    [
        "body = zeroblob(length(body))",
        "body = substr(body, 1, length(body) - 9)",
        "body = 7",
        "body = (SELECT body FROM originals WHERE original_id = 2)",
        "size = size - 1",
        "size = 5",
        "size = 'many'",
        "sha256 = zeroblob(32)",
        "sha256 = 7",
        "pool_id = 33",
        None,
    ],
)
def test_a_damaged_original_is_missed_by_its_own_pages_alone(
    path_with_originals: Path, where: str, change: str | None
) -> None:
    update = f"UPDATE originals SET {change}" if change else "DELETE FROM originals"
    tamper(path_with_originals, f"{update} WHERE {where}")
    hit = [0] if where.endswith("1") else [2, 3]
    store = SqliteStore(path_with_originals)
    for ordinal in range(6):
        page_ids = [PageId(first_page_id(1) + ordinal)]
        if ordinal in hit:
            with pytest.raises(StoreDamagedError, match=f"ordinal {ordinal}"):
                store.get("p", page_ids)
            with pytest.raises(StoreDamagedError, match=f"ordinal {ordinal}"):
                next(store.scan("p", "s", from_ordinal=ordinal))
        else:
            assert store.get("p", page_ids) == (next(store.scan("p", "s", from_ordinal=ordinal)),)
    store.close()


def test_appending_the_same_text_again_mends_a_damaged_original(path_with_originals: Path) -> None:
    tamper(path_with_originals, "UPDATE originals SET body = zeroblob(50)")
    store = SqliteStore(path_with_originals)
    with pytest.raises(StoreDamagedError):
        list(store.scan("p", "s"))
    store.append("p", "s", turn(3, SHARED, LONG))
    assert [page.text for page in store.scan("p", "s", from_ordinal=2)] == [SHARED, SHARED, "short", "", SHARED, LONG]
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE pools SET handle_key = zeroblob(32)",
        "UPDATE pools SET handle_key = 7",
        "UPDATE pools SET digest = x''",
    ],
)
def test_a_damaged_key_of_handles_is_said(path: Path, statement: str) -> None:
    tamper(path, statement)
    store = SqliteStore(path)
    calls = [
        lambda: store.handle_key("p"),
        lambda: store.page_of_handle("p", "page:" + "a" * 16),
        lambda: store.append("p", "a new session", turn(0)),
    ]
    for call in calls:
        with pytest.raises(StoreDamagedError, match="pool 'p'"):
            call()
    assert store.page_count("p", "s") == 6
    store.close()


def test_a_lost_pool_is_not_made_anew(path: Path) -> None:
    tamper(path, "DELETE FROM pools")
    store = SqliteStore(path)
    for call in (lambda: store.handle_key("p"), lambda: store.page_of_handle("p", "page:" + "a" * 16)):
        with pytest.raises(StoreDamagedError):
            call()
    store.close()


@pytest.mark.parametrize("page_id", [PAGE, IN_OTHER_SESSION, IN_NO_SESSION])
@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE pages SET page_id = {IN_OTHER_SESSION} WHERE page_id = {PAGE}",
        f"UPDATE pages SET page_id = {IN_NO_SESSION} WHERE page_id = {PAGE}",
        f"UPDATE pages SET body = zeroblob(7) WHERE page_id = {PAGE}",
        "UPDATE sessions SET name = x'ff' WHERE session_id = 1",
    ],
)
def test_no_id_leads_to_a_damaged_page(path: Path, statement: str, page_id: int) -> None:
    tamper(path, statement)
    store = SqliteStore(path)
    with pytest.raises((StoreDamagedError, LookupError), match=f"page {page_id}"):
        store.get("p", [PageId(page_id)])
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sessions SET page_count = 4 WHERE session_id = 1",
        "UPDATE sessions SET page_count = 8 WHERE session_id = 1",
        "UPDATE sessions SET page_count = x'00' WHERE session_id = 1",
        "UPDATE sessions SET digest = zeroblob(16) WHERE session_id = 1",
        "UPDATE sessions SET name = CAST('r' AS BLOB) WHERE session_id = 1",
        "UPDATE sessions SET name = x'ff' WHERE session_id = 1",
        "UPDATE sessions SET name = 7 WHERE session_id = 1",
        "UPDATE sessions SET session_id = 9 WHERE session_id = 1",
        "UPDATE sessions SET pool_id = 9 WHERE session_id = 1",
        "UPDATE pools SET name = CAST('q' AS BLOB)",
        "DELETE FROM pools",
    ],
)
def test_a_damaged_session_is_never_taken_for_a_new_one(path: Path, statement: str) -> None:
    tamper(path, statement)
    store = SqliteStore(path)
    calls = [
        lambda: list(store.scan("p", "s")),
        lambda: store.page_count("p", "s"),
        lambda: store.postings("p", "s"),
        lambda: store.settings("p", "s"),
        lambda: store.sessions("p"),
        lambda: store.append("p", "s", turn(0)),
        lambda: store.set_setting("p", "s", "language", "de"),
    ]
    for call in calls:
        with pytest.raises(StoreDamagedError, match=str(path)):
            call()
    store.close()


def test_a_name_that_only_the_index_lost_is_found_out(path: Path) -> None:
    store = SqliteStore(path)
    store.append("p", "a session with a long name", turn(0, "kept"))
    store.close()
    content = path.read_bytes()
    name = b"a session with a long name"
    places = [place for place in range(len(content)) if content.startswith(name, place)]
    assert len(places) == 2  # its row and its index entry
    refused = 0
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        store = SqliteStore(path)
        try:
            assert next(store.scan("p", name.decode())).text == "kept"
        except StoreDamagedError:
            refused += 1
        store.close()
    assert refused >= 1


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE append_keys SET first_page_id = {PAGE} WHERE append_key = CAST('k0' AS BLOB)",
        "UPDATE append_keys SET page_total = 1 WHERE append_key = CAST('k0' AS BLOB)",
        "UPDATE append_keys SET page_total = 'two' WHERE append_key = CAST('k0' AS BLOB)",
        "UPDATE append_keys SET append_key = CAST('k0' AS BLOB) WHERE append_key = CAST('k00' AS BLOB)",
    ],
)
def test_a_damaged_key_never_answers_with_other_pages(path: Path, statement: str) -> None:
    if "k00" in statement:
        store = SqliteStore(path)
        store.append("p", "s", turn(3), idempotency_key="k00")
        store.close()
        tamper(path, "DELETE FROM append_keys WHERE append_key = CAST('k0' AS BLOB)")
    tamper(path, statement)
    store = SqliteStore(path)
    with pytest.raises(StoreDamagedError, match="idempotency key 'k0'"):
        store.append("p", "s", turn(3), idempotency_key="k0")
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE session_settings SET settings = CAST('{}' AS BLOB) WHERE session_id = 1",
        "UPDATE session_settings SET settings = x'' WHERE session_id = 1",
        "DELETE FROM session_settings WHERE session_id = 1",
        "UPDATE session_settings SET pool_id = 9 WHERE session_id = 1",
        "UPDATE session_settings SET settings = 7 WHERE session_id = 1",
        "UPDATE session_settings SET digest = (SELECT digest FROM session_settings WHERE session_id = 2)",
    ],
)
def test_damaged_settings_are_said_and_not_overwritten(path: Path, statement: str) -> None:
    tamper(path, statement)
    store = SqliteStore(path)
    with pytest.raises(StoreDamagedError, match="settings of session 's'"):
        store.settings("p", "s")
    with pytest.raises(StoreDamagedError, match="settings of session 's'"):
        store.set_setting("p", "s", "style", "short")
    assert store.settings("p", "t") == {"language": "zh"}
    assert store.page_count("p", "s") == 6
    store.close()


def test_a_damaged_table_name_that_is_no_text_is_damage(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET name = CAST(x'ee41' AS TEXT), sql = 'x' WHERE name = 'sessions'")
    with pytest.raises(StoreDamagedError, match=str(path)):
        SqliteStore(path)


def test_a_session_counter_that_went_back_overwrites_nothing(path: Path) -> None:
    tamper(path, "UPDATE sqlite_sequence SET seq = 0 WHERE name = 'sessions'")
    store = SqliteStore(path)
    before = list(store.scan("p", "s"))
    with pytest.raises(StoreDamagedError, match="UNIQUE"):
        store.append("p", "new", turn(0))
    assert list(store.scan("p", "s")) == before
    store.close()
