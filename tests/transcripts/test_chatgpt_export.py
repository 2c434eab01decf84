"""The conversations.json of a ChatGPT export; the sample is of our own writing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.transcripts import read_conversations

SAMPLE = Path(__file__).parents[1] / "data" / "conversations" / "chatgpt_export.json"


def entry() -> dict[str, Any]:
    first: dict[str, Any] = json.loads(SAMPLE.read_text("utf-8"))[0]
    return first


def read(path: Path, *entries: Any) -> list[list[tuple[str, str]]]:
    path.write_text(json.dumps(list(entries)), "utf-8")
    return [[(turn.user_text, turn.assistant_text) for turn in one.turns] for one in read_conversations(path)]


def test_the_current_branch_is_followed_and_the_abandoned_one_left_out() -> None:
    bread, lock = read_conversations(SAMPLE)
    assert [(turn.user_text, turn.assistant_text) for turn in bread.turns] == [
        ("How long does sourdough rise?", "[search results for sourdough]\n\nSeven to eight hours at 21 C."),
        ("And this crumb?\n[image_asset_pointer]", "It is underproofed."),
    ]
    assert bread.conversation_id == "bread-1"
    assert [turn.user_text for turn in lock.turns] == ["Redis 锁的过期时间？"]


def test_hidden_and_system_messages_and_thinking_are_left_out_and_system_ones_counted() -> None:
    bread, _ = read_conversations(SAMPLE)
    everything = " ".join(turn.user_text + turn.assistant_text for turn in bread.turns)
    assert "hidden" not in everything
    assert "thinking about" not in everything
    assert bread.system_messages == 1


def test_times_and_ids_of_messages_are_kept() -> None:
    bread, _ = read_conversations(SAMPLE)
    assert bread.turns[0].time == 1_760_000_010.5
    assert bread.turns[0].source_ids == ("q1", "tool1")


def test_without_a_current_node_the_newest_leaf_is_taken(tmp_path: Path) -> None:
    conversation = entry()
    del conversation["current_node"]
    (turns,) = read(tmp_path / "c.json", conversation)
    assert turns[-1][1] == "It is underproofed."


def test_a_single_conversation_object_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(entry(), indent=1))
    (conversation,) = read_conversations(path)
    assert conversation.conversation_id == "bread-1"


def test_a_tree_of_ten_thousand_messages_is_followed_to_its_root(tmp_path: Path) -> None:
    mapping: dict[str, Any] = {"n0": {"message": None, "parent": None}}
    for number in range(1, 10_001):
        role = "user" if number % 2 else "assistant"
        message = {"author": {"role": role}, "content": {"content_type": "text", "parts": [str(number)]}}
        mapping[f"n{number}"] = {"message": message, "parent": f"n{number - 1}"}
    (turns,) = read(tmp_path / "c.json", {"mapping": mapping, "current_node": "n10000"})
    assert len(turns) == 5000
    assert turns[0] == ("1", "2")


def broken(**changes: Any) -> dict[str, Any]:
    conversation = entry()
    conversation["mapping"]["q1"].update(changes)
    return conversation


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"content_type": "code", "text": "print(1)"}, "print(1)"),
        ({"content_type": "text", "parts": ["one", {"text": "spoken"}, {"odd": 1}, 7]}, "one\nspoken\n[part]"),
        ({"content_type": "reasoning_recap", "content": "Thought for 9 s"}, ""),
        (None, ""),
    ],
)
def test_every_kind_of_content_gives_its_text(tmp_path: Path, content: Any, text: str) -> None:
    nodes = {
        "q": {"message": {"author": {"role": "user"}, "content": {"parts": ["asked"]}}, "parent": None},
        "a": {"message": {"author": {"role": "assistant"}, "content": content}, "parent": "q"},
    }
    assert read(tmp_path / "c.json", {"mapping": nodes, "current_node": "a"}) == [[("asked", text)]]


@pytest.mark.parametrize(
    ("conversation", "cause"),
    [
        ({"mapping": [], "current_node": "x"}, "'mapping' is no tree"),
        ({"mapping": {"a": 5}, "current_node": "a"}, "'mapping' is no tree"),
        ({"mapping": {}, "current_node": "gone"}, "node 'gone' is named and not there"),
        (broken(parent="a2"), "is its own ancestor"),
        (broken(parent="gone"), "node 'gone' is named and not there"),
        (broken(message="text"), "a message of 'mapping' is no object"),
        (broken(message={"author": {"role": "ghost"}, "content": None}), "its author is 'ghost'"),
        (broken(message={"author": {"role": "user"}, "content": "text"}), "'content' is no object"),
        (broken(message={"author": {"role": "user"}, "content": {"parts": "text"}}), "'parts' is no list"),
    ],
)
def test_a_broken_tree_is_named_by_its_place_in_the_file(tmp_path: Path, conversation: Any, cause: str) -> None:
    with pytest.raises(TranscriptError, match="conversation 2") as caught:
        read(tmp_path / "c.json", entry(), conversation)
    assert cause in str(caught.value)


@pytest.mark.parametrize("parent", [["x"], {"x": 1}, 5, True])
def test_a_parent_that_is_no_id_is_an_error_and_no_crash(tmp_path: Path, parent: object) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"mapping": {"a": {"parent": parent, "message": None}}}]))
    with pytest.raises(TranscriptError, match=r"named and not there.*export the data again"):
        read_conversations(path)
