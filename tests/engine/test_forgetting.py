"""What was forgotten stays away, leaves no secret behind, and hides nothing that came later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.engine.forgetting import FORGOTTEN_SESSION, Forgetting, forgotten_pages, read_forgotten
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.stores.sealed import SealedSpans
from context_gatekeeper.stores.sqlite import SqliteStore
from context_gatekeeper.types import AgentMessage, AgentSession
from tests.core.secret_samples import secret_samples
from tests.engine.agents import (
    FIXING,
    POOL,
    answered,
    blocks_of,
    call,
    gave,
    grown,
    returned,
    said,
    session,
    stored,
    take_in,
    thinking,
)

SECRET = next(sample.secret for sample in secret_samples() if sample.name == "github ghp")


def secret(letter: str) -> str:
    """Another one of the same shape."""
    return SECRET[:4] + letter * 3 + SECRET[7:]


MESSAGES = st.lists(
    st.sampled_from(
        [
            said("again"),
            said(f"with {SECRET}"),
            answered("again"),
            answered(thinking("hm"), "x", call("c1", "Bash", command="ls")),
            returned(gave("c1", "(no output)")),
        ]
    ),
    min_size=1,
    max_size=6,
)


def texts_of(pool: AgentPool, name: str) -> list[str]:
    return [block.text for block in blocks_of(pool.session(name))]


# -- what comes later comes in ------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(before=MESSAGES, after=MESSAGES, owner=st.sampled_from(["", "ann"]))
def test_a_forgotten_session_stays_away_and_what_is_new_comes_in(
    before: list[AgentMessage], after: list[AgentMessage], owner: str
) -> None:
    pool = AgentPool(owner=owner)
    name = pool.import_session(session(*before)).session
    pool.forget_session(name)
    again = pool.import_session(session(*before))
    assert (again.session, again.added_pages, pool.sessions()) == (name, 0, ())
    later = pool.import_session(session(*before, *after))
    assert later.session == name
    known = sum(len(message.blocks) for message in before)
    new = [block.text for message in after for block in message.blocks]
    assert [pool.expand(f"p{known + place}", session=name).text for place in range(len(new))] == new
    assert pool.import_session(session(*before, *after)).added_pages == 0


@pytest.mark.parametrize("known", range(len(FIXING.messages)))
def test_an_answer_behind_forgotten_pages_is_no_forgotten_one(known: int) -> None:
    """The empty side behind a question was forgotten too, and swallows nothing."""
    pool = AgentPool()
    first = replace(FIXING, messages=FIXING.messages[: known + 1])
    pool.import_session(first)
    pool.forget_session("shop/fixing")
    pool.import_session(FIXING)
    new = blocks_of(FIXING)[len(blocks_of(first)) :]
    assert texts_of(pool, "shop/fixing") == [block.text for block in new] if new else pool.sessions() == ()


def test_a_message_goes_on_behind_its_forgotten_beginning() -> None:
    pool = AgentPool()
    pool.import_session(session(said("go"), answered("first")))
    pool.forget_pages([pool.pages("s")[-1].handle])
    pool.import_session(session(said("go"), answered("first", "second"), said("thanks")))
    assert [page.head for page in pool.pages("s")] == ["go", "", "second", "thanks"]
    assert [pool.expand(name, session="s").text for name in ("p2", "p3")] == ["second", "thanks"]


def test_a_message_in_pieces_is_forgotten_whole() -> None:
    pool = AgentPool()
    parts = ("one", "two", "three")
    for count in (1, 2, 3):
        pool.import_session(session(said("go"), answered(*parts[:count])))
    assert pool.forget_pages([pool.pages("s")[-1].handle]) == 1
    assert texts_of(pool, "s") == ["go"]
    assert pool.import_session(session(said("go"), answered(*parts))).added_pages == 0


def test_a_log_that_is_another_where_pages_were_forgotten_is_another_session() -> None:
    pool = AgentPool()
    pool.import_session(session(said("go"), answered("one", "two"), said("on")))
    pool.forget_pages([pool.pages("s")[1].handle])
    assert pool.import_session(session(said("go"), answered("one"), said("on"), answered("x"))).session == "s~2"
    assert pool.import_session(session(said("go"), said("no"), answered("x"))).session == "s~3"


# -- whose it is --------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(messages=MESSAGES, forgets=st.booleans())
def test_nobody_is_told_of_anothers_session_nor_loses_by_it(messages: list[AgentMessage], forgets: bool) -> None:
    """What bob is told is the same whether or not ann was there."""
    alone, shared = MemoryStore(), MemoryStore()
    ann = AgentPool(shared, owner="ann")
    ann.import_session(session(*messages))
    if forgets:
        ann.forget_session("s")
    told = []
    for store in (alone, shared):
        bob = AgentPool(store, owner="bob")
        other = session(*messages[:-1], said("and this"))
        told.append(
            [
                bob.import_session(one, dry_run=dry).to_dict()
                for one in (session(*messages), other)
                for dry in (True, False)
            ]
        )
    assert told[0] == told[1]
    assert texts_of(AgentPool(shared, owner="bob"), "s")


def test_a_session_of_another_owner_with_ones_own_name_is_passed_by() -> None:
    store = MemoryStore()
    AgentPool(store).import_session(session(said("mine"), name="s@bob"))
    assert AgentPool(store, owner="bob").import_session(session(said("mine"))).session == "s@bob~2"


@pytest.mark.parametrize("owner", ["b" * 25, "b\0b"])
def test_a_long_owner_is_a_digest_in_names(owner: str) -> None:
    name = AgentPool(owner=owner).import_session(session(said("mine"))).session
    assert name.startswith("s@")
    assert len(name) == 18


# -- secrets ------------------------------------------------------------------------------------

PLACES: dict[str, Callable[[str], AgentSession]] = {
    "text": lambda word: session(said(f"take {word}"), answered("ok")),
    "arguments": lambda word: session(said("go"), answered(call("c1", "Bash", command=f"export T={word}"))),
    "tool": lambda word: session(answered(call("c1", f"Read {word}")), returned(gave("c1", "x", f"Read {word}"))),
    "call id": lambda word: session(answered(call(word, "Read"), "and"), returned(gave(word, "x"))),
    "path": lambda word: session(answered(call("c1", "Read", file_path=f"/w/{word}")), returned(gave("c1", "x"))),
    "folder": lambda word: session(said("go"), folder=f"/srv/{word}"),
    "name": lambda word: session(said("go"), name=f"run {word}"),
    "origin": lambda word: session(said("go", origin=word)),
}


def files_with(folder: Path, word: str) -> list[str]:
    return [file.name for file in folder.rglob("*") if file.is_file() and word.encode() in file.read_bytes()]


@pytest.mark.parametrize("by_page", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_no_byte_of_a_secret_is_left_wherever_it_stood(place: str, by_page: bool, tmp_path: Path) -> None:
    word = secret("Q")
    with AgentPool(tmp_path / "pages.db", sealed_folder=tmp_path / "sealed") as pool:
        pool.import_session(session(said(f"other {secret('Z')}"), name="other"))
        name = pool.import_session(PLACES[place](word)).session
        pool.import_session(grown(PLACES[place](word), said("more")))
        if by_page:
            pool.forget_pages([page.handle for page in pool.pages(name)])
        else:
            pool.forget_session(name)
        assert files_with(tmp_path, word[4:]) == []
        assert pool.expand("p0", session="other").text == f"other {secret('Z')}"


def test_what_another_page_holds_too_stays_sealed(tmp_path: Path) -> None:
    tool = f"Read {SECRET}"
    with AgentPool(tmp_path / "pages.db", sealed_folder=tmp_path / "sealed") as pool:
        pool.import_session(session(answered(call("c1", tool)), name="first"))
        pool.import_session(session(said(tool), name="second"))
        pool.forget_session("first")
        assert pool.expand("p0", session="second").text == tool


# -- broken off ---------------------------------------------------------------------------------


class BreakingOffError(Exception):
    pass


class Breaking:
    """A step that breaks off, before it or behind it."""

    def __init__(self, step: Callable[..., Sequence[str] | None], order: str) -> None:
        self._step = step
        self._order = order
        self.is_mended = False

    def as_method(self) -> Callable[..., Sequence[str] | None]:
        """For a class, whose object it gets first."""

        def method(*arguments: Any) -> Sequence[str] | None:
            return self.run(*arguments)

        return method

    def run(self, *arguments: Any) -> Sequence[str] | None:
        if self._order == "before" and not self.is_mended:
            raise BreakingOffError
        found = self._step(*arguments)
        if not self.is_mended:
            raise BreakingOffError
        return found


@pytest.mark.parametrize("ends_by", ["opening", "forgetting", "importing"])
@pytest.mark.parametrize("order", ["before", "behind"])
@pytest.mark.parametrize("step", ["delete_session", "forget"])
def test_a_forgetting_that_broke_off_is_finished(
    step: str, order: str, ends_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaky = session(said(f"take {SECRET}"), answered("ok"), name="leaky")
    other = session(said("hi"), name="other")
    holder: type = SqliteStore if step == "delete_session" else SealedSpans
    with AgentPool(tmp_path / "pages.db", sealed_folder=tmp_path / "sealed") as pool:
        pool.import_session(leaky)
        pool.import_session(other)
        breaking = Breaking(getattr(holder, step), order)
        monkeypatch.setattr(holder, step, breaking.as_method())
        monkeypatch.setattr(pool, "_forgetting", Forgetting(pool._store, POOL, pool._sealed.forget))  # noqa: SLF001
        with pytest.raises(BreakingOffError):
            pool.forget_session("leaky")
        breaking.is_mended = True
        if ends_by == "forgetting":
            pool.forget_session("other")
        elif ends_by == "importing":
            assert pool.import_session(other).added_pages == 0
        else:
            AgentPool(tmp_path / "pages.db", sealed_folder=tmp_path / "sealed").close()
        assert files_with(tmp_path, SECRET[4:]) == []
        assert "leaky" not in [info.name for info in pool.sessions()]
        assert pool.import_session(leaky).added_pages == 0


def test_nothing_is_noted_of_what_was_never_deleted() -> None:
    store = MemoryStore()
    take_in(store, FIXING)
    assert read_forgotten(store, POOL, "shop/fixing") is None
    Forgetting(store, POOL, lambda _: None).finish()
    assert FORGOTTEN_SESSION not in store.sessions(POOL)


def test_the_note_of_what_was_deleted_holds_counts_and_no_words() -> None:
    store = MemoryStore()
    take_in(store, FIXING)
    pages = stored(store, "shop/fixing")
    forgetting = Forgetting(store, POOL, lambda _: None)
    forgetting.forget("", pages=pages[:3])
    forgetting.forget("", pages=pages[2:4])
    known = read_forgotten(store, POOL, "shop/fixing")
    assert known is not None
    assert {ordinal: held.blocks for ordinal, held in known.pages.items()} == {0: 1, 1: 0, 2: 1, 3: 4}
    (noted,) = store.settings(POOL, FORGOTTEN_SESSION).values()
    assert noted == '["", {"0": [1, null], "1": [0, null], "2": [1, null], "3": [4, null]}]'


def test_deleted_pages_are_counted_for_their_owner_alone_and_empty_sides_are_none() -> None:
    store = MemoryStore()
    take_in(store, FIXING)
    pages = stored(store, "shop/fixing")
    assert forgotten_pages(store, POOL, "") == 0
    Forgetting(store, POOL, lambda _: None).forget("", pages=pages[:4])
    assert (forgotten_pages(store, POOL, ""), forgotten_pages(store, POOL, "bob")) == (3, 0)
