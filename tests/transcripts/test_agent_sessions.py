"""read_sessions: formats by content; whatever the lines hold, an answer or a ConfigError."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession, BlockKind

DATA = Path(__file__).parents[1] / "data" / "agents"
SOURCES = {"agents": "agents", "claude_code": "claude-code", "codex_bare": "codex", "codex_rollout": "codex"}

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)
words = st.sampled_from(
    """
    a b user assistant system tool text thinking tool_use tool_result image message reasoning function_call
    function_call_output compact_boundary local_command token_count thread_rolled_back attachment queued_command
    session_meta response_item event_msg compacted 2026-01-22T19:06:29Z
    """.split()
)
keys = st.sampled_from(
    """
    type role content text thinking id tool_use_id tool_call_id call_id tool_calls function name input arguments
    output usage input_tokens prompt_tokens is_error source data image_url message messages uuid parentUuid
    logicalParentUuid isSidechain isMeta sessionId agentId timestamp time subtype attachment prompt payload info
    events last_token_usage num_turns summary system record_type synthetic meta requestId
    """.split()
)
likely = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner | words, max_size=6),
    max_leaves=20,
)
texts = st.text(alphabet=st.characters(exclude_categories=()))


def written(folder: Path, lines: list[Any]) -> Path:
    path = folder / "session"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def held(sessions: list[AgentSession], kind: BlockKind) -> list[str]:
    return [
        block.text for one in sessions for message in one.messages for block in message.blocks if block.kind is kind
    ]


@pytest.mark.parametrize("name", SOURCES)
def test_a_format_is_known_by_content_plain_or_gzipped_whatever_the_name(tmp_path: Path, name: str) -> None:
    plain = DATA / f"{name}.jsonl"
    packed = tmp_path / "something.txt"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    sessions = read_sessions(str(plain))
    assert {session.source for session in sessions} == {SOURCES[name]}
    assert read_sessions(packed) == sessions


@pytest.mark.parametrize("name", SOURCES)
def test_a_file_cut_anywhere_is_read_up_to_the_cut(tmp_path: Path, name: str) -> None:
    whole = (DATA / f"{name}.jsonl").read_bytes()
    path = tmp_path / "cut"
    for size in range(whole.index(b"\n") + 9, len(whole) - 1, 997):
        path.write_bytes(whole[:size])
        first, *_ = read_sessions(path)
        assert first.source == SOURCES[name]
        last_line = whole.count(b"\n", 0, size) + 1
        assert first.warnings[0].startswith(f"line {last_line}: it is cut off")


def test_lines_that_say_nothing_about_the_format_are_passed_by(tmp_path: Path) -> None:
    lines = [7, [1], {"a": 1}, {"type": "user", "message": {"content": "x"}}]
    (session,) = read_sessions(written(tmp_path, lines))
    assert session.source == "claude-code"
    assert len(session.warnings) == 3


def test_records_in_one_json_list_are_read_like_lines(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (DATA / "claude_code.jsonl").read_text("utf-8").splitlines()]
    path = tmp_path / "list.json"
    path.write_text(json.dumps(lines, indent=1))
    main, agent = read_sessions(path)
    assert (len(main.messages), len(agent.messages)) == (18, 4)
    assert main.messages[0].source_line == 0


@pytest.mark.parametrize("content", ['{"id": "a", "turns": []}\n', '{"hello": 1}\n[2]\n', "# notes\n", "", "[]"])
def test_a_file_that_is_no_session_is_refused_with_the_formats(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes.md"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"Claude Code.*Codex.*OpenAI") as caught:
        read_sessions(path)
    assert caught.value.thing == str(path)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is a folder"):
        read_sessions(tmp_path)
    with pytest.raises(ConfigError, match="there is no such file"):
        read_sessions(tmp_path / "gone")


@given(lines=st.lists(values | likely, min_size=1, max_size=6))
def test_no_json_raises_anything_but_a_config_error(tmp_path_factory: pytest.TempPathFactory, lines: list[Any]) -> None:
    path = written(tmp_path_factory.mktemp("any"), lines)
    try:
        sessions = read_sessions(path)
    except ConfigError:
        return
    assert sessions
    assert all(isinstance(session, AgentSession) for session in sessions)


@pytest.mark.parametrize("name", SOURCES)
@given(data=st.data())
def test_a_value_changed_anywhere_raises_nothing(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    lines = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]
    target = data.draw(st.sampled_from(lines))
    while True:
        key = data.draw(st.sampled_from(range(len(target)) if isinstance(target, list) else sorted(target)))
        if not isinstance(target[key], dict | list) or not target[key] or data.draw(st.booleans()):
            break
        target = target[key]
    target[key] = data.draw(likely)
    assert read_sessions(written(tmp_path_factory.mktemp("changed"), lines))


@given(said=st.lists(texts, min_size=1, max_size=4), result=texts)
def test_texts_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, said: list[str], result: str) -> None:
    folder = tmp_path_factory.mktemp("texts")
    parts = [{"type": "text", "text": text} for text in said]
    answer = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": result}]}
    items = [{"type": "input_text", "text": text} for text in said]
    output = {"type": "function_call_output", "call_id": "t", "output": result}
    files: list[list[Any]] = [
        [{"type": "user", "uuid": "a", "message": {"content": [*parts, answer]}}],
        [{"role": "user", "content": [*parts, answer]}],
        [
            {
                "id": "s",
                "source": "x",
                "messages": [{"role": "user", "content": parts}, {"role": "tool", "content": result}],
            }
        ],
        [
            {"type": "response_item", "payload": one}
            for one in ({"type": "message", "role": "user", "content": items}, output)
        ],
    ]
    for lines in files:
        sessions = read_sessions(written(folder, lines))
        assert held(sessions, BlockKind.TEXT) == said
        assert held(sessions, BlockKind.TOOL_RESULT) == [result]


@pytest.mark.parametrize("numbers", ['{"a":1e999,"b":1,"b":2,"c":12345678901234567890.123456789}', '{"a":1.10,"b":-0}'])
def test_arguments_keep_the_numbers_of_the_log(tmp_path: Path, numbers: str) -> None:
    """Every format that holds arguments as JSON."""
    call = f'{{"type":"tool_use","id":"c1","name":"add","input":{numbers}}}'
    claude = f'{{"type":"assistant","uuid":"1","sessionId":"s","message":{{"role":"assistant","content":[{call}]}}}}'
    anthropic = f'[{{"role":"user","content":"go"}},{{"role":"assistant","content":[{call}]}}]'
    item = f'{{"type":"local_shell_call","call_id":"c1","action":{numbers}}}'
    codex = f'{{"type":"response_item","timestamp":"2026-01-01T00:00:00Z","payload":{item}}}'
    for text in (claude, anthropic, codex):
        path = tmp_path / "log.jsonl"
        path.write_text(f"{text}\n", "utf-8")
        (one,) = read_sessions(path)
        assert [block.text for message in one.messages for block in message.blocks][-1] == numbers


def test_what_is_no_json_number_becomes_null_and_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text('[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{"a":NaN}}]}]')
    (one,) = read_sessions(path)
    assert one.messages[0].blocks[0].text == '{"a":null}'
    assert any("NaN is no JSON" in warning for warning in one.warnings)
