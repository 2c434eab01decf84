"""Content of messages as blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.transcripts.session_blocks import Piece, read_call, read_pieces, read_result
from context_gatekeeper.types import BlockKind, ContentBlock

TEXT, THINKING, CALL, RESULT, IMAGE, OTHER = (
    BlockKind.TEXT,
    BlockKind.THINKING,
    BlockKind.TOOL_CALL,
    BlockKind.TOOL_RESULT,
    BlockKind.IMAGE,
    BlockKind.OTHER,
)


def image(data: str, media_type: str = "") -> ContentBlock:
    return ContentBlock(IMAGE, hidden_chars=len(data), data=data, media_type=media_type)


def blocks_of(content: object) -> tuple[tuple[ContentBlock, ...], list[str]]:
    warnings: list[str] = []
    pieces = read_pieces(content, "line 1", warnings)
    assert not any(piece.is_result for piece in pieces)
    return tuple(block for piece in pieces for block in piece.blocks), warnings


@pytest.mark.parametrize("content", [None, "", []])
def test_empty_content_has_no_piece(content: object) -> None:
    assert read_pieces(content, "", []) == []


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ("plain", ContentBlock(TEXT, "plain")),
        ({"type": "text", "text": "你好"}, ContentBlock(TEXT, "你好")),
        ({"type": "text", "text": ""}, ContentBlock(TEXT, "")),
        ({"type": "input_text", "text": "a"}, ContentBlock(TEXT, "a")),
        ({"type": "output_text", "text": "a"}, ContentBlock(TEXT, "a")),
        ({"type": "refusal", "refusal": "no"}, ContentBlock(TEXT, "no")),
        ({"type": "thinking", "thinking": "hm", "signature": "s"}, ContentBlock(THINKING, "hm", signature="s")),
        ({"type": "thinking", "thinking": ""}, ContentBlock(THINKING)),
        ({"type": "redacted_thinking", "data": "zz"}, ContentBlock(THINKING, hidden_chars=2, data="zz")),
        ({"type": "summary_text", "text": "hm"}, ContentBlock(THINKING, "hm")),
        ({"type": "image", "source": {"type": "base64", "data": "abcd"}}, image("abcd")),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "ab+/\n_-=="}},
            image("ab+/\n_-==", "image/png"),
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
            ContentBlock(IMAGE, "https://a/b.png"),
        ),
        ({"type": "image", "data": "abc", "mimeType": "image/png"}, image("abc", "image/png")),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,abcde"}},
            image("abcde", "image/png"),
        ),
        ({"type": "input_image", "image_url": "data:;base64,ab"}, image("ab")),
        ({"type": "input_image", "image_url": "data:,ab"}, ContentBlock(IMAGE, "data:,ab")),
        (
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "文件", "n": 1}},
            ContentBlock(CALL, '{"path":"文件","n":1}', "t1", "Read"),
        ),
        (
            {"type": "hologram", "x": [1, "二"]},
            ContentBlock(OTHER, '{"type":"hologram","x":[1,"二"]}', name="hologram"),
        ),
        ({"x": 1}, ContentBlock(OTHER, '{"x":1}', name="part")),
    ],
)
def test_each_kind_of_part_becomes_its_block(part: object, block: ContentBlock) -> None:
    assert blocks_of([part]) == ((block,), [])


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text"},
        {"type": "thinking", "thinking": 7},
        {"type": "redacted_thinking"},
        {"type": "image", "source": {"file_id": "f"}},
        {"type": "image", "source": {"type": "text", "data": "password: x"}},
    ],
)
def test_a_part_that_lacks_what_belongs_to_it_is_kept_as_json(part: dict[str, Any]) -> None:
    (block,), (warning,) = blocks_of([part])
    assert (block.kind, block.name, json.loads(block.text)) == (OTHER, part["type"], part)
    assert warning == f"line 1: a part of type '{part['type']}' lacks what belongs to it; it is kept as JSON"


def test_content_that_is_neither_text_nor_list_is_kept_as_json() -> None:
    assert blocks_of({"a": 1})[0] == (ContentBlock(OTHER, '{"a":1}', name="content"),)
    (block,), (warning,) = blocks_of([7])
    assert block == ContentBlock(OTHER, "7", name="part")
    assert "a part of its content is neither" in warning


def test_results_stand_alone_and_what_is_between_them_together() -> None:
    parts = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
        {"type": "text", "text": "a"},
        "b",
        {"type": "tool_result", "tool_use_id": "t2", "is_error": True},
    ]
    assert read_pieces(parts, "", []) == [
        Piece((ContentBlock(RESULT, "one", "t1"),), is_result=True),
        Piece((ContentBlock(TEXT, "a"), ContentBlock(TEXT, "b"))),
        Piece((ContentBlock(RESULT, "", "t2", is_error=True),), is_result=True),
    ]


@pytest.mark.parametrize(
    ("content", "blocks", "warned"),
    [
        ("out", [ContentBlock(RESULT, "out", "c")], 0),
        (None, [ContentBlock(RESULT, "", "c")], 0),
        ([], [ContentBlock(RESULT, "", "c")], 1),
        ({"a": None}, [ContentBlock(RESULT, '{"a":null}', "c")], 1),
        ([{"type": "text", "text": "x"}, "y"], [ContentBlock(RESULT, "x", "c"), ContentBlock(RESULT, "y", "c")], 0),
        (
            [{"type": "image", "data": "ab"}, {"type": "text", "text": "x"}],
            [ContentBlock(RESULT, "", "c"), image("ab"), ContentBlock(RESULT, "x", "c")],
            0,
        ),
    ],
)
def test_a_result_has_a_block_for_each_text(content: object, blocks: list[ContentBlock], warned: int) -> None:
    warnings: list[str] = []
    assert read_result(content, "c", None, "line 1", warnings) == Piece(tuple(blocks), is_result=True)
    assert len(warnings) == warned


@pytest.mark.parametrize(
    ("call", "text", "warning"),
    [
        ({"name": "f", "arguments": '{"a": 1}'}, '{"a": 1}', None),
        ({"name": "f", "arguments": ""}, "", None),
        ({"name": "f", "arguments": None}, "null", "the call of 'f' has null as 'arguments'"),
        ({"name": "f"}, "", "the call of 'f' has no 'arguments'"),
        ({"arguments": {"a": 1}}, '{"a":1}', "the 'arguments' of the call of '' is no text; it is kept as it is"),
    ],
)
def test_arguments_are_kept_as_they_are(call: dict[str, Any], text: str, warning: str | None) -> None:
    warnings: list[str] = []
    block = read_call(call, "arguments", 7, "line 1", warnings, is_text=True)
    assert block == ContentBlock(CALL, text, "7", call.get("name", ""))
    assert warnings == ([f"line 1: {warning}"] if warning else [])


def test_a_text_where_an_object_belongs_is_told() -> None:
    warnings: list[str] = []
    assert read_call({"name": "f", "input": "{"}, "input", "c", "line 1", warnings, is_text=False).text == "{"
    assert warnings == ["line 1: the 'input' of the call of 'f' is no object; it is kept as it is"]
