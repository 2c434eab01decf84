"""Sessions of Claude Code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import (
    AgentMessage,
    AgentSession,
    BlockKind,
    ContentBlock,
    MessageRole,
    SessionEvent,
    Usage,
)

SAMPLE = Path(__file__).parents[1] / "data" / "agents" / "claude_code.jsonl"
SESSION = "7d3e9a10-52b4-4f6c-9a01-c0ffee000001"


def record(uuid: str, parent: str | None, kind: str, **more: Any) -> dict[str, Any]:
    return {"uuid": uuid, "parentUuid": parent, "type": kind, "sessionId": "s", "isSidechain": False, **more}


def typed(uuid: str, parent: str | None, content: object, **more: Any) -> dict[str, Any]:
    return record(uuid, parent, "user", message={"role": "user", "content": content}, **more)


def wrote(
    uuid: str, parent: str | None, content: object, *, top: dict[str, Any] | None = None, **message: Any
) -> dict[str, Any]:
    return record(
        uuid, parent, "assistant", message={"role": "assistant", "content": content, **message}, **(top or {})
    )


def read_all(tmp_path: Path, *values: object) -> list[AgentSession]:
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return read_sessions(path)


def read(tmp_path: Path, *values: object) -> AgentSession:
    (session,) = read_all(tmp_path, *values)
    return session


def texts(session: AgentSession) -> list[str]:
    return [block.text for message in session.messages for block in message.blocks]


def test_the_sample_is_read_whole() -> None:
    main, agent = read_sessions(SAMPLE)
    assert [(one.session_id, one.source) for one in (main, agent)] == [
        (SESSION, "claude-code"),
        (f"{SESSION}/agent-1", "claude-code"),
    ]
    assert main.working_folder == agent.working_folder == "/srv/bookshop"
    assert main.events == (
        SessionEvent("microcompact", 1772442140.25, 150200),
        SessionEvent("compact", 1772442154.25, 155611),
    )
    assert main.warnings == (
        "records of unknown types are skipped: 'hologram' 2",
        "2 records of branches that were given up are left out",
    )
    assert agent.warnings == ()
    assert [(one.source_line, one.role.value, one.origin) for one in main.messages] == [
        (3, "user", ""), (4, "assistant", ""), (8, "tool", ""), (9, "tool", ""), (10, "assistant", ""),
        (15, "tool", ""), (16, "assistant", ""), (20, "user", ""), (21, "assistant", ""),
        (27, "user", "compact_summary"), (28, "user", "meta"), (29, "user", "attachment"), (30, "user", ""),
        (31, "assistant", ""), (32, "tool", ""), (33, "user", ""), (34, "assistant", ""), (35, "assistant", ""),
    ]  # fmt: skip


def test_the_rewound_turn_is_not_there_and_the_one_before_the_compaction_is() -> None:
    found = texts(read_sessions(SAMPLE)[0])
    assert not {"那就改成返回 503。", "好的，我改成 503。"} & set(found)
    assert found[0] == "登录接口偶尔返回 500，帮我查一下原因。"


def test_the_fragments_of_one_call_are_one_message() -> None:
    call = read_sessions(SAMPLE)[0].messages[1]
    assert call == AgentMessage(
        MessageRole.ASSISTANT,
        (
            ContentBlock(BlockKind.THINKING, "先看路由，再看会话存储。", signature="c2lnbmVk"),
            ContentBlock(BlockKind.TEXT, "我先找登录的代码，同时看会话存储。"),
            ContentBlock(BlockKind.TOOL_CALL, '{"pattern":"def login","path":"src"}', "toolu_01", "Grep"),
            ContentBlock(BlockKind.TOOL_CALL, '{"file_path":"/srv/bookshop/src/session_store.py"}', "toolu_02", "Read"),
        ),
        time=1772442014.25,
        end_time=1772442035.25,
        usage=Usage(4, 18000, 900, 131),
        is_call=True,
        source_line=4,
    )


def test_parallel_results_are_both_there_with_their_tools_names() -> None:
    results = read_sessions(SAMPLE)[0].messages[2:4]
    assert [(one.blocks[0].name, one.blocks[0].call_id) for one in results] == [
        ("Grep", "toolu_01"),
        ("Read", "toolu_02"),
    ]


def test_a_sub_agents_messages_are_a_session_of_their_own() -> None:
    main, agent = read_sessions(SAMPLE)
    assert [(one.role.value, one.blocks[0].text) for one in agent.messages] == [
        ("user", "统计最近的超时。"),
        ("assistant", '{"command":"grep -c timeout log.txt"}'),
        ("tool", "17"),
        ("assistant", "共有 17 次超时。"),
    ]
    assert "17" not in texts(main)


def test_an_image_keeps_its_data() -> None:
    image = read_sessions(SAMPLE)[0].messages[7].blocks[1]
    assert (image.kind, image.text, image.hidden_chars, len(image.data)) == (BlockKind.IMAGE, "", 24, 24)
    assert image.media_type == "image/png"


def test_a_failed_result_an_attachment_and_a_queued_text_are_what_they_were() -> None:
    messages = read_sessions(SAMPLE)[0].messages
    assert messages[14].blocks[0].is_error
    assert (messages[11].blocks[0].kind, messages[11].blocks[0].name) == (BlockKind.OTHER, "edited_text_file")
    assert messages[15].blocks == (ContentBlock(BlockKind.TEXT, "顺便补一个测试。"),)


def test_a_notice_of_the_program_is_no_call_and_has_no_usage() -> None:
    notice = read_sessions(SAMPLE)[0].messages[-1]
    assert (notice.role, notice.is_call, notice.usage) == (MessageRole.ASSISTANT, False, None)


def test_a_broken_line_in_the_middle_costs_only_itself(tmp_path: Path) -> None:
    lines = SAMPLE.read_text("utf-8").splitlines(keepends=True)
    uuid = json.loads(lines[15])["uuid"]
    lines[15] = lines[15][:-20] + "\n"
    path = tmp_path / "session.jsonl"
    path.write_text("".join(lines) + '{"type": "user", "mess', "utf-8")
    main, _ = read_sessions(path)
    assert [one.source_line for one in main.messages][:7] == [3, 4, 8, 9, 10, 15, 20]
    assert [one for one in main.warnings if "records of" not in one] == [
        "line 16: it is no JSON (Unterminated string starting at, column 636); it is skipped",
        "line 37: it is cut off (it is no JSON (Unterminated string starting at, column 18)); it is skipped",
        f"line 17: its parent {uuid!r} is no other record of the file; it is put behind the record before it",
    ]


def test_output_is_that_of_the_fragment_that_ended_the_answer(tmp_path: Path) -> None:
    def usage(output_tokens: int) -> dict[str, int]:
        return {"input_tokens": 5, "output_tokens": output_tokens}

    session = read(
        tmp_path,
        wrote("a", None, [{"type": "text", "text": "1"}], id="m", usage=usage(80), stop_reason="end_turn"),
        wrote("b", "a", [{"type": "text", "text": "2"}], id="m", usage=usage(3)),
        wrote("c", "b", [{"type": "text", "text": "3"}], id="m"),
        wrote("d", "c", "4", id="n"),
        wrote("e", "d", "5", id="n", usage=usage(3)),
    )
    assert [one.usage for one in session.messages] == [Usage(5, 0, 0, 80), Usage(5, 0, 0, None)]
    assert texts(session) == ["1", "2", "3", "4", "5"]


def test_messages_without_ids_and_of_other_requests_are_calls_of_their_own(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        wrote("a", None, "1", id="m", top={"requestId": "r1"}),
        wrote("b", "a", "2", id="m", top={"requestId": "r2"}),
        wrote("c", "b", "3"),
        wrote("d", "c", "4"),
    )
    assert [one.is_call for one in session.messages] == [True] * 4


def test_a_record_may_hold_results_beside_text(tmp_path: Path) -> None:
    parts = [{"type": "tool_result", "tool_use_id": "t", "content": "r"}, {"type": "text", "text": "a"}]
    session = read(tmp_path, typed("a", None, parts), wrote("b", "a", parts))
    assert [(one.role.value, one.blocks[0].text, one.is_call) for one in session.messages] == [
        ("tool", "r", False),
        ("user", "a", False),
        ("assistant", "a", True),
        ("tool", "r", False),
    ]


def test_origins_say_why_nobody_typed_a_message(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        typed("a", None, "1", isCompactSummary=True, isMeta=True),
        typed("b", "a", "2", isMeta=True),
        typed("c", "b", "3", origin={"kind": "task-notification"}),
        typed("d", "c", "4", origin={"kind": "human"}),
        typed("e", "d", "5", origin="x"),
        record("f", "e", "attachment", attachment={"type": "queued_command", "prompt": "6", "commandMode": "bash"}),
        record("g", "f", "system", subtype="local_command", content="7"),
        record("h", "g", "attachment", attachment=None),
    )
    assert [one.origin for one in session.messages] == [
        "compact_summary", "meta", "task-notification", "", "", "bash", "local_command", "attachment",
    ]  # fmt: skip


def test_of_a_hook_only_what_the_model_saw_is_there(tmp_path: Path) -> None:
    def beside(uuid: str, parent: str, kind: str, **more: Any) -> dict[str, Any]:
        return record(uuid, parent, "attachment", attachment={"type": kind, **more})

    session = read(
        tmp_path,
        typed("a", None, "1"),
        beside("b", "a", "hook_success", content="", stdout='{"hookSpecificOutput": {}}', exitCode=0),
        beside("c", "b", "hook_success", hookEvent="SessionStart", content="on main", stdout="on main", durationMs=3),
        beside("d", "c", "hook_additional_context", content=["noted"]),
        beside("e", "d", "hook_non_blocking_error", stderr="no such command"),
        beside("f", "e", "hook_blocking_error", blockingError={"blockingError": "not so"}),
        beside("g", "f", "hook_success", stdout="x"),
        typed("h", "g", "2"),
    )
    assert texts(session) == [
        "1",
        '{"type":"hook_success","hookEvent":"SessionStart","content":"on main"}',
        '{"type":"hook_additional_context","content":["noted"]}',
        '{"type":"hook_blocking_error","blockingError":{"blockingError":"not so"}}',
        "2",
    ]
    assert session.warnings == ()


def test_system_records_that_say_nothing_to_the_model_are_passed_over(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        typed("a", None, "1"),
        record("b", "a", "system", subtype="turn_duration"),
        record("c", "b", "system", subtype=["x"]),
        record("d", "c", "system", subtype="local_command", content=7),
        record("e", "d", "system", subtype="microcompact_boundary"),
        record("f", "e", "progress"),
    )
    assert texts(session) == ["1"]
    assert session.events == (SessionEvent("microcompact"),)


def test_messages_of_odd_forms_are_kept(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        record("a", None, "user", message="bare"),
        record("b", "a", "user"),
        record("c", "b", "assistant", message={"content": {"x": 1}, "usage": 5}, timestamp="soon"),
    )
    assert [[block.text for block in one.blocks] for one in session.messages] == [["bare"], [], ['{"x":1}']]
    assert session.warnings == (
        "line 3: its content is neither a text nor a list; it is kept as JSON",
        "line 3: its usage holds no counts that are known; it is left out",
        "line 3: 'soon' is no time; it is left out",
        "line 2, message 2: it holds nothing",
        "content of unknown types is kept as JSON: 'content' 1",
    )


def test_several_sessions_in_one_file_are_told_apart_and_a_resumed_one_is_one(tmp_path: Path) -> None:
    sessions = read_all(
        tmp_path,
        typed("a", None, "1"),
        typed("x", None, "other", sessionId="t"),
        typed("b", "a", "2", sessionId="resumed"),
        typed("c", "b", "3"),
        record("n", None, "system", sessionId="u"),
    )
    assert [(one.session_id, texts(one)) for one in sessions] == [("s", ["1", "2", "3"]), ("t", ["other"])]


def test_sub_agents_are_named_by_their_ids_or_numbers_in_the_order_they_began(tmp_path: Path) -> None:
    side = {"isSidechain": True}
    sessions = read_all(
        tmp_path,
        typed("a", None, "first", **side),
        typed("b", None, "second", **side, agentId="f00"),
        typed("c", "a", "first again", **side),
        typed("d", "gone", "second again", **side, agentId="f00"),
        typed("e", None, "third", **side),
    )
    assert [(one.session_id, texts(one)) for one in sessions] == [
        ("s/agent-1", ["first", "first again"]),
        ("s/agent-f00", ["second", "second again"]),
        ("s/agent-3", ["third"]),
    ]


def test_a_file_without_messages_is_an_empty_session(tmp_path: Path) -> None:
    session = read(tmp_path, 7, {"type": "summary", "leafUuid": "x"}, {"type": "mode", "sessionId": "s"}, {"type": 5})
    assert (session.session_id, session.source, session.messages) == ("s", "claude-code", ())
    assert session.warnings == (
        "line 1: it is no record of a session; it is skipped",
        "line 4: it is no record of a session; it is skipped",
    )
    assert read(tmp_path, {"type": "summary", "leafUuid": "x"}).session_id == "1"
    assert read(tmp_path, record("n", None, "system")).messages == ()


def test_a_record_that_stands_twice_is_taken_once(tmp_path: Path) -> None:
    session = read(tmp_path, typed("a", None, "1"), typed("a", None, "1"), typed("b", "a", "2"))
    assert texts(session) == ["1", "2"]
    assert session.warnings == ("1 records stand in the file twice and are taken once",)


def test_a_log_without_parents_is_read_in_its_own_order(tmp_path: Path) -> None:
    lines = [
        {"type": kind, "message": {"content": text}}
        for kind, text in (("user", "1"), ("assistant", "2"), ("user", "3"))
    ]
    assert texts(read(tmp_path, *lines)) == ["1", "2", "3"]
