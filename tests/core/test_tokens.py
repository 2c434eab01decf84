"""Token estimates, and what corrects them."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import fields
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_gatekeeper.core.token_rows import PIECE_ROWS, RUN_ROWS, PieceRow, RunRow
from context_gatekeeper.core.tokens import (
    FAMILIES,
    MESSAGE_TOKENS,
    TOOL_CALL_TOKENS,
    Calibration,
    apply_calibration,
    count_pieces,
    count_runs,
    documented_tokens,
    estimate_tokens,
    image_tokens,
    split_pieces,
    tool_definition_tokens,
)
from context_gatekeeper.engine.exact_tokens import load_exact_counter
from context_gatekeeper.errors import ConfigError

ANY_TEXT = st.text(st.characters(), max_size=80)
ENGLISH = (
    "The lock expires after thirty seconds, so a worker that pauses longer than that may find somebody else inside. "
    "Give every holder a random token and let a small script compare it before the key is deleted. That way a slow "
    "worker never releases a lock which it does not own any more, and you can see in the log who held it last."
)
CHINESE = (
    "锁的过期时间设成三十秒，工作进程如果停顿得更久，就可能发现别人已经拿到了锁。给每个持有者一个随机的标记，"
    "删除之前先用脚本比较一下，这样慢的进程就不会释放不属于自己的锁。日志里也能看到最后是谁拿着它。"
)
TRADITIONAL = (
    "鎖的過期時間設成三十秒，工作程序如果停頓得更久，就可能發現別人已經拿到了鎖。給每個持有者一個隨機的標記，"
    "刪除之前先用腳本比較一下，這樣慢的程序就不會釋放不屬於自己的鎖。日誌裡也能看到最後是誰拿著它。"
)
JAPANESE = (
    "ロックの有効期限は三十秒に設定します。処理がそれより長く止まると、別の担当者が先に入ってしまうかもしれません。"
    "そこで各担当者に乱数の印を渡し、削除する前に小さなスクリプトで比べます。最後に誰が持っていたかは記録に残ります。"
)
KOREAN = (
    "잠금의 만료 시간은 삼십 초로 정합니다. 작업이 그보다 오래 멈추면 다른 사람이 먼저 들어올 수 있습니다. "
    "그래서 각 소유자에게 임의의 표시를 주고 지우기 전에 작은 스크립트로 비교합니다."
)
RUSSIAN = (
    "Срок действия блокировки составляет тридцать секунд. Если процесс остановится на большее время, внутри может "
    "оказаться кто-то другой. Поэтому каждый владелец получает случайную метку."
)
GERMAN = (
    "Die Sperre läuft nach dreißig Sekunden ab. Hält ein Prozess länger an, so kann inzwischen jemand anderes darin "
    "sein. Jeder Besitzer bekommt deshalb eine zufällige Marke, die vor dem Löschen verglichen wird."
)
CODE = '''
def release_lock(client: Redis, key: str, token: str) -> bool:
    """Delete the key when it still holds our token."""
    script = client.register_script(RELEASE_SCRIPT)
    if not key.startswith("lock:"):
        raise ValueError(f"unexpected key {key!r}")
    return bool(script(keys=[key], args=[token, 30_000]))
'''
TOOL_OUTPUT = json.dumps(
    [
        {"path": f"src/app/module_{n}.py", "line": 10 * n + 7, "match": "lock.release(token)", "ok": n % 2 == 0}
        for n in range(8)
    ]
)
LOG = "\n".join(
    f"2026-03-{day:02} 14:0{day % 10}:31,482 WARN  [worker-{day}] lock 'orders' held for {day * 371} ms by 10.0.3.{day}"
    for day in range(1, 9)
)
DIGESTS = "\n".join(
    f"{number * 2654435761 % 2**64:016x}{number * 40503 % 2**64:016x}  bin/tool{number}" for number in range(9, 24)
)
SAMPLES = {
    "English": ENGLISH, "Chinese": CHINESE, "traditional Chinese": TRADITIONAL, "Japanese": JAPANESE, "Korean": KOREAN,
    "Russian": RUSSIAN, "German": GERMAN, "code": CODE, "JSON": TOOL_OUTPUT, "log": LOG, "digests": DIGESTS,
}  # fmt: skip
exact_tokens = load_exact_counter()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_estimate_is_near_the_exact_count_whatever_the_text(name: str) -> None:
    exact = exact_tokens(SAMPLES[name])
    assert abs(estimate_tokens(SAMPLES[name]) / exact - 1) < 0.18


@pytest.mark.parametrize("name", ["Chinese", "traditional Chinese", "Japanese"])
def test_han_is_not_under_counted_by_a_quarter_however_short(name: str) -> None:
    text = SAMPLES[name]
    for start in range(0, len(text) - 30, 15):
        part = text[start : start + 30]
        assert estimate_tokens(part) >= 0.75 * exact_tokens(part)


def test_three_thousand_han_characters_count_about_thrice_as_much_as_latin_ones() -> None:
    han = (CHINESE * 40)[:3000]
    latin = (ENGLISH * 40)[:3000]
    assert abs(estimate_tokens(han) / exact_tokens(han) - 1) < 0.25
    assert estimate_tokens(han) > 2.5 * estimate_tokens(latin)


def test_forty_texts_together_are_counted_within_a_few_percent() -> None:
    texts = list(SAMPLES.values())
    assert abs(sum(map(estimate_tokens, texts)) / sum(map(exact_tokens, texts)) - 1) < 0.03


def test_blobs_are_counted_as_the_many_tokens_that_they_are() -> None:
    blob = b64encode(b"".join(sha256(bytes([number])).digest() for number in range(12))).decode()
    assert abs(estimate_tokens(blob) / exact_tokens(blob) - 1) < 0.25
    assert estimate_tokens(blob, "qwen") == round(len(blob) / 1.5)


@pytest.mark.parametrize("family", FAMILIES)
@given(text=ANY_TEXT)
@example(text="\ud800\x00\udfff")
@example(text="🇩🇪👨\u200d👩\u200d👧")
def test_every_text_has_tokens_and_only_the_empty_one_has_none(family: str, text: str) -> None:
    assert (estimate_tokens(text, family) == 0) is (text == "")
    assert estimate_tokens(text, family) <= 4 * len(text) + 1


@pytest.mark.parametrize("family", FAMILIES)
@given(one=ANY_TEXT, other=ANY_TEXT)
def test_joined_texts_cost_about_their_sum(family: str, one: str, other: str) -> None:
    joined = estimate_tokens(one + other, family)
    # At the seam a word or a storm of marks may become another one; nothing else changes.
    assert joined >= max(estimate_tokens(one, family), estimate_tokens(other, family)) * 0.6 - 4
    assert joined <= (estimate_tokens(one, family) + estimate_tokens(other, family)) * 1.4 + 4


@pytest.mark.parametrize("family", FAMILIES)
def test_more_words_never_cost_less(family: str) -> None:
    for text in (ENGLISH, CHINESE, CODE, LOG):
        costs = [estimate_tokens(text[:end], family) for end in range(0, len(text), 7)]
        assert all(after >= before - 3 for before, after in pairwise(costs))


@given(ANY_TEXT)
@example(" \n x'S don't CamelCaseABC 1234567 用redis做lock\r\n/// \u0301")
def test_pieces_join_to_the_text(text: str) -> None:
    assert "".join(split_pieces(text)) == text


def test_pieces_are_those_of_the_tokenizer() -> None:
    assert split_pieces("It's parseHTMLResponse(x)  # 12345!!\n  用redis") == [
        "It's", " parse", "HTMLResponse", "(x", ")", " ", " #", " ", "123", "45", "!!\n", " ", " 用redis",
    ]  # fmt: skip


def test_an_unknown_family_is_named_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"token family 'gpt9': .*use one of o200k, cl100k, claude"):
        estimate_tokens("text", "gpt9")


def test_families_differ_where_their_vocabularies_do() -> None:
    assert (*PIECE_ROWS, *RUN_ROWS) == FAMILIES
    assert estimate_tokens(CHINESE, "cl100k") > 1.2 * estimate_tokens(CHINESE, "o200k")
    assert estimate_tokens(CHINESE, "qwen") < estimate_tokens(CHINESE, "o200k")


def test_every_coefficient_belongs_to_a_count() -> None:
    assert set(count_pieces("")) == {field.name for field in fields(PieceRow)}
    assert set(count_runs("")) == {field.name for field in fields(RunRow)}
    text = (
        " ".join(
            (
                *SAMPLES.values(),
                (
                    "Δέλτα مرحبا שלום สวัสดี नमस्ते გამარჯობა ᚠ ─│ 🙂 ⟺ МОСКВА "
                    "Łódź's don't, ==>> ====\ninternationalisation……」"
                ),
            )
        )
        + DIGESTS * 9
    )
    assert {name for name, count in count_pieces(text).items() if not count} == set()
    assert {name for name, count in count_runs(text + "e\u0301" + "a1" * 30).items() if not count} == set()


STORMS = (
    "a",
    "A",
    "汉",
    "。",
    "!",
    " ",
    "\n",
    "\u0301",
    "🙂",
    "1",
    "`",
    "\ud800",
    "aA",
    "中A",
    "x\u0301",
    "=-",
    "'s",
    "\x00",
    "ж",
    "あ",
)


@pytest.mark.parametrize("storm", STORMS, ids=ascii)
def test_storms_of_one_kind_are_counted_in_every_family(storm: str) -> None:
    text = (storm * 100_000)[:100_000]
    for family in FAMILIES:
        assert estimate_tokens(text, family) >= 1


def test_the_documented_estimate_is_one_and_a_half_a_character_rounded_up() -> None:
    assert [documented_tokens(text) for text in ("", "a", "锁的", "abc")] == [0, 2, 3, 5]


def test_framing_is_small_and_named() -> None:
    assert (MESSAGE_TOKENS, TOOL_CALL_TOKENS) == (4, 8)


def test_an_image_counts_by_its_pixels_and_never_by_its_bytes() -> None:
    assert image_tokens(1000, 750) == 1000
    assert image_tokens(1, 1) == 1
    assert image_tokens(10_000, 10_000) < 5000
    assert 0 < image_tokens() < 5000
    assert image_tokens(800, None) == image_tokens()


def test_tool_definitions_count_as_their_json() -> None:
    tool = {
        "name": "read_file",
        "description": ENGLISH,
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    tools = [{**tool, "name": f"read_file_{number}"} for number in range(40)]
    exact = exact_tokens(json.dumps(tools, ensure_ascii=False, separators=(",", ":")))
    assert abs(tool_definition_tokens(tools) / exact - 1) < 0.15
    assert tool_definition_tokens([*tools, tool]) > tool_definition_tokens(tools)
    assert tool_definition_tokens([]) == 0


def test_calibration_follows_real_figures_within_its_bounds() -> None:
    calibration = Calibration()
    assert calibration.apply(100) == 100
    assert calibration.updated(150, 100).factor == pytest.approx(1.5), "the first figure counts whole"
    steady = calibration
    for _ in range(40):
        steady = steady.updated(120, 100)
    assert (steady.factor, steady.samples) == (pytest.approx(1.2), 40)
    assert steady.updated(180, 100).factor == pytest.approx(1.2 + 0.2 * 0.6)
    assert calibration.updated(1000, 100).factor == 1.8
    assert calibration.updated(1, 100).factor == 0.7
    assert apply_calibration(100, steady) == 120
    assert apply_calibration(100) == 100


@pytest.mark.parametrize(("real", "estimated"), [(0, 10), (10, 0), (-1, 5)])
def test_calibration_ignores_figures_of_no_tokens(real: int, estimated: int) -> None:
    assert Calibration(1.1, 3).updated(real, estimated) == Calibration(1.1, 3)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=20))
def test_the_calibration_factor_stays_in_its_range(figures: list[tuple[int, int]]) -> None:
    calibration = Calibration()
    for real, estimated in figures:
        calibration = calibration.updated(real, estimated)
        assert 0.7 <= calibration.factor <= 1.8


@given(st.text(st.sampled_from("aAzZ09_ \t\n\r/.'st-éß漢あ한\u0301\u0e31Ⅳ\x1c\xa0"), max_size=40))
def test_every_text_is_cut_as_its_letters_ask_whatever_else_stands_in_it(text: str) -> None:
    pieces = split_pieces(f"{text}\nx")
    assert "".join(pieces) == f"{text}\nx"
    # A mark asks for the widest classes, and changes nothing of what stands in the lines before.
    assert split_pieces(f"{text}\nx\u0e31") == [*pieces[:-1], "x\u0e31"]


@given(st.text(st.sampled_from("ab Z9.\n漢é"), max_size=12))
@example("漢é9é")  # 5.5 by one order of the sum, a little less by another
def test_the_estimate_is_the_sum_of_the_counts_however_it_is_added_up(text: str) -> None:
    for family, row in PIECE_ROWS.items():
        total = sum(getattr(row, name) * count for name, count in count_pieces(text).items() if count)
        assert estimate_tokens(text, family) == (max(1, round(total)) if text else 0)
