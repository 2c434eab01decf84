"""Index terms for what is known of a page beside its text: when it was said, and by whom."""

from __future__ import annotations

import re
from datetime import UTC, datetime

__all__ = ["QUESTION_TERM", "context_terms", "date_terms", "is_context_term", "speaker_term"]

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH = re.compile(
    r"\b(" + "|".join(_MONTHS) + r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b|(?<!\d)(1[0-2]|0?[1-9])月"
)
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_MARK = "\u001f"
"""Starts terms that no text can hold; only the ``recall`` profile looks for them."""
QUESTION_TERM = f"{_MARK}question"
_QUESTION_MARK = re.compile("[?\uff1f\u061f]")


def context_terms(time: float | None, speaker: str | None, text: str = "") -> dict[str, int]:
    """Index terms for when a page was said and by whom; of a named speaker's page, whether it asks something."""
    terms: dict[str, int] = {}
    if time is not None:
        moment = datetime.fromtimestamp(time, UTC)
        terms[f"{_MARK}month {moment.month}"] = 1
        terms[f"{_MARK}year {moment.year}"] = 1
    if speaker:
        terms[speaker_term(speaker)] = 1
        if _QUESTION_MARK.search(text):
            terms[QUESTION_TERM] = 1
    return terms


def is_context_term(term: str) -> bool:
    """Whether a term of a page comes from here, not from its text."""
    return term.startswith(_MARK)


def speaker_term(speaker: str) -> str:
    """Term of the pages that a speaker said; case does not count."""
    return f"{_MARK}speaker {speaker.strip().casefold()}"


def date_terms(text: str) -> list[str]:
    """Terms of the months and years that a text names."""
    lowered = text.lower()
    terms = []
    for match in _MONTH.finditer(lowered):
        number = (
            int(match.group(2))
            if match.group(2)
            else 1 + next(i for i, name in enumerate(_MONTHS) if name.startswith(match.group(1)[:3]))
        )
        terms.append(f"{_MARK}month {number}")
    terms.extend(f"{_MARK}year {match.group(1)}" for match in _YEAR.finditer(text))
    return terms
