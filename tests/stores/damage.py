"""Damaged copies of a store's files, and what may still be read from them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from context_gatekeeper.errors import PageNotFoundError, StoreError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores.sqlite import SqliteStore
from context_gatekeeper.types import Page, PageKind, PageLabels
from tests.conformance.samples import HOSTILE_TEXTS, turn

BLOCK_BYTES = 4096
SESSIONS = (("pool", "one"), ("pool", "two"), ("other pool", "one"))


class Original:
    """An undamaged store: its files and its answers.

    Args:
        folder: where it is written.
        in_log: keep the newest appends in the log, as a killed process leaves them.
    """

    def __init__(self, folder: Path, *, in_log: bool) -> None:
        path = folder / "pages.db"
        if in_log:
            SqliteStore(path).close()
        store = SqliteStore(path)
        self._fill(store)
        self.pages = {place: list(store.scan(*place)) for place in SESSIONS}
        self.settings = {place: dict(store.settings(*place)) for place in SESSIONS}
        if in_log:
            self.files = _files(folder)
        store.close()
        if not in_log:
            self.files = _files(folder)
        self.has_log = in_log

    def _fill(self, store: PageStore) -> None:
        texts = [*(text for text in HOSTILE_TEXTS.values() if len(text) < 9000), "word " * 1500]
        for number in range(24):
            for pool, session in SESSIONS:
                text = f"{pool} {session} {number} {texts[number % len(texts)]}"
                drafts = turn(number, text, f"answer {text}", time=float(number), speakers=("Ann", None), derived=text)
                drafts[1] = replace(drafts[1], kind=PageKind.TOOL, labels=PageLabels(path=text[:50], tool=session))
                store.append(pool, session, drafts, idempotency_key=f"{session} {number}")
                store.set_setting(pool, session, f"key {number % 5}", text)

    def damaged(self, chance: random.Random) -> dict[str, bytes]:
        """The files with one damage: flipped bits, a shorter file or a block of zeros."""
        name = chance.choice([name for name in self.files if not name.endswith("-shm")])
        content = bytearray(self.files[name])
        kind = chance.choice(["flip one", "flip many", "truncate", "zero"])
        if kind == "truncate":
            del content[chance.randrange(len(content)) :]
        elif kind == "zero":
            start = chance.randrange(len(content) // BLOCK_BYTES) * BLOCK_BYTES
            content[start : start + BLOCK_BYTES] = bytes(min(BLOCK_BYTES, len(content) - start))
        else:
            for _ in range(1 if kind == "flip one" else chance.randint(2, 64)):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        return {**self.files, name: bytes(content)}


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    """The store's path in a new folder that holds the files (shared memory left out: it is rebuilt)."""
    folder.mkdir()
    for name, content in files.items():
        if not name.endswith("-shm"):
            (folder / name).write_bytes(content)
    return folder / "pages.db"


def check_only_right_answers(original: Original, path: Path, *, may_be_shorter: bool) -> Answers:
    """Read everything; each answer is right or a StoreError. Returns how the reads went.

    Args:
        original: the truth.
        path: the damaged store.
        may_be_shorter: a damaged log may have lost its newest appends.
    """
    answers = Answers()
    store = answers.caught(lambda: SqliteStore(path))
    if store is None:
        return answers
    for place in SESSIONS:
        _check_session(original, store, place, answers, may_be_shorter=may_be_shorter)
    names = answers.caught(lambda: store.sessions("pool"))
    if names is not None and not may_be_shorter:
        assert names == ("one", "two")
    store.close()
    return answers


class Answers:
    """Counts StoreErrors; any other error is a failure of the test."""

    def __init__(self) -> None:
        self.errors = 0
        self.unknown_pages = 0
        """Pages whose id is said to be unknown."""
        self.is_shorter = False
        """Whether a read gave fewer pages than were written, and no error."""

    @property
    def outcome(self) -> str:
        """How the reads went, in words."""
        if self.errors:
            return "damage said"
        is_less = self.is_shorter or self.unknown_pages
        return "the newest appends of a damaged log are gone, the rest is right" if is_less else "everything is right"

    def caught(self, call: Callable[[], Any]) -> Any:
        """What the call returns; None when the store refused."""
        try:
            return call()
        except StoreError:
            self.errors += 1
            return None


def _check_session(
    original: Original, store: SqliteStore, place: tuple[str, str], answers: Answers, *, may_be_shorter: bool
) -> None:
    truth = original.pages[place]
    pages = answers.caught(lambda: list(store.scan(*place)))
    if pages is not None:
        assert pages == truth[: len(pages)]
        answers.is_shorter |= len(pages) < len(truth)
        assert may_be_shorter or len(pages) == len(truth)
    count = answers.caught(lambda: store.page_count(*place))
    assert count is None or count == len(truth) or (may_be_shorter and count < len(truth))
    for page in truth:
        _check_page(store, page, answers)
    index = answers.caught(lambda: store.postings(*place))
    if index is not None:
        indexed = truth if pages is None else pages
        for term in ("word", "answer", "Ann"):
            expected = [page.ordinal for page in indexed if term in page.terms]
            found = list(index.ordinals(term))
            assert found == expected or (may_be_shorter and found == expected[: len(found)])
    settings = answers.caught(lambda: store.settings(*place))
    assert settings is None or settings == original.settings[place] or may_be_shorter


def _check_page(store: SqliteStore, page: Page, answers: Answers) -> None:
    try:
        found = answers.caught(lambda: store.get(page.pool, [page.page_id]))
    except PageNotFoundError:
        answers.unknown_pages += 1
    else:
        assert found in (None, (page,))


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
