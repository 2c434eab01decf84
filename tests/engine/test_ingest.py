"""A transcript walked beside what a store holds of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.core.redact import RedactionMode
from context_gatekeeper.engine.agent_pages import draft_page, page_blocks
from context_gatekeeper.engine.ingest import Ingest
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.types import (
    AgentMessage,
    AgentSession,
    BlockKind,
    ContentBlock,
    MessageRole,
    Page,
    PageKind,
    Provenance,
)
from tests.core.secret_samples import secret_samples
from tests.engine.agents import (
    FIXING,
    POOL,
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
    take_in,
    text,
    thinking,
)

SECRET = next(sample.secret for sample in secret_samples() if sample.name == "github ghp")
MESSAGES = st.lists(
    st.sampled_from(
        [
            said("again"),
            said(""),
            said("(no output)"),
            answered("again"),
            answered(thinking(), "(no output)"),
            answered(thinking(hidden_chars=9), "x", call("c1", "Bash", command="ls")),
            returned(gave("c1", "(no output)")),
            returned(gave("c1", "(no output)"), gave("c1", "more")),
            AgentMessage(MessageRole.USER, ()),
            answered(),
        ]
    ),
    max_size=9,
)


def in_store(one: AgentSession) -> tuple[MemoryStore, list[Page]]:
    store = MemoryStore()
    take_in(store, one)
    return store, stored(store, one.session_id)


def blocks_in(pages: list[Page]) -> list[object]:
    return [block for page in pages for block in page_blocks(page)]


# -- layout -------------------------------------------------------------------------------------


def test_users_and_results_stand_on_one_side_and_answers_on_the_other() -> None:
    _, pages = in_store(FIXING)
    assert [page.ordinal for page in pages] == list(range(len(pages)))
    assert [(place % 2 == 1) for place, page in enumerate(pages) if page.role == "assistant"] == [True] * (
        len(pages) // 2
    )
    assert [kind for kind, _ in shown(pages)] == [
        *("user", "", "user", "assistant", "file", "", "tool", "assistant", "tool", "assistant"),
        *("tool", "assistant", "user", "assistant", "file", "assistant"),
    ]


def test_a_question_without_an_answer_still_has_its_two_pages() -> None:
    assert shown(in_store(session(said("hello?")))[1]) == [("user", "hello?"), ("", "")]
    assert shown(in_store(session(answered("hello!")))[1]) == [("", ""), ("assistant", "hello!")]


def test_labels_tell_call_file_version_channel_and_task() -> None:
    _, pages = in_store(FIXING)
    read, grep, edit, failed, write = (page for page in pages if page.kind in (PageKind.TOOL, PageKind.FILE))
    assert (read.labels.path, read.labels.call_id, read.labels.tool) == ("/srv/shop/export.py", "c1", "Read")
    assert (read.labels.provenance, grep.labels.provenance) == (Provenance.FILE, Provenance.TOOL)
    assert (edit.kind, edit.labels.path, failed.labels.is_error) == (PageKind.TOOL, "", True)
    assert (write.kind, write.labels.supersedes, len(write.labels.content_hash)) == (PageKind.FILE, read.page_id, 64)
    assert write.labels.provenance is Provenance.TOOL
    assert {page.labels.task_id for page in pages if page.text} == {"t1"}


@settings(max_examples=60, deadline=None)
@given(MESSAGES)
def test_every_block_has_its_page_whatever_the_order(messages: list[AgentMessage]) -> None:
    one = session(*messages)
    _, pages = in_store(one)
    assert blocks_in(pages) == blocks_of(one)
    assert len(pages) % 2 == 0


# -- again --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(MESSAGES)
def test_the_same_transcript_adds_nothing(messages: list[AgentMessage]) -> None:
    store, pages = in_store(session(*messages))
    again = take_in(store, session(*messages))
    assert (again.added_pages, again.diverged_from) == (0, "")
    assert stored(store) == pages


def test_ten_times_sixty_messages_of_which_many_are_equal_are_sixty_pages() -> None:
    """O35: equal messages keep their places."""
    messages = [
        (said if number % 2 == 0 else answered)("(no output)" if number % 12 < 5 else f"message {number}")
        for number in range(60)
    ]
    store = MemoryStore()
    for _ in range(10):
        take_in(store, session(*messages))
        assert [page.text for page in stored(store)] == [message.blocks[0].text for message in messages]
    assert store.sessions(POOL) == ("s",)


@settings(max_examples=60, deadline=None)
@given(MESSAGES, MESSAGES)
def test_a_grown_transcript_adds_what_is_new_and_changes_nothing(
    first: list[AgentMessage], more: list[AgentMessage]
) -> None:
    store, before = in_store(session(*first))
    result = take_in(store, session(*first, *more))
    after = stored(store)
    assert after[: len(before)] == before
    assert result.known_pages == len(before)
    assert result.added_pages == len(after) - len(before)
    assert blocks_in(after) == blocks_of(session(*first, *more))
    assert store.sessions(POOL) in ((), ("s",))


@settings(max_examples=60, deadline=None)
@given(MESSAGES, st.data())
def test_growing_step_by_step_keeps_every_block_and_its_number(
    messages: list[AgentMessage], data: st.DataObject
) -> None:
    store = MemoryStore()
    for end in sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=4))):
        take_in(store, session(*messages[:end]))
    take_in(store, session(*messages))
    assert blocks_in(stored(store)) == blocks_of(session(*messages))
    assert take_in(store, session(*messages)).added_pages == 0


def test_an_answer_that_was_logged_in_pieces_goes_on_where_it_broke_off() -> None:
    """The log of a session that runs holds the first blocks of the newest answer."""
    pieces = (thinking("hm"), text("I look."), call("c1", "Bash", command="ls"))
    store = MemoryStore()
    for count in (1, 2, 3):
        take_in(store, session(said("go"), answered(*pieces[:count])))
    whole = session(said("go"), answered(*pieces), returned(gave("c1", "a b")))
    take_in(store, whole)
    assert blocks_in(stored(store)) == blocks_of(whole)
    assert store.sessions(POOL) == ("s",)
    assert take_in(store, whole).added_pages == 0


def test_an_answer_that_came_later_does_not_move_the_empty_side_before_it() -> None:
    store, _ = in_store(session(said("hello?")))
    take_in(store, session(said("hello?"), answered("yes")))
    assert shown(stored(store)) == [("user", "hello?"), ("", ""), ("", ""), ("assistant", "yes")]


# -- secrets ------------------------------------------------------------------------------------


def with_secret(mode: RedactionMode) -> tuple[MemoryStore, AgentSession]:
    one = session(said(f"my key is {SECRET}"), answered("ok", call("c1", "Bash", command=f"export T={SECRET}")))
    store = MemoryStore()
    importer(store, mode=mode).run(one)
    return store, one


@pytest.mark.parametrize("first", RedactionMode)
@pytest.mark.parametrize("second", RedactionMode)
def test_secrets_are_no_difference_whatever_the_setting_was(first: RedactionMode, second: RedactionMode) -> None:
    store, one = with_secret(first)
    before = stored(store)
    again = importer(store, mode=second).run(grown(one, said("and?")))
    assert (again.diverged_from, again.known_pages, again.added_pages) == ("", len(before), 2)
    assert stored(store)[: len(before)] == before


def test_a_stored_secret_is_out_of_the_text_its_terms_and_its_labels() -> None:
    store, _ = with_secret(RedactionMode.KEEP)
    for page in stored(store):
        assert SECRET not in page.text
        assert not any(SECRET.lower()[:12] in term for term in page.terms)
    assert importer(store).run(session(said(f"my key is {SECRET}"), name="other")).redacted_pages == 1


def test_another_secret_is_another_text() -> None:
    store, one = with_secret(RedactionMode.KEEP)
    other = SECRET[:-4] + ("AAAA" if SECRET[-4:] != "AAAA" else "BBBB")
    changed = replace(one, messages=(said(f"my key is {other}"), *one.messages[1:]))
    assert take_in(store, changed).diverged_from == "s"


# -- what does not match ------------------------------------------------------------------------


def walk(one: AgentSession, owner: str = "") -> Ingest:
    return Ingest(one, b"key", owner)


@pytest.mark.parametrize(
    "other",
    [
        session(said("hello!"), answered("yes")),
        session(answered("hello?")),
        session(returned(gave("c", "hello?"))),
        session(said("hello?", origin="")),
    ],
)
def test_a_page_matches_its_own_text_side_and_kind_alone(other: AgentSession) -> None:
    _, pages = in_store(session(said("hello?")))
    expected = other.messages[0] == said("hello?")
    assert walk(other).match(pages[0]) is expected


BLOCKS = st.builds(
    ContentBlock,
    st.sampled_from(BlockKind),
    st.sampled_from(["", "x", "{}", SECRET]),
    st.sampled_from(["", "c1", "c2"]),
    st.sampled_from(["", "Bash", "Write"]),
    st.booleans(),
    st.sampled_from([0, 5]),
)


@settings(max_examples=150, deadline=None)
@given(
    first=BLOCKS,
    second=BLOCKS,
    roles=st.tuples(st.sampled_from(MessageRole), st.sampled_from(MessageRole)),
    origins=st.tuples(st.sampled_from(["", "meta"]), st.sampled_from(["", "meta"])),
)
def test_what_a_page_shows_of_its_message_tells_two_apart(
    first: ContentBlock, second: ContentBlock, roles: tuple[MessageRole, MessageRole], origins: tuple[str, str]
) -> None:
    """Another tool, call, failure, size of image, role or origin is another message, whatever the text is."""
    old, new = (
        AgentMessage(role, (block,), origin=origin, is_call=role is MessageRole.ASSISTANT)
        for role, block, origin in zip(roles, (first, second), origins, strict=True)
    )
    shown_of = [
        (page.role, page_blocks(page), page.labels.origin)
        for page in (draft_page(one, one.blocks, 0) for one in (old, new))
    ]
    is_same = shown_of[0] == shown_of[1]
    store, _ = in_store(session(old, said("end")))
    result = take_in(store, session(new, said("end")))
    named_late = first.kind is second.kind is BlockKind.TOOL_RESULT and not first.name
    if not named_late:
        assert (result.diverged_from == "") is is_same


def test_a_message_that_lost_its_end_is_another_unless_it_is_the_last() -> None:
    whole = session(answered("a", "b"), said("c"))
    for older, is_known in ((session(answered("a")), True), (session(answered("a"), said("c")), False)):
        store, _ = in_store(whole)
        assert (take_in(store, older).added_pages == 0) is is_known


def test_a_result_logged_in_front_of_its_call_gets_its_tool_later() -> None:
    store, _ = in_store(session(returned(gave("c1", "x"))))
    named = session(returned(gave("c1", "x", "Bash")), answered(call("c1", "Bash", command="ls")))
    assert take_in(store, named).diverged_from == ""


def test_a_page_of_somebody_else_or_of_no_agent_matches_nothing() -> None:
    store = MemoryStore()
    take_in(store, session(said("hello?")), owner="ann")
    page = stored(store, "s@ann")[0]
    assert not walk(session(said("hello?"))).match(page)
    assert walk(session(said("hello?")), owner="ann").match(page)
    chat = replace(page, labels=replace(page.labels, provenance=None, owner=""))
    assert not walk(session(said("hello?"))).match(chat)


def test_nothing_moves_where_nothing_matches() -> None:
    _, pages = in_store(session(said("hello?"), answered("yes")))
    ingest = walk(session(said("hello!")))
    assert not ingest.match(pages[0])
    assert (ingest.ordinal, ingest.number, ingest.is_done) == (0, 0, False)


def test_a_deleted_page_stands_for_whatever_was_there() -> None:
    store, pages = in_store(FIXING)
    store.delete_pages(POOL, [pages[3].page_id, pages[4].page_id, pages[5].page_id])
    again = take_in(store, grown(FIXING, said("thanks")))
    assert (again.added_pages, again.deleted_pages, again.diverged_from) == (2, 3, "")
    store.delete_session(POOL, FIXING.session_id)
    assert take_in(store, FIXING).added_pages == 0
    assert all(page.labels.deleted for page in stored(store, FIXING.session_id)[:-2])
