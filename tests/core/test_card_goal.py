"""What a message asks for."""

from __future__ import annotations

import pytest
from hypothesis import given

from context_gatekeeper.core.card_goal import find_ask, is_ask
from context_gatekeeper.core.card_prose import read_prose
from tests.core.texts import ANY_TEXT


def asked(text: str) -> str | None:
    ask = find_ask(read_prose(text, by_user=True))
    return None if ask is None else text[ask[0] : ask[1]]


@pytest.mark.parametrize(
    "sentence",
    [
        "Fix the login page.", "ok, now please add a test", "can you check the build?", "I'd like to rename it",
        "we need to update the docs", "why is it slow?",
        "the API is odd, add a helper", "修复登录页面", "请把缓存改成两小时",
        "幫我檢查一下日誌", "为什么这么慢？", "這個測試怎麼跑",
    ],
)  # fmt: skip
def test_orders_and_questions_ask(sentence: str) -> None:
    assert is_ask(read_prose(sentence, by_user=True).quiet)


@pytest.mark.parametrize(
    "sentence", ["yes", "ok continue", "Continue.", "继续", "好的", "LGTM", "It was cold.", "天气很冷。"]
)
def test_a_bare_yes_asks_for_nothing(sentence: str) -> None:
    assert (is_ask(sentence), asked(sentence)) == (False, None)


def test_the_first_ask_of_a_typed_message_is_its_goal() -> None:
    assert asked("The page is blank. Fix the router. Then run the tests.") == "Fix the router."


def test_pasted_text_before_the_ask_gives_way_to_the_last_ask() -> None:
    log = "\n".join(f"2026-01-02 10:00:0{n} add worker {n};" for n in range(9))
    assert asked(f"{log}\nThat is the log.\nFind out why it stops.") == "Find out why it stops."
    issue = "Add the flag to the tool. " * 40
    assert asked(f"{issue}\n\n请解释这个需求。") == "请解释这个需求。"
    assert asked("- high: check the cache first\n- low: rename it\n这些问题存在吗？") == "这些问题存在吗？"


def test_an_ask_before_the_paste_that_points_at_it_stays() -> None:
    log = "\n".join(f"src/a.py:{n}: run the tests" for n in range(30))
    assert asked(f"Explain the following log\n{log}\nand why?") == "Explain the following log"
    assert asked(f"Explain what went wrong here\n{log}") == "Explain what went wrong here"


def test_an_ask_that_only_announces_hands_over_to_what_it_announces() -> None:
    assert asked("Implement the following plan:\n\n# Cache the rows\n\nWrite a table.") == "Cache the rows"
    assert asked("Implement the following plan:\n\nWrite a table.") == "Write a table."
    assert asked("Implement the plan:") == "Implement the plan:"


def test_one_word_is_quoted_with_the_sentence_before() -> None:
    assert asked("The bar is too wide. Fix it.") == "The bar is too wide. Fix it."
    assert asked("The bar is too wide.\nFix it.") == "Fix it."
    assert asked("Fix it.") == "Fix it."


def test_a_message_without_words_asks_for_nothing() -> None:
    assert asked("```\nfix\n```") is None


@given(ANY_TEXT)
def test_any_text_can_be_read(text: str) -> None:
    ask = find_ask(read_prose(text, by_user=True))
    assert ask is None or 0 <= ask[0] <= ask[2] < ask[1] <= len(text)
