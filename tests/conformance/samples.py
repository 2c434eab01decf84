"""Turns of our own writing for the suites that run on every store."""

from __future__ import annotations

from collections.abc import Mapping

from context_gatekeeper.types import PageDraft, Role

HOSTILE_TEXTS = {
    "empty": "",
    "NUL": "before\0after",
    "lone surrogate": "half \ud83d of a pair, and \udc00 the other",
    "right to left": "\u202eabc \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "emoji family": "👨‍👩‍👧‍👦 🇩🇪 e\u0301",
    "line ends": "a\r\nb\rc\n\n\td\u2028e\x85f",
    "Chinese": "缓存的过期时间怎么设置？先看 TTL。",
    "quotes": "'; DROP TABLE pages; -- \" % _ \\ NEAR( *",
    "long": "0123456789 " * 10_000,
}


def turn(
    turn_id: int,
    user_text: str = "how long do keys live?",
    assistant_text: str = "until their time is up",
    *,
    user_terms: Mapping[str, int] | None = None,
    assistant_terms: Mapping[str, int] | None = None,
    time: float | None = None,
    speakers: tuple[str | None, str | None] = (None, None),
    derived: str = "",
) -> list[PageDraft]:
    """Both drafts of one turn; the words of the texts are their terms unless others are given."""
    return [
        PageDraft(
            turn_id,
            Role.USER,
            user_text,
            word_counts(user_text) if user_terms is None else user_terms,
            derived,
            time,
            speakers[0],
        ),
        PageDraft(
            turn_id,
            Role.ASSISTANT,
            assistant_text,
            word_counts(assistant_text) if assistant_terms is None else assistant_terms,
            "",
            time,
            speakers[1],
        ),
    ]


def word_counts(text: str) -> dict[str, int]:
    """Word -> occurrences, in the order of first occurrence."""
    words = text.split()
    return {word: min(255, words.count(word)) for word in dict.fromkeys(words)} if len(words) < 1000 else {}
