"""What blocks hold beside their text (signatures, sealed thinking, images) stays with them, byte for byte."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, MessageRole

ANY = st.text(st.characters(exclude_categories=()), max_size=12)
SHORT = st.sampled_from(["", "look", "好的", "it fails\n"])
LONG = "iVBORw0KGgo" * 300
"""Longer than what stays in a page's row."""
KEY_LIKE = "sk-ant-api03-a1B2c3D4e5F6g7H8i9J0k1L2"
BESIDE = ANY | st.sampled_from([LONG, KEY_LIKE, "AKIA2E4G6H7J8K9LMNPQ", "\ud83d", "\0"])
THINKING = st.builds(
    ContentBlock, st.just(BlockKind.THINKING), SHORT, hidden_chars=st.integers(0, 9), signature=BESIDE, data=BESIDE
)
IMAGES = st.builds(ContentBlock, st.just(BlockKind.IMAGE), hidden_chars=st.just(4), data=BESIDE, media_type=ANY)
TEXTS = st.builds(ContentBlock, st.just(BlockKind.TEXT), SHORT)
RESULTS = st.builds(ContentBlock, st.just(BlockKind.TOOL_RESULT), SHORT, st.just("c1"), st.just("Read"))


def message(role: MessageRole, *kinds: st.SearchStrategy[ContentBlock]) -> st.SearchStrategy[AgentMessage]:
    blocks = st.lists(st.one_of(*kinds), min_size=1, max_size=4).map(tuple)
    return st.builds(AgentMessage, st.just(role), blocks, is_call=st.just(role is MessageRole.ASSISTANT))


RESULT_MESSAGES = st.builds(
    lambda result, images: AgentMessage(MessageRole.TOOL, (result, *images)), RESULTS, st.lists(IMAGES, max_size=2)
)
SESSIONS = st.lists(
    message(MessageRole.USER, TEXTS, IMAGES) | message(MessageRole.ASSISTANT, THINKING, TEXTS) | RESULT_MESSAGES,
    min_size=1,
    max_size=5,
).map(lambda messages: AgentSession("s", "agents", tuple(messages)))


def blocks_of(session: AgentSession) -> list[ContentBlock]:
    return [block for one in session.messages for block in one.blocks]


def grown(session: AgentSession) -> Iterator[AgentSession]:
    """The session after each block that was logged."""
    for place, one in enumerate(session.messages):
        for count in range(1, len(one.blocks) + 1):
            newest = replace(one, blocks=one.blocks[:count])
            yield replace(session, messages=(*session.messages[:place], newest))


@pytest.mark.parametrize("redaction", ["keep", "off"])
@settings(max_examples=30, deadline=None)
@given(SESSIONS)
def test_blocks_come_back_as_they_were(redaction: str, session: AgentSession) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.db"
        with AgentPool(path, redaction=redaction, sealed_folder=folder) as pool:
            pool.import_session(session)
        with AgentPool(path, redaction=redaction, sealed_folder=folder) as pool:
            assert blocks_of(pool.session("s")) == blocks_of(session)
            assert pool.import_session(session).added_pages == 0


@settings(max_examples=30, deadline=None)
@given(SESSIONS)
def test_blocks_of_a_session_that_grows_are_those_of_the_whole(session: AgentSession) -> None:
    with AgentPool() as pool:
        for so_far in grown(session):
            pool.import_session(so_far)
        assert [info.name for info in pool.sessions()] == ["s"]
        assert blocks_of(pool.session("s")) == blocks_of(session)


def signed_session(mark: str) -> AgentSession:
    image = ContentBlock(BlockKind.IMAGE, hidden_chars=4, data=f"{mark}image{LONG}", media_type="image/png")
    thinking = ContentBlock(BlockKind.THINKING, "think", signature=f"{mark}signature")
    sealed = ContentBlock(BlockKind.THINKING, hidden_chars=8, data=f"{mark}sealed")
    return AgentSession(
        "s",
        "agents",
        (
            AgentMessage(MessageRole.USER, (ContentBlock(BlockKind.TEXT, "look at this"), image)),
            AgentMessage(MessageRole.ASSISTANT, (thinking, sealed, ContentBlock(BlockKind.TEXT, "ok")), is_call=True),
        ),
    )


def test_what_is_forgotten_is_gone_from_the_file(tmp_path: Path) -> None:
    with AgentPool(tmp_path / "pool.db", sealed_folder=tmp_path) as pool:
        pool.import_session(signed_session("zqx"))
        assert b"zqxsignature" in files(tmp_path)
        question, answer = pool.pages("s")
        pool.forget_pages([answer.handle])
        assert b"zqxsignature" not in files(tmp_path)
        assert blocks_of(pool.session("s")) == list(signed_session("zqx").messages[0].blocks)
        pool.forget_pages([question.handle])
        assert pool.session("s").messages == ()
        assert pool.import_session(signed_session("zqx")).added_pages == 0
    assert b"zqx" not in files(tmp_path)


@settings(max_examples=8, deadline=None)
@given(SESSIONS, st.booleans())
def test_a_forgotten_session_leaves_no_byte_of_what_stood_beside(session: AgentSession, grows: bool) -> None:
    messages = (replace(one, blocks=tuple(map(with_mark, one.blocks))) for one in session.messages)
    marked = replace(session, messages=tuple(messages))
    with tempfile.TemporaryDirectory() as folder:
        with AgentPool(Path(folder) / "pool.db", sealed_folder=folder) as pool:
            for so_far in grown(marked) if grows else (marked,):
                pool.import_session(so_far)
            assert blocks_of(pool.session("s")) == blocks_of(marked)
            pool.forget_session("s")
        assert b"zqx" not in files(Path(folder))


def with_mark(block: ContentBlock) -> ContentBlock:
    return replace(block, signature=f"zqx{block.signature}", data=f"{block.data}zqx")


def files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_the_same_text_under_another_signature_is_another_session() -> None:
    with AgentPool() as pool:
        pool.import_session(signed_session("one"))
        assert pool.import_session(signed_session("two")).session == "s~2"


def test_a_log_without_signatures_is_the_same_session_and_takes_none_away() -> None:
    session = signed_session("one")
    bare = replace(
        session,
        messages=tuple(
            replace(one, blocks=tuple(replace(block, signature="", data="", media_type="") for block in one.blocks))
            for one in session.messages
        ),
    )
    for first, second in ((session, bare), (bare, session)):
        with AgentPool() as pool:
            pool.import_session(first)
            assert pool.import_session(second).added_pages == 0
            assert blocks_of(pool.session("s")) == blocks_of(first)


def test_a_page_of_an_earlier_version_with_sealed_thinking_as_its_text_is_the_same() -> None:
    session = signed_session("one")
    user, answer = session.messages
    sealed = ContentBlock(BlockKind.THINKING, "onesealed")
    older = replace(answer, blocks=(replace(answer.blocks[0], signature=""), sealed, answer.blocks[2]))
    with AgentPool() as pool:
        pool.import_session(replace(session, messages=(user, older)))
        assert pool.import_session(session).added_pages == 0


def test_nothing_beside_is_counted_found_or_shown_as_text() -> None:
    session = signed_session("zqxmark")
    with AgentPool() as pool, AgentPool() as other:
        pool.import_session(session)
        other.import_session(signed_session(""))
        assert [view.tokens for view in pool.pages("s")] == [view.tokens for view in other.pages("s")]
        assert [view.chars for view in pool.pages("s")] == [len("look at this"), len("think\n\nok")]
        assert pool.plan("s").lines() == other.plan("s").lines()
        assert pool.recall("zqxmarksignature zqxmarksealed").pages == ()
        assert "zqxmark" not in "".join(pool.expand(view.handle).text for view in pool.pages("s"))


def test_the_handle_of_a_block_without_text_gives_what_stands_beside() -> None:
    with AgentPool() as pool:
        pool.import_session(signed_session("AB"))
        image = f"data:image/png;base64,ABimage{LONG}"
        assert pool.expand("p1").text == image
        assert pool.expand("p1", joins_secrets=False).text == image
        assert pool.expand("p1#C0-14").text == "data:image/png"
        assert pool.expand("p2").text == "think"
        assert pool.expand("p3").text == "ABsealed"
        assert pool.expand("p0-p1").blocks == (("p0", "look at this"), ("p1", image))


def test_the_handle_of_a_page_gives_its_text_and_of_one_without_text_what_stands_beside() -> None:
    images = tuple(ContentBlock(BlockKind.IMAGE, hidden_chars=4, data=data) for data in ("AAAA", "", "BBBB"))
    text = ContentBlock(BlockKind.TEXT, "two images")
    for blocks, shown in (
        (images, "data:;base64,AAAA\n\ndata:;base64,BBBB"),
        ((*images, text), "two images"),
        (images[1:2], ""),
    ):
        with AgentPool() as pool:
            pool.import_session(AgentSession("s", "agents", (AgentMessage(MessageRole.USER, blocks),)))
            (page,) = pool.pages("s")
            assert pool.expand(page.handle).text == shown
            assert pool.expand(page.handle, joins_secrets=False).text == shown


def test_a_log_of_claude_code_gives_its_signatures_and_images_back(tmp_path: Path) -> None:
    source = {"type": "base64", "media_type": "image/webp", "data": "UklGRg=="}
    content = [
        {"type": "thinking", "thinking": "", "signature": "EqQBCkYIBxgC"},
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3"},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.webp"}},
    ]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "source": source}]}
    told = [("user", "look", None), ("assistant", content, "1"), ("user", [result], "2")]
    lines = [
        {
            "type": role,
            "uuid": str(number),
            "parentUuid": parent,
            "sessionId": "s",
            "message": {"role": role, "content": said},
        }
        for number, (role, said, parent) in enumerate(told, 1)
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, lines)))
    (session,) = read_sessions(log)
    with AgentPool() as pool:
        pool.import_session(session)
        held = {(block.kind, block.signature, block.data, block.media_type) for block in blocks_of(pool.session("s"))}
    assert (BlockKind.THINKING, "EqQBCkYIBxgC", "", "") in held
    assert (BlockKind.THINKING, "", "EmwKAhgBEgy3", "") in held
    assert (BlockKind.IMAGE, "", "UklGRg==", "image/webp") in held
