"""Transcripts into a pool: each once, whole, and never over another."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from context_gatekeeper.engine import importing
from context_gatekeeper.engine.agent_pages import page_blocks
from context_gatekeeper.engine.importing import fork_name, session_name
from context_gatekeeper.engine.owner_view import AGENT_SETTING
from context_gatekeeper.errors import ConfigError, StoreBusyError
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession, Page, PageDraft, PageKind, Role, SessionEvent
from tests.core.secret_samples import secret_samples
from tests.engine.agents import (
    FIXING,
    POOL,
    SAMPLES,
    answered,
    blocks_of,
    call,
    gave,
    grown,
    importer,
    returned,
    said,
    session,
    shown,
    stored,
    system,
    take_in,
)

PREAMBLE = system("You are a careful assistant. " * 160)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


# -- several sessions ---------------------------------------------------------------------------


def test_two_sessions_with_one_preamble_stay_apart_and_grow_apart(store: MemoryStore) -> None:
    """O36, read in turns; each keeps one session."""
    cats = session(PREAMBLE, said("Tell me of cats."), answered("They purr."))
    dogs = session(PREAMBLE, said("Tell me of dogs."), answered("They bark."))
    assert take_in(store, cats).session == "s"
    first = take_in(store, dogs)
    assert (first.session, first.diverged_from, first.diverged_at) == ("s~2", "s", 1)
    for more in (said("More."), answered("No.")):
        cats, dogs = grown(cats, more), grown(dogs, more)
        assert (take_in(store, cats).session, take_in(store, dogs).session) == ("s", "s~2")
    for name, one in (("s", cats), ("s~2", dogs)):
        assert [block for page in stored(store, name) for block in page_blocks(page)] == blocks_of(one)
    assert store.sessions(POOL) == ("s", "s~2")


def test_a_rewound_session_becomes_one_of_its_own_and_goes_on_there(store: MemoryStore) -> None:
    """An undo leaves what was undone where it is."""
    start = [said("Write a story."), answered("Once there was a king.")]
    take_in(store, session(*start, said("Make him sad."), answered("He wept.")))
    before = stored(store)
    undone = session(*start, said("Make him glad."), answered("He laughed."))
    assert take_in(store, undone).session == "s~2"
    assert take_in(store, grown(undone, said("More."))).session == "s~2"
    again = session(*start, said("Make him a frog."))
    assert (take_in(store, again).session, take_in(store, again).added_pages) == ("s~3", 0)
    assert stored(store) == before


def test_an_older_copy_of_a_session_is_known_whole(store: MemoryStore) -> None:
    take_in(store, FIXING)
    older = AgentSession(FIXING.session_id, FIXING.source, FIXING.messages[:7], (), FIXING.working_folder)
    result = take_in(store, older)
    assert (result.session, result.added_pages, result.known_pages) == (FIXING.session_id, 0, 16)


def test_of_two_beginnings_the_longer_one_goes_on(store: MemoryStore) -> None:
    take_in(store, session(said("a"), answered("b"), said("x")))
    take_in(store, session(said("a"), answered("b"), said("c")))
    assert store.sessions(POOL) == ("s", "s~2")
    assert take_in(store, session(said("a"), answered("b"), said("c"), answered("d"))).session == "s~2"


def test_a_session_of_a_conversation_is_never_written_to(store: MemoryStore) -> None:
    store.append(POOL, "s", [PageDraft(0, Role.USER, "hi"), PageDraft(0, Role.ASSISTANT, "yo")])
    assert take_in(store, session(said("hi"), answered("yo"))).session == "s~2"


def test_sessions_of_two_owners_stay_apart(store: MemoryStore) -> None:
    assert take_in(store, FIXING, owner="ann").session == "shop/fixing@ann"
    first, again = take_in(store, FIXING, owner="bob"), take_in(store, FIXING, owner="bob")
    assert (first.session, first.added_pages, again.added_pages) == ("shop/fixing@bob", 16, 0)


@pytest.mark.parametrize(
    ("log_id", "name"),
    [
        ("7d3e9a10", "7d3e9a10"),
        ("../../etc/passwd", "../../etc/passwd"),
        ("会话 一", "会话 一"),
    ],
)
def test_a_session_is_called_what_its_log_calls_it(log_id: str, name: str) -> None:
    assert session_name(log_id) == name


@pytest.mark.parametrize("log_id", ["", "  ", "a\0b", "x" * 481, "\ud83d" * 500])
def test_what_can_be_no_name_becomes_a_digest(store: MemoryStore, log_id: str) -> None:
    name = session_name(log_id)
    assert name.startswith("session-")
    assert session_name(log_id + "y") != name
    assert take_in(store, session(said("hi"), name=log_id)).session == name
    assert take_in(store, session(said("hi"), name=log_id)).added_pages == 0


def test_forks_are_numbered_from_the_second_on() -> None:
    assert [fork_name("s", number) for number in (1, 2, 10)] == ["s", "s~2", "s~10"]


# -- what a result tells ------------------------------------------------------------------------


def test_a_result_tells_what_came_in(store: MemoryStore) -> None:
    first = take_in(store, FIXING)
    assert first.to_dict() == {
        "session": "shop/fixing",
        "log_id": "shop/fixing",
        "source": "test",
        "known_pages": 0,
        "added_pages": 16,
        "blocks": 17,
        "added_kinds": {"turn": 9, "empty": 2, "file": 2, "tool": 3},
        "deleted_pages": 0,
        "redacted_pages": 0,
        "diverged_from": "",
        "diverged_at": 0,
        "is_dry_run": False,
        "warnings": [],
    }


def test_a_dry_run_says_the_same_and_stores_nothing(store: MemoryStore) -> None:
    dry = importer(store).run(FIXING, dry_run=True)
    assert (dry.is_dry_run, dry.added_pages, dry.session) == (True, 16, "shop/fixing")
    assert store.sessions(POOL) == ()
    wet = take_in(store, FIXING)
    assert (wet.added_kinds, wet.blocks) == (dry.added_kinds, dry.blocks)
    more = grown(FIXING, said("thanks"))
    assert importer(store).run(more, dry_run=True).added_pages == 2
    assert importer(store).run(session(said("new"), name="shop/fixing"), dry_run=True).session == "shop/fixing~2"
    assert len(stored(store, "shop/fixing")) == 16


def test_a_session_that_holds_nothing_is_nothing(store: MemoryStore) -> None:
    result = take_in(store, session())
    assert (result.added_pages, result.blocks, store.sessions(POOL)) == (0, 0, ())


def test_what_the_log_says_of_the_session_is_noted(store: MemoryStore) -> None:
    secret = next(sample.secret for sample in secret_samples() if sample.name == "github ghp")
    one = AgentSession("s", "codex", (said("hi"),), (SessionEvent("compact", 5.0, 900),), f"/srv/{secret}", ("odd",))
    assert take_in(store, one).warnings == ("odd",)
    noted = store.settings(POOL, "s")[AGENT_SETTING]
    log_id, source, folder, owner, events = json.loads(noted)
    assert (log_id, source, owner, events) == ("s", "codex", "", [["compact", 5.0, 900]])
    assert secret not in folder


# -- bad input ----------------------------------------------------------------------------------

BAD = {
    "an orphan result": session(returned(gave("nobody", "x")), answered("hm")),
    "a call never answered": session(said("go"), answered(call("c1", "Bash", command="ls")), said("well?")),
    "null arguments": session(answered(call("c1", "read", "null")), returned(gave("c1", "x"))),
    "no arguments": session(answered(call("c1", "read", "")), returned(gave("c1", ""))),
    "broken arguments": session(answered(call("c1", "Read", '{"file_path": "/a')), returned(gave("c1", "x"))),
    "an id used twice": session(
        answered(call("c1", "Read", file_path="/a")),
        returned(gave("c1", "1")),
        answered(call("c1", "Write", file_path="/a", content="2")),
        returned(gave("c1", "2")),
        returned(gave("c1", "3")),
    ),
    "lone surrogates": session(
        said("half \ud83d"), answered(call("c\udc00", "\ud83d", '"\udc00"')), returned(gave("c\udc00", "\ud83d"))
    ),
    "NUL": session(said("a\0b"), answered("\0", call("\0", "\0", "\0"))),
    "empty messages": session(answered(), said(""), answered(""), returned(gave("", ""))),
    "only results": session(*(returned(gave(f"c{n}", str(n))) for n in range(5))),
}


@pytest.mark.parametrize("one", BAD.values(), ids=BAD)
def test_bad_input_is_taken_in_whole_and_once(store: MemoryStore, one: AgentSession) -> None:
    assert take_in(store, one).blocks == len(blocks_of(one))
    assert [block for page in stored(store) for block in page_blocks(page)] == blocks_of(one)
    assert take_in(store, one).added_pages == 0
    take_in(store, grown(one, said("more")))
    assert store.sessions(POOL) == ("s",)


@pytest.mark.parametrize("file", sorted(SAMPLES.iterdir()), ids=lambda path: path.name)
def test_every_block_of_the_sample_logs_comes_back(store: MemoryStore, file: Any) -> None:
    for one in read_sessions(file):
        result = take_in(store, one)
        pages = stored(store, result.session)
        assert [block for page in pages for block in page_blocks(page)] == blocks_of(one)
        assert take_in(store, one).added_pages == 0


# -- batches, other writers ---------------------------------------------------------------------


class WatchedStore(MemoryStore):
    """A store that tells of its appends, and lets something happen before one."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.keys: list[str | None] = []
        self.before: Callable[[], object] = lambda: None

    def append(
        self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
    ) -> tuple[Page, ...]:
        self.before()
        self.batches.append(len(drafts))
        self.keys.append(idempotency_key)
        return super().append(pool, session, drafts, idempotency_key=idempotency_key)


def test_a_long_session_goes_in_by_batches_of_whole_turns_with_keys() -> None:
    store = WatchedStore()
    take_in(store, session(*(said(f"message {number}") for number in range(100))))
    assert store.batches == [64, 64, 64, 8]
    assert len({key for key in store.keys if key}) == 4


def test_a_batch_is_bounded_by_its_text_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_BATCH_CHARS", 1000)
    store = WatchedStore()
    take_in(store, session(*(said("x" * 400) for _ in range(6))))
    assert store.batches == [6, 6]


def test_a_version_comes_in_behind_the_batch_of_the_one_that_it_supersedes() -> None:
    store = WatchedStore()
    reads = [
        message
        for number in range(3)
        for message in (
            answered(call(f"c{number}", "Read", file_path="/a")),
            returned(gave(f"c{number}", f"version {number}")),
        )
    ]
    take_in(store, session(said("go"), *reads))
    versions = [page for page in stored(store) if page.kind is PageKind.FILE]
    assert [page.labels.supersedes for page in versions] == [None, versions[0].page_id, versions[1].page_id]
    assert len(store.batches) == 3


def test_an_import_that_broke_off_is_made_whole_by_the_next() -> None:
    whole = MemoryStore()
    long = session(*(said(f"message {number}") for number in range(150)))
    take_in(whole, long)
    store = WatchedStore()

    def break_off() -> None:
        if len(store.batches) == 2:
            raise StoreBusyError("store", "it is locked", "try again")

    store.before = break_off
    with pytest.raises(StoreBusyError):
        take_in(store, long)
    assert len(stored(store)) == 128
    store.before = lambda: None
    assert take_in(store, long).added_pages == 300 - 128
    assert shown(stored(store)) == shown(stored(whole))


def test_pages_that_another_writer_stored_first_are_gone_on_behind() -> None:
    store = WatchedStore()
    long = session(*(said(f"message {number}") for number in range(150)))
    ahead = AgentSession("s", "test", long.messages[:40])

    def overtake() -> None:
        store.before = lambda: None
        take_in(store, ahead)

    store.before = overtake
    result = take_in(store, long)
    assert result.session == "s"
    assert [page.text for page in stored(store)[::2]] == [f"message {number}" for number in range(150)]


def test_another_writers_different_session_is_left_to_him() -> None:
    store = WatchedStore()

    def overtake() -> None:
        store.before = lambda: None
        take_in(store, session(said("his")))

    store.before = overtake
    assert take_in(store, session(said("mine"))).session == "s~2"
    assert shown(stored(store))[0] == ("user", "his")


def test_a_page_that_the_store_refuses_is_an_error_and_no_race() -> None:
    class Refusing(MemoryStore):
        def append(self, *_: object, **__: object) -> tuple[Page, ...]:
            raise ConfigError("page", "it is refused", "pass another")

    with pytest.raises(ConfigError, match="it is refused"):
        take_in(Refusing(), FIXING)


def test_who_is_always_overtaken_gives_up_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_ATTEMPTS", 3)
    store = WatchedStore()
    messages = [said(str(number)) for number in range(50)]
    steps: list[str] = []

    def overtake() -> None:
        store.before = lambda: None
        steps.append("one more")
        take_in(store, session(*messages[: len(steps)]))
        store.before = overtake

    store.before = overtake
    with pytest.raises(StoreBusyError, match="3 times in a row"):
        take_in(store, session(*messages))
    assert [page.text for page in stored(store)[::2]] == ["0", "1", "2"]


def test_another_writer_may_bring_in_all_of_it() -> None:
    store = WatchedStore()

    def overtake() -> None:
        store.before = lambda: None
        take_in(store, FIXING)

    store.before = overtake
    assert take_in(store, FIXING).session == FIXING.session_id
    assert len(stored(store, FIXING.session_id)) == 16


def test_another_writers_session_with_the_same_opening_is_not_taken_for_ones_own() -> None:
    store = WatchedStore()

    def overtake() -> None:
        store.before = lambda: None
        take_in(store, session(PREAMBLE, said("his"), answered("yes")))

    store.before = overtake
    assert take_in(store, session(PREAMBLE, said("mine"), answered("no"))).session == "s~2"
    assert [page.text for page in stored(store)[2:]] == ["his", "yes"]
    assert [page.text for page in stored(store, "s~2")[2:]] == ["mine", "no"]


def test_another_session_of_the_name_of_one_that_was_deleted_comes_in(store: MemoryStore) -> None:
    take_in(store, session(said("the first"), answered("yes")))
    store.delete_session(POOL, "s")
    other = session(said("quite another"), answered("no"))
    assert (take_in(store, other).session, take_in(store, other).added_pages) == ("s~2", 0)
    assert take_in(store, session(said("the first"), answered("yes"))).session == "s"
    assert take_in(store, session(said("the first"))).added_pages == 0
    assert stored(store, "s")[0].text == ""
    assert take_in(store, session()).added_pages == 0


def test_a_session_of_an_odd_number_of_pages_is_gone_on_with_the_other_side(store: MemoryStore) -> None:
    one = session(said("a"), answered("b"))
    take_in(store, one)
    whole = stored(store)
    odd = MemoryStore()
    odd.append(POOL, "s", [PageDraft(0, whole[0].role, "a", labels=whole[0].labels)])
    take_in(odd, one)
    assert [page.text for page in stored(odd)] == ["a", "b"]
