"""Rollouts of Codex, the newer form and the older."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession, BlockKind, ContentBlock, MessageRole, SessionEvent, Usage

DATA = Path(__file__).parents[1] / "data" / "agents"


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-04-11T07:00:00Z", "type": "response_item", "payload": payload}


def said(role: str, text: str) -> dict[str, Any]:
    return item(type="message", role=role, content=[{"type": "input_text", "text": text}])


def event(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-04-11T07:00:01Z", "type": "event_msg", "payload": {"type": kind, **payload}}


def counted(total: int, prompt: int) -> dict[str, Any]:
    info = {
        "total_token_usage": {"total_tokens": total},
        "last_token_usage": {"input_tokens": prompt, "output_tokens": 1},
    }
    return event("token_count", info=info)


def read(tmp_path: Path, *lines: object) -> AgentSession:
    path = tmp_path / "rollout"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (session,) = read_sessions(path)
    return session


def outline(session: AgentSession) -> list[tuple[int, str, str, list[tuple[str, str]]]]:
    return [
        (one.source_line, one.role.value, one.origin, [(block.kind.value, block.text) for block in one.blocks])
        for one in session.messages
    ]


def test_the_sample_is_read_whole() -> None:
    (session,) = read_sessions(DATA / "codex_rollout.jsonl")
    assert (session.session_id, session.source) == ("0199f0aa-7e01-7c33-8d10-abcdef012345", "codex")
    assert session.working_folder == "/srv/bookshop"
    assert session.events == (SessionEvent("compact", 1775890878.0),)
    assert session.warnings == (
        "lines of unknown types are skipped: 'quantum_state' 1",
        "line 25: 2 messages that were rolled back here are left out",
        "content of unknown types is kept as JSON: 'web_search_call' 1",
    )
    assert [(line, role, origin) for line, role, origin, _ in outline(session)] == [
        (1, "system", ""), (2, "system", ""), (3, "user", "meta"), (5, "user", ""), (8, "assistant", ""),
        (13, "tool", ""), (14, "tool", ""), (15, "assistant", ""), (17, "tool", ""), (18, "assistant", ""),
        (26, "user", "compact_summary"), (28, "user", ""), (29, "assistant", ""), (30, "tool", ""),
        (31, "assistant", ""),
    ]  # fmt: skip


def test_a_run_of_the_assistants_items_is_one_call() -> None:
    (session,) = read_sessions(DATA / "codex_rollout.jsonl")
    call = session.messages[4]
    assert call.is_call
    assert [(block.kind.value, block.text, block.call_id, block.name) for block in call.blocks] == [
        ("thinking", "**Looking for the update**", "", ""),
        ("thinking", "", "", ""),
        ("text", "我先看扣减的代码和测试。", "", ""),
        ("tool_call", '{"command":"rg -n \'stock -=\' src"}', "call_a1", "shell_command"),
        ("tool_call", '{"command":"ls tests"}', "call_a2", "shell_command"),
    ]
    assert call.blocks[1] == ContentBlock(BlockKind.THINKING, hidden_chars=12, data="gAAAAAB0cmVl")
    assert (call.time, call.end_time) == (1775890824.0, 1775890833.0)


def test_the_count_behind_a_call_is_its_usage_and_a_repeated_or_empty_one_is_nobodys() -> None:
    (session,) = read_sessions(DATA / "codex_rollout.jsonl")
    assert [message.usage for message in session.messages if message.is_call] == [
        Usage(1004, 4096, 0, 100), Usage(180, 5120, 0, 60), Usage(200, 5300, 0, 40), None, Usage(4000, 0, 0, 30),
    ]  # fmt: skip


def test_the_older_form_is_read_the_same_way() -> None:
    (session,) = read_sessions(DATA / "codex_bare.jsonl")
    assert (session.session_id, session.working_folder) == ("0198aa00-0000-7000-8000-00000000beef", "/srv/old-shop")
    assert session.warnings == ()
    assert [(role, origin, texts) for _, role, origin, texts in outline(session)][1:] == [
        ("user", "", [("text", "价格为什么四舍五入错了？")]),
        ("assistant", "", [("thinking", "Decimal or float?"), ("tool_call", '{"command":["grep","round"]}')]),
        ("tool", "", [("tool_result", '{"output":"price.py:3","metadata":{"exit_code":0}}')]),
        ("assistant", "", [("text", "用了二进制浮点数。")]),
    ]


@pytest.mark.parametrize(
    ("payload", "block"),
    [
        (
            {"type": "tool_search_call", "call_id": "c", "arguments": {"q": 1}},
            ContentBlock(BlockKind.TOOL_CALL, '{"q":1}', "c", "tool_search"),
        ),
        (
            {"type": "local_shell_call", "id": "c", "call_id": None, "action": {}},
            ContentBlock(BlockKind.TOOL_CALL, "{}", "c", "local_shell"),
        ),
        (
            {"type": "image_generation_call", "id": "c"},
            ContentBlock(BlockKind.OTHER, '{"type":"image_generation_call","id":"c"}', name="image_generation_call"),
        ),
        ({"a": 1}, ContentBlock(BlockKind.OTHER, '{"a":1}', name="item")),
        (
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            ContentBlock(BlockKind.THINKING, "hm"),
        ),
    ],
)
def test_other_items_belong_to_the_call(tmp_path: Path, payload: dict[str, Any], block: ContentBlock) -> None:
    assert read(tmp_path, said("user", "x"), item(**payload)).messages[1].blocks == (block,)


@pytest.mark.parametrize(
    ("payload", "text", "is_error"),
    [
        ({"output": "out"}, "out", False),
        ({"output": {"content": "out", "success": False}}, "out", True),
        ({"output": {"content": "out", "success": True}}, "out", False),
        ({"output": {"x": 1}}, '{"x":1}', False),
        ({"tools": []}, '{"type":"f_output","call_id":"c","tools":[]}', False),
    ],
)
def test_outputs_of_every_form_are_results(tmp_path: Path, payload: dict[str, Any], text: str, is_error: bool) -> None:
    session = read(tmp_path, said("user", "x"), item(type="f_output", call_id="c", **payload))
    assert session.messages[1].blocks == (ContentBlock(BlockKind.TOOL_RESULT, text, "c", is_error=is_error),)


def test_a_message_of_an_unknown_role_is_kept_and_told(tmp_path: Path) -> None:
    session = read(tmp_path, said("critic", "x"), item(type="message", role=None, content="y"))
    assert [(one.role, one.origin) for one in session.messages] == [
        (MessageRole.USER, "critic"),
        (MessageRole.USER, "unknown"),
    ]
    assert "line 1: its role is 'critic', which is not known; it is kept as a user's" in session.warnings


def test_messages_that_the_program_wrote_have_an_origin(tmp_path: Path) -> None:
    texts = ["# AGENTS.md instructions for x", "<user_shell_command>ls", "<turn_aborted>", "I typed <turn_aborted>"]
    session = read(tmp_path, *(said("user", text) for text in texts), item(type="message", role="user", content=[]))
    assert [one.origin for one in session.messages] == ["meta", "user_shell", "meta", "", ""]


def test_the_first_head_is_the_sessions_own(tmp_path: Path) -> None:
    heads = [{"type": "session_meta", "payload": {"session_id": name, "cwd": f"/srv/{name}"}} for name in ("a", "b")]
    session = read(tmp_path, *heads, {"type": "turn_context", "payload": {"cwd": "/srv/c"}})
    assert (session.session_id, session.working_folder, session.messages) == ("a", "/srv/a", ())


def test_a_file_without_a_head_has_its_folder_from_the_turn(tmp_path: Path) -> None:
    session = read(tmp_path, {"type": "turn_context", "payload": {"cwd": "/srv/c"}}, said("user", "<turn_aborted>"))
    assert (session.session_id, session.working_folder) == ("1", "/srv/c")


def test_a_summary_in_any_form_is_a_message(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        said("assistant", "x"),
        {"type": "compacted", "payload": {"message": "", "replacement_history": [1]}},
        {"type": "compacted", "payload": {}},
        item(type="compaction", encrypted_content="zz"),
    )
    assert [(one.role.value, one.origin, [block.name for block in one.blocks]) for one in session.messages[1:]] == [
        ("user", "compact_summary", ["replacement_history"]),
        ("user", "compact_summary", ["compaction"]),
    ]
    assert [one.kind for one in session.events] == ["compact", "compact"]


def test_a_later_count_without_a_call_changes_nothing(tmp_path: Path) -> None:
    lines = [counted(5, 5), said("assistant", "x"), counted(10, 7), counted(20, 9), event("token_count", info=None)]
    session = read(tmp_path, *lines, event("token_count", info={}), event("agent_message", message="x"))
    assert session.messages[0].usage == Usage(7, 0, 0, 1)


def test_rolling_back_leaves_out_the_last_turns(tmp_path: Path) -> None:
    turns = [said(role, f"{role} {number}") for number in (1, 2, 3) for role in ("user", "assistant")]
    assert len(read(tmp_path, *turns, event("thread_rolled_back", num_turns=2)).messages) == 2
    assert len(read(tmp_path, *turns, event("thread_rolled_back", num_turns=9)).messages) == 0
    assert len(read(tmp_path, *turns, event("thread_rolled_back", num_turns=0)).messages) == 6
    assert len(read(tmp_path, turns[1], event("thread_rolled_back", num_turns=1)).messages) == 1


def test_after_rolling_back_the_next_item_begins_a_call(tmp_path: Path) -> None:
    lines = [said("user", "a"), said("assistant", "b"), event("thread_rolled_back", num_turns=1), counted(9, 9)]
    session = read(tmp_path, *lines, said("assistant", "c"))
    assert outline(session) == [(5, "assistant", "", [("text", "c")])]
    assert session.messages[0].usage is None


def test_lines_that_are_none_of_a_rollout_are_skipped_and_told(tmp_path: Path) -> None:
    session = read(tmp_path, said("user", "x"), 7, {"type": "response_item", "payload": 7}, {"type": "event"}, {"a": 1})
    assert session.warnings == tuple(f"line {line}: it is no line of a rollout; it is skipped" for line in (2, 3, 4, 5))


def test_an_empty_message_of_the_older_form_is_kept(tmp_path: Path) -> None:
    head = {"id": "h", "timestamp": "2025-08-18T01:16:13Z", "instructions": "x"}
    session = read(tmp_path, head, {"type": "message", "role": "assistant", "content": []}, {"type": "web_search_call"})
    assert [len(one.blocks) for one in session.messages] == [1]
    assert session.messages[0].time is None


def test_an_older_file_without_its_head_is_known_by_its_parts(tmp_path: Path) -> None:
    parts = [{"type": ["odd"]}, {"type": "input_text", "text": "x"}]
    session = read(tmp_path, {"type": "message", "role": "user", "content": parts})
    assert (session.session_id, session.source) == ("1", "codex")
    assert [block.text for block in session.messages[0].blocks] == ['{"type":["odd"]}', "x"]
