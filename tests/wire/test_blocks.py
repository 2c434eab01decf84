"""Parts of a message's content as blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.types import BlockKind, ContentBlock
from context_gatekeeper.wire.blocks import ReadBlock, as_name, read_block, read_call, text_of
from context_gatekeeper.wire.json_source import read_element

TEXT, THINKING, CALL, IMAGE, OTHER = (
    BlockKind.TEXT,
    BlockKind.THINKING,
    BlockKind.TOOL_CALL,
    BlockKind.IMAGE,
    BlockKind.OTHER,
)


def read(part: Any) -> ReadBlock:
    source = json.dumps(part)
    return read_block(read_element(source, 0, {}), source)


def image(data: str, media_type: str = "") -> ContentBlock:
    return ContentBlock(IMAGE, hidden_chars=len(data), data=data, media_type=media_type)


@pytest.mark.parametrize(
    ("part", "block", "text"),
    [
        ("plain", ContentBlock(TEXT, "plain"), "plain"),
        ({"type": "text", "text": ""}, ContentBlock(TEXT, ""), ""),
        ({"type": "output_text", "text": "a"}, ContentBlock(TEXT, "a"), "a"),
        ({"type": "refusal", "refusal": "no"}, ContentBlock(TEXT, "no"), "no"),
        ({"type": "thinking", "thinking": "hm", "signature": "s"}, ContentBlock(THINKING, "hm", signature="s"), None),
        ({"type": "thinking", "thinking": ""}, ContentBlock(THINKING), None),
        ({"type": "redacted_thinking", "data": "zz"}, ContentBlock(THINKING, hidden_chars=2, data="zz"), None),
        ({"type": "summary_text", "text": "hm"}, ContentBlock(THINKING, "hm"), None),
        (
            {"type": "tool_use", "id": 7, "name": "f", "input": {"a": 1}},
            ContentBlock(CALL, '{"a": 1}', "7", "f"),
            {"a": 1},
        ),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "ab+/\n_-=="}},
            image("ab+/\n_-==", "image/png"),
            None,
        ),
        ({"type": "image", "source": {"url": "https://a/b"}}, ContentBlock(IMAGE, "https://a/b"), None),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,abcd"}}, image("abcd", "image/png"), None),
        ({"type": "input_image", "image_url": "data:image/png,abcd"}, ContentBlock(IMAGE, "data:image/png,abcd"), None),
        ({"type": "image", "data": "abcd", "mimeType": "image/gif"}, image("abcd", "image/gif"), None),
    ],
)
def test_a_part_is_a_block_and_tells_where_its_text_is(part: Any, block: ContentBlock, text: Any) -> None:
    found = read(part)
    assert found.block == block
    assert (found.text_node.value if found.text_node is not None else None) == text
    assert found.oddity == ""


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": 7},
        {"type": "text"},
        {"type": "thinking"},
        {"type": "thinking", "thinking": None},
        {"type": "redacted_thinking"},
        {"type": "redacted_thinking", "data": 7},
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        {"type": "image", "source": {"data": "no base64!"}},
        {"type": "image", "source": {"data": "é"}},
    ],
)
def test_a_part_that_lacks_what_belongs_to_it_is_kept_as_json_and_told(part: Any) -> None:
    found = read(part)
    assert found.block == ContentBlock(OTHER, json.dumps(part), name=part["type"])
    assert found.oddity == f"a part of type '{part['type']}' lacks what belongs to it"
    assert found.text_node is None


@pytest.mark.parametrize(("part", "name"), [({"type": "new"}, "new"), ({}, "part"), ({"type": None}, "part")])
def test_a_part_of_an_unknown_type_is_kept_as_json(part: Any, name: str) -> None:
    assert read(part) == ReadBlock(ContentBlock(OTHER, json.dumps(part), name=name))


@pytest.mark.parametrize("part", [7, None, ["x"], 1e400])
def test_what_is_no_part_is_kept_as_json_and_told(part: Any) -> None:
    source = "1e400" if part == 1e400 else json.dumps(part)
    found = read_block(read_element(source, 0, {}), source)
    assert found.block == ContentBlock(OTHER, source, name="part")
    assert "neither a text nor an object" in found.oddity


def test_a_call_without_name_id_or_arguments_is_told() -> None:
    source = '{"input":"text"}'
    node = read_element(source, 0, {})
    found = read_call(node.members or {}, "input", None, source)
    assert found.block == ContentBlock(CALL, "text")
    assert found.oddity == "the 'input' of a call is no object"
    assert read_call({}, "input", None, source, name="given") == ReadBlock(
        ContentBlock(CALL, name="given"), None, "a call has no 'input'"
    )


@pytest.mark.parametrize(("value", "name"), [("x", "x"), (7, "7"), (True, ""), (None, ""), (1.5, "")])
def test_names_are_texts_and_whole_numbers(value: object, name: str) -> None:
    assert as_name(value) == name


def test_what_is_no_text_has_none() -> None:
    assert text_of(None) == text_of(read_element("7", 0, {})) == ""
