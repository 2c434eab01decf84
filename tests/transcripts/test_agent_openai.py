"""Lists of messages in OpenAI's and Anthropic's shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, MessageRole, Usage

CALL = {"id": "c1", "type": "function", "function": {"name": "grep", "arguments": '{"pattern": "锁"}'}}
OPENAI = [
    {"role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "找到锁。"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,abc"}},
        ],
    },
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "lock.py:7"},
    {"role": "assistant", "content": "在 lock.py。"},
]
ANTHROPIC = [
    {"role": "user", "content": "找到锁。"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "grep it"},
            {"type": "text", "text": "我搜一下。"},
            {"type": "tool_use", "id": "t1", "name": "Grep", "input": {"pattern": "锁"}},
            {"type": "tool_use", "id": "t2", "name": "Read", "input": {}},
        ],
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 12},
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "lock.py:7"},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "no"}], "is_error": True},
            {"type": "text", "text": "还有测试。"},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "好。"}]},
]


def read_all(tmp_path: Path, text: str) -> list[AgentSession]:
    path = tmp_path / "session"
    path.write_text(text, "utf-8")
    return read_sessions(path)


def read(tmp_path: Path, *messages: object) -> AgentSession:
    """The session of a list, behind a message that says what it is."""
    (session,) = read_all(tmp_path, json.dumps([{"role": "user", "content": "hi"}, *messages]))
    return session


def outline(session: AgentSession) -> list[tuple[str, bool, list[tuple[str, str]]]]:
    return [
        (message.role.value, message.is_call, [(block.kind.value, block.text) for block in message.blocks])
        for message in session.messages
    ]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(OPENAI),
        json.dumps(OPENAI, indent=1),
        json.dumps({"messages": OPENAI}),
        json.dumps({"messages": OPENAI}, indent=1),
        "\n".join(json.dumps(message) for message in OPENAI),
    ],
    ids=["list", "indented list", "object", "indented object", "message a line"],
)
def test_every_form_gives_the_same_messages(tmp_path: Path, text: str) -> None:
    (session,) = read_all(tmp_path, text)
    assert (session.session_id, session.source, session.warnings) == ("1", "openai-messages", ())
    assert outline(session) == [
        ("system", False, [("text", "Be brief.")]),
        ("user", False, [("text", "找到锁。"), ("image", "")]),
        ("assistant", True, [("tool_call", '{"pattern": "锁"}')]),
        ("tool", False, [("tool_result", "lock.py:7")]),
        ("assistant", True, [("text", "在 lock.py。")]),
    ]
    assert session.messages[3].blocks[0].name == "grep"


def test_anthropics_blocks_are_taken_apart_in_their_order(tmp_path: Path) -> None:
    (session,) = read_all(
        tmp_path, json.dumps({"id": "a1", "system": [{"type": "text", "text": "Sys"}], "messages": ANTHROPIC})
    )
    assert (session.session_id, session.warnings) == ("a1", ())
    assert outline(session) == [
        ("system", False, [("text", "Sys")]),
        ("user", False, [("text", "找到锁。")]),
        (
            "assistant",
            True,
            [("thinking", "grep it"), ("text", "我搜一下。"), ("tool_call", '{"pattern":"锁"}'), ("tool_call", "{}")],
        ),
        ("tool", False, [("tool_result", "lock.py:7")]),
        ("tool", False, [("tool_result", "no")]),
        ("user", False, [("text", "还有测试。")]),
        ("assistant", True, [("text", "好。")]),
    ]
    assert [block.name for message in session.messages[3:5] for block in message.blocks] == ["Grep", "Read"]
    assert session.messages[4].blocks[0].is_error
    assert session.messages[2].usage == Usage(3, 40, 0, 12)


def test_sessions_a_line_keep_their_ids_and_lines_and_loose_messages_are_one(tmp_path: Path) -> None:
    lines: list[object] = [
        {"conversation_id": "x", "messages": OPENAI[:1]},
        {"role": "user", "content": "a"},
        OPENAI[:2],
        {"role": "assistant", "content": "b"},
        {"messages": [], "system": "S"},
        7,
        [1],
    ]
    sessions = read_all(tmp_path, "\n".join(json.dumps(line) for line in lines) + "\n")
    assert [one.session_id for one in sessions] == ["x", "2", "3", "4"]
    assert [[message.source_line for message in one.messages] for one in sessions] == [[1], [2, 4], [3, 3], [5]]
    assert sessions[0].warnings == (
        "line 6: it is neither messages nor a message; it is skipped",
        "line 7: it is neither messages nor a message; it is skipped",
    )


def test_a_list_a_line_is_a_session_each(tmp_path: Path) -> None:
    sessions = read_all(tmp_path, f"{json.dumps(OPENAI)}\n{json.dumps(ANTHROPIC)}\n")
    assert [(one.session_id, len(one.messages)) for one in sessions] == [("1", 5), ("2", 6)]


def test_an_anthropic_answer_logged_whole_is_a_message(tmp_path: Path) -> None:
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}
    (session,) = read_all(tmp_path, json.dumps({"role": "user", "content": "x"}) + "\n" + json.dumps(answer))
    assert [block.text for one in session.messages for block in one.blocks] == ["x", "hi"]


def test_a_document_of_many_lines_has_no_line_numbers(tmp_path: Path) -> None:
    (session,) = read_all(tmp_path, json.dumps({"messages": [*OPENAI, {"role": "narrator"}]}, indent=1))
    assert {message.source_line for message in session.messages} == {0}
    assert session.warnings[0].startswith("item 1, message 6: its role is 'narrator'")


def test_reasoning_stands_in_front_of_the_text(tmp_path: Path) -> None:
    session = read(tmp_path, {"role": "assistant", "content": "b", "reasoning_content": "a", "reasoning": "a"})
    assert session.messages[1].blocks == (ContentBlock(BlockKind.THINKING, "a"), ContentBlock(BlockKind.TEXT, "b"))


def test_what_seals_thinking_is_kept_beside_it(tmp_path: Path) -> None:
    details = [
        {"type": "reasoning.text", "text": "a", "signature": "s+/="},
        {"type": "reasoning.encrypted", "data": "c2VhbGVk"},
        "odd",
    ]
    message = {"role": "assistant", "content": "b", "reasoning": "a", "reasoning_details": details}
    signed, text = ContentBlock(BlockKind.THINKING, "a", signature="s+/="), ContentBlock(BlockKind.TEXT, "b")
    sealed = ContentBlock(BlockKind.THINKING, hidden_chars=8, data="c2VhbGVk")
    assert read(tmp_path, message).messages[1].blocks == (signed, sealed, text)
    message = {"role": "assistant", "content": "b", "encrypted_content": "c2VhbGVk"}
    assert read(tmp_path, message).messages[1].blocks == (sealed, text)
    listed = [
        {"type": "thinking", "thinking": "a", "signature": "s+/="},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
    ]
    message = {"role": "assistant", "content": "b", "reasoning_content": "a", "thinking_blocks": listed}
    assert read(tmp_path, message).messages[1].blocks == (signed, sealed, text)


def test_older_and_newer_forms_of_calls_are_read(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "assistant", "tool_calls": [{"id": "c2", "type": "custom", "custom": {"name": "g", "input": "raw"}}]},
        {"role": "tool", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "2"}]},
    )
    assert [(block.name, block.text) for message in session.messages[1:] for block in message.blocks] == [
        ("f", "{}"), ("f", "1"), ("g", "raw"), ("g", "2"),
    ]  # fmt: skip
    assert [message.role for message in session.messages[3:]] == [MessageRole.ASSISTANT, MessageRole.TOOL]


def test_results_inside_an_assistant_message_stand_behind_its_call(tmp_path: Path) -> None:
    parts = [{"type": "tool_result", "tool_use_id": "t", "content": "r"}, {"type": "text", "text": "a"}]
    session = read(tmp_path, {"role": "assistant", "content": parts, "time": 1.7e9, "time_end": 1.7e9 + 5})
    answer, result = session.messages[1:]
    assert (answer.role, answer.is_call, answer.time, answer.end_time) == (
        MessageRole.ASSISTANT,
        True,
        1.7e9,
        1.7e9 + 5,
    )
    assert (result.role, result.is_call, result.time, result.end_time) == (MessageRole.TOOL, False, 1.7e9, None)


@pytest.mark.parametrize(
    ("message", "expected", "warning"),
    [
        ("hello", ("user", "unknown", [("other", '"hello"')]), "it is no message; it is kept as JSON"),
        ({"content": "x"}, ("user", "unknown", [("text", "x")]), "its role is None, which is not known"),
        ({"role": "critic", "content": "x"}, ("user", "critic", [("text", "x")]), "its role is 'critic'"),
        ({"role": [], "meta": "m"}, ("user", "m", []), "its role is 'list'"),
        ({"role": "user", "content": []}, ("user", "", []), "it holds nothing"),
        ({"role": "assistant", "content": []}, ("assistant", "", []), "it holds nothing"),
        ({"role": "user", "content": 7}, ("user", "", [("other", "7")]), "its content is neither a text nor a list"),
        ({"role": "assistant", "tool_calls": {}}, ("assistant", "", [("other", "{}")]), "its tool calls are no list"),
        (
            {"role": "assistant", "tool_calls": [{}]},
            ("assistant", "", [("other", "{}")]),
            "a tool call names no function",
        ),
        (
            {"role": "assistant", "tool_calls": [1]},
            ("assistant", "", [("other", "1")]),
            "a tool call names no function",
        ),
        ({"role": "user", "content": "x", "time": "soon"}, ("user", "", [("text", "x")]), "'soon' is no time"),
        ({"role": "assistant", "content": "x", "usage": 1}, ("assistant", "", [("text", "x")]), "its usage holds no"),
        (
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": None}}]},
            ("assistant", "", [("tool_call", "null")]),
            "the call of 'f' has null as 'arguments'",
        ),
    ],
)
def test_an_odd_message_is_kept_and_told(
    tmp_path: Path, message: Any, expected: tuple[str, str, Any], warning: str
) -> None:
    session = read(tmp_path, message)
    _, odd = session.messages
    assert (odd.role.value, odd.origin, [(one.kind.value, one.text) for one in odd.blocks]) == expected
    assert any(warning in line for line in session.warnings)
    assert all(line.startswith(("line 1, item 2: ", "line 1, message 2: ")) for line in session.warnings[:1])


def test_the_messages_are_the_records_that_every_layer_shares(tmp_path: Path) -> None:
    message = {"role": "user", "content": "x", "timestamp": "2026-01-22T19:06:29Z", "meta": "user_shell"}
    assert read(tmp_path, message).messages[1] == AgentMessage(
        MessageRole.USER, (ContentBlock(BlockKind.TEXT, "x"),), time=1769108789.0, origin="user_shell", source_line=1
    )
