"""JSON values of session files, with their places."""

from __future__ import annotations

import gzip
import json
import math
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.transcripts.session_records import LogRecord, clip, read_records


def read(tmp_path: Path, content: bytes | str) -> tuple[list[LogRecord], list[str]]:
    path = tmp_path / "session"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_records(path)


def places(records: list[LogRecord]) -> list[tuple[str, Any]]:
    return [(record.place, record.value) for record in records]


def test_each_line_is_a_record_with_its_number_and_blank_lines_count(tmp_path: Path) -> None:
    records, warnings = read(tmp_path, '{"a": 1}\r\n\n[2]\n7\nnull\n')
    assert places(records) == [("line 1", {"a": 1}), ("line 3", [2]), ("line 4", 7), ("line 5", None)]
    assert warnings == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{\n "a": 1\n}', [("item 1", {"a": 1})]),
        ('[\n {"a": 1},\n 2\n]\n', [("item 1", {"a": 1}), ("item 2", 2)]),
        ('[{"a": 1}, 2]\n', [("line 1, item 1", {"a": 1}), ("line 1, item 2", 2)]),
        ("[1]\n[2]\n", [("line 1", [1]), ("line 2", [2])]),
        ("5\n[2]\n", [("line 1", 5), ("line 2", [2])]),
    ],
    ids=["object", "list of many lines", "list of one line", "lists a line", "a bare value in front"],
)
def test_a_document_is_taken_apart(tmp_path: Path, content: str, expected: list[tuple[str, Any]]) -> None:
    records, warnings = read(tmp_path, content)
    assert (places(records), warnings) == (expected, [])


def test_a_file_cut_in_its_last_line_keeps_the_rest(tmp_path: Path) -> None:
    records, warnings = read(tmp_path, '{"a": 1}\n{"b": 2}\n{"c": "thr')
    assert places(records) == [("line 1", {"a": 1}), ("line 2", {"b": 2})]
    assert warnings == [
        "line 3: it is cut off (it is no JSON (Unterminated string starting at, column 7)); it is skipped"
    ]


def test_broken_lines_are_told_by_their_numbers_and_skipped(tmp_path: Path) -> None:
    deep = "[" * 100_000
    levels = '{"x": ' + "[" * 201 + "]" * 201 + "}"
    content = f'{{"a": 1\n{{"b": 2}}\n\0\0\n{deep}\n{levels}\n{"9" * 5000}\n{{"c": 3}}\n'
    records, warnings = read(tmp_path, content)
    assert places(records) == [("line 2", {"b": 2}), ("line 7", {"c": 3})]
    assert [warning.partition(":")[0] for warning in warnings] == ["line 1", "line 3", "line 4", "line 5", "line 6"]
    assert all(warning.endswith("it is skipped") for warning in warnings)
    assert "line 5: it is nested more than 200 levels deep; it is skipped" in warnings


def test_two_hundred_levels_are_read(tmp_path: Path) -> None:
    value = json.loads("[" * 200 + "]" * 200)
    assert places(read(tmp_path, json.dumps({"x": value[0]}) + "\n")[0]) == [("line 1", {"x": value[0]})]


def test_bytes_that_are_no_utf8_come_back_as_they_were(tmp_path: Path) -> None:
    raw = b'{"a": "caf\xe9 \xff"}\n'
    ((record,), warnings) = read(tmp_path, raw)
    assert record.value["a"].encode("utf-8", "surrogateescape") == b"caf\xe9 \xff"
    assert warnings == ["line 1: 2 bytes are no UTF-8; they are kept as lone surrogates"]


def test_a_lone_surrogate_is_kept_and_told_and_a_pair_is_a_character(tmp_path: Path) -> None:
    lines = [r'{"a": "\ud83d\ude00"}', r'{"a": [{"b": "x\ud83dx"}]}', r'{"a": {"\udc00": "\udc00"}}']
    records, warnings = read(tmp_path, "\n".join(lines) + "\n")
    assert [record.value["a"] for record in records] == ["\U0001f600", [{"b": "x\ud83dx"}], {"\udc00": "\udc00"}]
    told = "it holds a lone surrogate (half a character), which is kept"
    assert warnings == [f"line 2: {told}", f"line 3: {told}"]


def test_nan_is_taken_as_a_number_and_told(tmp_path: Path) -> None:
    ((record,), warnings) = read(tmp_path, '{"a": NaN, "b": -Infinity}\n')
    assert math.isnan(record.value["a"])
    assert record.value["b"] == -math.inf
    assert warnings == ["line 1: NaN is no JSON; where JSON is kept as a text, null stands for it"]


def test_control_characters_in_a_text_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, '{"a": "x\ty"}\n')[0][0].value == {"a": "x\ty"}


@pytest.mark.parametrize("lost", [1, 9, 500, 5000])
def test_of_a_gzip_stream_that_breaks_off_the_whole_lines_are_read_and_the_damage_is_told(
    tmp_path: Path, lost: int
) -> None:
    chance = random.Random(1)
    whole = "".join(json.dumps({"number": number, "word": chance.random()}) + "\n" for number in range(3000))
    records, warnings = read(tmp_path, gzip.compress(whole.encode())[:-lost])
    assert [record.value["number"] for record in records] == list(range(len(records)))
    assert 2000 < len(records) <= 3000
    told = "the gzip stream is damaged here (it ends in the middle); the whole lines before are read"
    assert warnings == [f"line {len(records) + 1}: {told}"]


def test_a_last_line_that_lost_its_end_alone_is_read(tmp_path: Path) -> None:
    machine = zlib.compressobj(wbits=31)
    packed = machine.compress(b'{"a": 1}\n{"a": 2}') + machine.flush(zlib.Z_FULL_FLUSH)
    records, warnings = read(tmp_path, packed + b"\xff" * 50)
    assert places(records) == [("line 1", {"a": 1}), ("line 2", {"a": 2})]
    assert warnings == ["line 2: the gzip stream is damaged here (invalid block type); the whole lines before are read"]


@pytest.mark.parametrize("before", [b"", b'{"a": 1', b" \n", b'{"a": [\n'[:5]])
def test_a_gzip_stream_damaged_in_its_first_line_is_called_damaged_and_not_empty(tmp_path: Path, before: bytes) -> None:
    machine = zlib.compressobj(wbits=31)
    packed = machine.compress(before) + machine.flush(zlib.Z_FULL_FLUSH)
    for behind in (b"", b"\xff" * 50):
        with pytest.raises(ConfigError, match=r"its gzip stream is damaged.+get the file again") as caught:
            read(tmp_path, packed + behind)
        assert "it is empty" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("", "it is empty"),
        (" \n\n", "it is empty"),
        ("hello there\nyou\n", "it holds no JSON object or list (it is no JSON (Expecting value, column 1))"),
        ('"text"\n', "it holds no JSON object or list (a bare value)"),
        ('{\n "a": [1,\n', "it holds no JSON object or list"),
    ],
)
def test_a_file_without_records_is_refused_with_the_formats(tmp_path: Path, content: str, cause: str) -> None:
    with pytest.raises(ConfigError, match="Claude Code") as caught:
        read(tmp_path, content)
    assert cause in str(caught.value)


def test_names_in_warnings_are_quoted_and_short() -> None:
    assert clip("a\nb") == r"'a\nb'"
    assert len(clip("x" * 500)) == 60
    assert clip({"a": 1}) == "'dict'"
