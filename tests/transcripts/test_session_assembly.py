"""Calls paired with results, and what does not fit."""

from __future__ import annotations

from context_gatekeeper.transcripts.session_assembly import ATTACHMENT, assemble_session
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, MessageRole, SessionEvent


def call(call_id: str, name: str = "Read", line: int = 0) -> AgentMessage:
    block = ContentBlock(BlockKind.TOOL_CALL, "{}", call_id, name)
    return AgentMessage(MessageRole.ASSISTANT, (block,), is_call=True, source_line=line)


def result(call_id: str, *texts: str, name: str = "") -> AgentMessage:
    blocks = (ContentBlock(BlockKind.TOOL_RESULT, text, call_id, name) for text in texts or ("out",))
    return AgentMessage(MessageRole.TOOL, tuple(blocks))


def assembled(*messages: AgentMessage) -> AgentSession:
    return assemble_session("s", "agents", messages, ())


def names(session: AgentSession) -> list[str]:
    return [block.name for message in session.messages for block in message.blocks]


def test_results_get_the_names_of_their_tools() -> None:
    session = assembled(call("a", "Read"), call("b", "Bash"), result("b", "1", "2"), result("a"))
    assert names(session) == ["Read", "Bash", "Bash", "Bash", "Read"]
    assert session.warnings == ()


def test_a_name_that_a_result_brings_stays() -> None:
    assert names(assembled(call("a", "Read"), result("a", name="read_file"))) == ["Read", "read_file"]


def test_what_the_reader_knows_goes_into_the_session() -> None:
    event = SessionEvent("compact")
    session = assemble_session("s", "codex", [call("a"), result("a")], ["w"], events=[event], working_folder="/srv")
    assert (session.session_id, session.source, session.events, session.working_folder, session.warnings) == (
        "s", "codex", (event,), "/srv", ("w",),
    )  # fmt: skip


def test_an_orphan_and_an_unanswered_call_are_kept_and_told() -> None:
    session = assembled(call("a", line=4), result("b"))
    assert len(session.messages) == 2
    assert session.warnings == (
        "message 2: the result of 'b' has no call; it is kept",
        "line 4, message 1: the call 'a' of 'Read' has no result",
    )


def test_an_id_used_twice_pairs_each_result_with_the_newest_call_above() -> None:
    session = assembled(call("a", "Read"), result("a"), call("a", "Bash"), result("a"))
    assert names(session) == ["Read", "Read", "Bash", "Bash"]
    assert session.warnings == ("message 3: the call id 'a' is used again; both calls are kept",)


def test_a_second_result_is_kept_and_told_once() -> None:
    session = assembled(call("a"), result("a"), result("a"), call("a"))
    assert session.warnings == (
        "message 3: the call 'a' has one more result; all are kept",
        "message 4: the call id 'a' is used again; both calls are kept",
        "message 1: the call 'a' of 'Read' has no result",
    )


def test_a_result_before_its_call_has_the_name_all_the_same() -> None:
    session = assembled(result("a"), call("a", "Bash"))
    assert names(session) == ["Bash", "Bash"]
    assert session.warnings[0] == "message 1: the result of 'a' stands before its call"


def test_calls_and_results_without_ids_are_told_and_not_paired() -> None:
    session = assembled(call("", "Read"), result(""))
    assert names(session) == ["Read", ""]
    assert session.warnings == ("message 1: the call of 'Read' has no id", "message 2: a result has no call id")


def test_a_message_without_content_is_kept_and_told() -> None:
    session = assembled(AgentMessage(MessageRole.USER, (), source_line=3))
    assert len(session.messages) == 1
    assert session.warnings == ("line 3, message 1: it holds nothing",)


def test_unknown_blocks_are_counted_in_one_line_and_attachments_are_not() -> None:
    def other(name: str, origin: str = "") -> AgentMessage:
        return AgentMessage(MessageRole.USER, (ContentBlock(BlockKind.OTHER, "{}", name=name),), origin=origin)

    session = assembled(other("cube"), other("sphere"), other("cube"), other("file", ATTACHMENT))
    assert session.warnings == ("content of unknown types is kept as JSON: 'cube' 2, 'sphere' 1",)
