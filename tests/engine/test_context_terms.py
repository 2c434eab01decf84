"""Index terms for when a page was said and by whom, and those that a query asks for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.engine.context_terms import (
    QUESTION_TERM,
    context_terms,
    date_terms,
    is_context_term,
    speaker_term,
)

MONTHS = "January February March April May June July August September October November December".split()


def at(year: int, month: int, day: int = 10) -> float:
    return datetime(year, month, day, tzinfo=UTC).timestamp()


def test_a_page_is_indexed_by_month_year_and_speaker() -> None:
    dated, named = context_terms(at(2023, 5), None), context_terms(None, " Ann ")
    assert len(dated) == 2
    assert named == context_terms(None, "ANN") != context_terms(None, "Ben")
    assert dated != context_terms(at(2023, 6), None)
    assert context_terms(at(2023, 5), "Ann") == {**dated, **named}
    assert context_terms(None, None) == context_terms(None, "") == {}


def test_months_and_years_are_those_of_utc() -> None:
    new_year = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
    assert context_terms(new_year, None) == context_terms(at(2024, 1), None)
    assert context_terms(new_year - 1, None) == context_terms(at(2023, 12), None)


def test_a_page_tells_whether_a_named_speaker_asks_something() -> None:
    assert context_terms(None, "Ann", "Is it?") == context_terms(None, "Ann", "是吗？嗯")
    assert context_terms(None, "Ann", "Is it?") != context_terms(None, "Ann", "It is.")
    assert context_terms(None, None, "Is it?") == {}


def test_only_a_named_speakers_question_has_the_term_of_questions() -> None:
    assert context_terms(at(2023, 5), "Ann", "Is it?").keys() - context_terms(at(2023, 5), "Ann").keys() == {
        QUESTION_TERM
    }
    for mark in ("?", "\uff1f", "\u061f"):
        assert QUESTION_TERM in context_terms(None, "Ann", f"kingfisher{mark} Well")
    assert QUESTION_TERM not in context_terms(None, "Ann", "kingfisher!")


def test_each_term_counts_once() -> None:
    assert set(context_terms(at(2023, 5), "Ann", "Is it? Is it?").values()) == {1}


def test_the_term_of_a_speaker_knows_no_case_and_no_margin() -> None:
    assert speaker_term(" ANN ") == speaker_term("ann") != speaker_term("Anna")
    assert speaker_term("ann") in context_terms(None, "Ann")


@pytest.mark.parametrize("month", range(1, 13))
def test_a_month_is_found_by_its_name_its_abbreviation_and_its_han_form(month: int) -> None:
    page = context_terms(at(2023, month), None)
    name = MONTHS[month - 1]
    for text in (f"in {name}", f"in {name[:3].upper()}.", f"{month}月", f"{month:02}月"):
        (term,) = date_terms(text)
        assert term in page, text


@pytest.mark.parametrize("text", ["2023", "since 2023, I think", "2023年"])
def test_a_year_is_found_by_its_four_digits(text: str) -> None:
    (term,) = date_terms(text)
    assert term in context_terms(at(2023, 5), None)
    assert term not in context_terms(at(2024, 5), None)


@pytest.mark.parametrize(
    "text", ["", "maybe a march-past of decoys", "12023", "20231", "13月", "1850", "2100", "112月"]
)
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    expected = [f"month {3}"] if "march-past" in text else []
    assert [term[1:] for term in date_terms(text)] == expected


def test_several_dates_of_one_text_are_all_found_months_before_years() -> None:
    found = date_terms("From May 2021 to 9月 2022")
    assert [term[1:] for term in found] == ["month 5", "month 9", "year 2021", "year 2022"]


def test_no_word_of_a_text_is_a_context_term() -> None:
    for term in (*context_terms(at(2023, 5), "Ann", "Is it?"), *date_terms("May 2021"), QUESTION_TERM):
        assert is_context_term(term)
    text = "month 5 \u001fmonth 5 \u001fspeaker ann \u001fquestion kingfisher 2021"
    assert scan_anchors(text).counts
    assert not any(is_context_term(term) for term in scan_anchors(text).counts)
