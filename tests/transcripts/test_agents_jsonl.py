"""Agent sessions as JSON Lines, a session a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession, BlockKind, ContentBlock, MessageRole, SessionEvent, Usage

SAMPLE = Path(__file__).parents[1] / "data" / "agents" / "agents.jsonl"


def read(tmp_path: Path, *sessions: object) -> list[AgentSession]:
    path = tmp_path / "sessions"
    path.write_text("".join(json.dumps(one) + "\n" for one in sessions))
    return read_sessions(path)


def session(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"id": "s", "source": "ours", "messages": messages, **more}


def test_the_sample_is_read_whole() -> None:
    first, second = read_sessions(SAMPLE)
    assert [(one.session_id, one.source, one.warnings) for one in (first, second)] == [
        ("bookshop/one", "agents", ()),
        ("bookshop/two", "agents", ()),
    ]
    assert [len(one.messages) for one in (first, second)] == [7, 5]
    assert first.events == (SessionEvent("compact", 1769934600.0, 150000),)
    assert {message.source_line for message in second.messages} == {2}


def test_a_call_has_its_thinking_in_front_its_times_and_its_usage() -> None:
    call = read_sessions(SAMPLE)[0].messages[1]
    assert call.blocks == (
        ContentBlock(BlockKind.THINKING, hidden_chars=120),
        ContentBlock(BlockKind.TEXT, "我看看查询。"),
        ContentBlock(BlockKind.TOOL_CALL, '{"file_path": "orders.py"}', "toolu_a", "Read"),
        ContentBlock(BlockKind.TOOL_CALL, '{"pattern": "SELECT"}', "toolu_b", "Grep"),
    )
    assert (call.time, call.end_time) == (1769932805.0, 1769932807.0)
    assert call.usage == Usage(10, 20000, 300, None)


def test_results_have_their_tools_names_and_failures() -> None:
    _, _, read_result, grep_result, *_ = read_sessions(SAMPLE)[0].messages
    assert read_result.blocks == (ContentBlock(BlockKind.TOOL_RESULT, "rows = list(query)", "toolu_a", "Read"),)
    assert grep_result.blocks == (ContentBlock(BlockKind.TOOL_RESULT, "no matches", "toolu_b", "Grep", is_error=True),)


def test_output_is_counted_only_where_the_log_says_that_it_is_final() -> None:
    usages = [message.usage for message in read_sessions(SAMPLE)[0].messages if message.usage]
    assert [usage.output_tokens for usage in usages] == [None, 57]


def test_calls_are_the_messages_with_a_call_id_where_there_are_any() -> None:
    first, second = read_sessions(SAMPLE)
    assert [message.is_call for message in first.messages] == [False, True, False, False, False, True, False]
    assert [message.is_call for message in second.messages] == [False, False, True, False, True]


def test_origins_say_why_nobody_typed_a_message() -> None:
    first, second = read_sessions(SAMPLE)
    assert [message.origin for message in first.messages] == ["", "", "", "", "compact_summary", "", "synthetic"]
    assert second.messages[3].origin == "synthetic"


def test_without_call_ids_a_notice_is_no_call(tmp_path: Path) -> None:
    messages = [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b", "synthetic": True}]
    (read_one,) = read(tmp_path, session(messages))
    assert [message.is_call for message in read_one.messages] == [True, False]


def test_records_that_are_no_sessions_are_skipped_and_ids_used_again_kept(tmp_path: Path) -> None:
    one = session([{"role": "user", "content": "x"}])
    sessions = read(tmp_path, {"note": 1}, one, [2], one, {"source": "ours", "messages": []})
    assert [each.session_id for each in sessions] == ["s", "s", "5"]
    assert sessions[0].warnings == (
        "line 1: it is no session with 'messages'; it is skipped",
        "line 3: it is no session with 'messages'; it is skipped",
        "line 4: the session id 's' is used again; both are kept",
    )


def test_odd_events_are_skipped_and_told(tmp_path: Path) -> None:
    events = [{"type": "microcompact", "time": None}, 7, {"type": None}]
    first, second = read(tmp_path, session([], events=events), {**session([], events={"type": "compact"}), "id": "t"})
    assert first.events == (SessionEvent("microcompact"),)
    assert first.warnings == (
        "line 1, event 2: it has no type; it is skipped",
        "line 1, event 3: it has no type; it is skipped",
    )
    assert second.events == (SessionEvent("compact"),)


def test_places_name_line_and_message(tmp_path: Path) -> None:
    (read_one,) = read(tmp_path, session([{"role": "user", "content": "x"}, 7]))
    assert read_one.messages[1].role is MessageRole.USER
    assert read_one.warnings[0] == "line 1, message 2: it is no message; it is kept as JSON"
