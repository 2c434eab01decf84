"""read_conversations: formats by content, all of a file or nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.transcripts import read_conversations
from context_gatekeeper.types import ConversationTurn

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"
GOOD = json.dumps({"id": "a", "turns": [{"user_text": "hi", "assistant_text": "yo"}]})


def refused(path: Path) -> str:
    with pytest.raises(TranscriptError) as caught:
        read_conversations(path)
    assert caught.value.thing.startswith(str(path))
    assert caught.value.cause
    assert caught.value.next_step
    return str(caught.value)


def test_the_shipped_examples_are_read_whole() -> None:
    for path in sorted(EXAMPLES.glob("*.jsonl")):
        (conversation,) = read_conversations(path)
        assert len(conversation.turns) >= 24, path
        assert len(conversation.questions) >= 4, path


def test_a_gzipped_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "conversations"
    path.write_bytes(gzip.compress(GOOD.encode()))
    assert read_conversations(path)[0].conversation_id == "a"


def test_a_byte_order_mark_and_windows_newlines_are_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes(b"\xef\xbb\xbf" + f"{GOOD}\r\n{GOOD}\r\n".encode())
    assert len(read_conversations(path)) == 2


def test_conversations_without_ids_are_named_by_their_place(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"turns": []}\n\n{"turns": []}\n')
    assert [one.conversation_id for one in read_conversations(path)] == ["1", "2"]


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (f"{GOOD}\n{GOOD[:-9]}\n{GOOD}", "line 2: it is no JSON"),
        (f"{GOOD[:-9]}\n{GOOD}\n{GOOD}", "line 1: it is no JSON"),
        (f"{GOOD}\n\n7\n", "line 3: it is neither a JSON object nor a list"),
        (f'{GOOD}\n{{"other": 1}}\n', "line 2: it has none of 'turns'"),
        (f'{GOOD}\n{{"role": "user", "content": "x"}}\n', "line 2: it is a message among conversations"),
        (f'{GOOD}\n{{"turns": {"[" * 100_000}\n', "line 2: it is no usable JSON"),
        ('{\n "messages": [\n  {"role": "user" "content": "x"}\n ]\n}', "line 3: it is no JSON"),
        ("hello there", "line 1: it is no JSON"),
        ('{"other": 1}', "it has none of 'turns'"),
        ('"text"', "it is neither a JSON object nor a list"),
        ("[]", "it is an empty list"),
        ("[7]", "conversation 1: it is neither"),
        ("", "it is empty"),
        (" \n\n", "it is empty"),
    ],
)
def test_a_broken_file_is_refused_with_line_cause_and_next_step(tmp_path: Path, content: str, cause: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(content)
    assert cause in refused(path)


def test_bytes_that_are_no_utf8_are_named_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(GOOD.encode() + b'\n{"turns": [{"user_text": "\xff"}]}')
    assert "line 2: it is not UTF-8" in refused(path)


def test_utf16_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(GOOD.encode("utf-16"))
    assert "it is UTF-16" in refused(path)


def test_a_cut_off_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.gz"
    path.write_bytes(gzip.compress(GOOD.encode())[:-9])
    assert "it cannot be read" in refused(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "there is no such file" in refused(tmp_path / "gone.jsonl")
    assert "it is a folder" in refused(tmp_path)


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_any_texts_survive_the_way_through_a_file(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("texts") / "c.jsonl"
    turns = [{"user_text": user, "assistant_text": assistant} for user, assistant in pairs]
    path.write_text(json.dumps({"turns": turns}) + "\n", "utf-8")
    (conversation,) = read_conversations(path)
    assert conversation.turns == tuple(ConversationTurn(user, assistant) for user, assistant in pairs)
