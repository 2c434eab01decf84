"""Checks of what callers pass to the library's object: each error names the argument, the cause and the next step."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

from context_gatekeeper.core.economics import PRICES, PriceProfile
from context_gatekeeper.core.tokens import documented_tokens, estimate_tokens
from context_gatekeeper.engine.exact_tokens import load_exact_counter
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import PageStore, TokenCounter
from context_gatekeeper.types import FIRST_SECOND, LAST_SECOND, AgentMessage, AgentSession

__all__ = [
    "CounterName",
    "Time",
    "check_limit",
    "check_piece",
    "check_session",
    "check_text",
    "check_texts",
    "check_tokens",
    "check_turn_id",
    "checked_budget",
    "checked_prices",
    "checked_speakers",
    "checked_store",
    "counter_of",
    "seconds_of",
]

MOST_RECALLED = 100_000
"""Pages of one recall."""
MOST_BUDGET_TOKENS = 10**12
"""A million times the longest windows there are; larger numbers are mistakes and need not fit a float."""
_SIDES = 2
_SHOWN_CHARS = 60

Time = float | datetime | None
"""Seconds since the epoch or a datetime (naive = UTC)."""
CounterName = Literal["fitted", "documented", "exact"]


def checked_budget(tokens: object) -> int:
    """``tokens`` when it is a whole number from 1 to 10^12. Raises ConfigError."""
    if isinstance(tokens, bool) or not isinstance(tokens, int):
        raise ConfigError(
            f"token_budget {_shown(tokens)}", "it is not a whole number", "pass the tokens of one prompt, 1 or more"
        )
    if not 1 <= tokens <= MOST_BUDGET_TOKENS:
        cause = "a prompt has at least one token" if tokens < 1 else "no prompt has so many tokens"
        raise ConfigError(f"token_budget {_shown(tokens)}", cause, "pass 1 or more; 4000 is the default")
    return tokens


def check_turn_id(turn_id: object) -> None:
    """Raise ConfigError unless ``turn_id`` is None or a whole number from 0."""
    is_id = isinstance(turn_id, int) and not isinstance(turn_id, bool) and 0 <= turn_id <= MOST_BUDGET_TOKENS
    if turn_id is not None and not is_id:
        raise ConfigError(
            f"turn_id {_shown(turn_id)}", "it is no turn's id", "pass 0 or more, or None for the next one"
        )


def check_limit(limit: object) -> None:
    """Raise ConfigError unless ``limit`` is a whole number from 1 to 100,000."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_RECALLED:
        raise ConfigError(f"limit {_shown(limit)}", "it is not a number of pages", f"pass 1 to {MOST_RECALLED}")


def check_tokens(name: str, tokens: object) -> None:
    """Raise ConfigError unless ``tokens``, the argument called ``name``, is a whole number from 0 to 10^12."""
    is_count = isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens <= MOST_BUDGET_TOKENS
    if not is_count:
        raise ConfigError(f"{name} {_shown(tokens)}", "it is no number of tokens", f"pass 0 to {MOST_BUDGET_TOKENS:,}")


def check_piece(name: str, piece: object) -> None:
    """Raise ConfigError unless ``piece`` is None or (first, last), whole numbers of which the last may be None."""
    ends = piece if isinstance(piece, tuple | list) else ()
    is_pair = len(ends) == _SIDES and _is_whole(ends[0]) and (ends[1] is None or _is_whole(ends[1]))
    if piece is not None and not is_pair:
        raise ConfigError(
            f"{name} {_shown(piece)}",
            "it is no pair of whole numbers",
            "pass (first, last), None as the last for the end",
        )


def check_texts(name: str, texts: object) -> None:
    """Raise ConfigError unless ``texts``, the argument called ``name``, is a list or tuple of str."""
    if not isinstance(texts, tuple | list) or not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"{name} {_shown(texts)}", "it is no list of texts", "pass a list of str")


def checked_prices(prices: object) -> PriceProfile:
    """The price profile of this name. Raises ConfigError."""
    if not isinstance(prices, str) or prices not in PRICES:
        raise ConfigError(
            f"price profile {_shown(prices)}", "there is none of this name", f"use one of {', '.join(PRICES)}"
        )
    return PRICES[prices]


def check_session(session: object) -> None:
    """Raise ConfigError unless ``session`` is an `AgentSession` whose name is a text and whose messages are such."""
    if not isinstance(session, AgentSession):
        raise ConfigError(
            f"session {_shown(session)}", f"it is a {type(session).__name__}", "pass what read_sessions gives"
        )
    check_text("session_id", session.session_id)
    if not isinstance(session.messages, tuple) or not all(isinstance(one, AgentMessage) for one in session.messages):
        raise ConfigError(
            f"session {_shown(session.session_id)}", "its messages are no tuple of AgentMessage", "pass such a tuple"
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_text(name: str, text: object) -> None:
    """Raise ConfigError unless ``text``, the argument called ``name``, is a str."""
    if not isinstance(text, str):
        raise ConfigError(name, f"it is a {type(text).__name__}, not a text", "pass a str")


def _shown(value: object) -> str:
    """A value as errors show it: short, on one line."""
    try:
        text = ascii(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return f"of more than {sys.get_int_max_str_digits()} digits"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def checked_store(store: object) -> PageStore:
    """``store`` when it has the methods of `PageStore`. Raises ConfigError."""
    if isinstance(store, type) or not isinstance(store, PageStore):
        raise ConfigError(
            f"store {_shown(store)}", f"it is a {type(store).__name__}", "pass a path, a PageStore object or None"
        )
    return store


def checked_speakers(speakers: object) -> tuple[str | None, str | None]:
    """The two names, each a str on one line or None. Raises ConfigError."""
    names = tuple(speakers) if isinstance(speakers, tuple | list) else ()
    if len(names) != _SIDES or not all(isinstance(name, str | None) for name in names):
        raise ConfigError(
            f"speakers {_shown(speakers)}",
            "they are no two names",
            "pass (user's name, assistant's name), None for a side without one",
        )
    if any("\n" in name for name in names if name):
        raise ConfigError(f"speakers {_shown(speakers)}", "a name holds a line break", "pass names on one line")
    return names


def seconds_of(time: Time) -> float | None:
    """Seconds since the epoch, None for None. Raises ConfigError for what is no time of the years 5 to 5138."""
    if time is None:
        return None
    if isinstance(time, datetime):
        seconds: object = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    else:
        seconds = time
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not FIRST_SECOND <= seconds < LAST_SECOND:  # type: ignore[operator]  # NaN is not between
        raise ConfigError(
            f"time {_shown(time)}",
            "it is no point in time of the years 5 to 5138",
            "pass seconds (not milliseconds) since the epoch or a datetime",
        )
    return float(seconds)  # type: ignore[arg-type]


def counter_of(token_counter: CounterName | Callable[[str], int]) -> TokenCounter:
    """The counter of that name, or the caller's own with every answer checked. Raises ConfigError."""
    if callable(token_counter):
        return _checked_counter(token_counter)
    if token_counter == "fitted":
        return estimate_tokens
    if token_counter == "documented":
        return documented_tokens
    if token_counter == "exact":
        return load_exact_counter()
    raise ConfigError(
        f"token_counter {_shown(token_counter)}",
        "there is no such counter",
        "use 'fitted', 'documented', 'exact' or a callable",
    )


def _checked_counter(count: Callable[[str], Any]) -> TokenCounter:
    """A caller's own counter whose every answer is looked at: the budget rests on it."""

    def counted(text: str) -> int:
        answer = count(text)
        try:
            tokens = operator.index(answer)
        except TypeError:
            tokens = -1
        if not 0 <= tokens <= MOST_BUDGET_TOKENS:
            raise ConfigError(
                "token_counter",
                f"it gave {_shown(answer)} for a text of {len(text)} characters",
                "return a whole number of tokens, 0 or more",
            )
        return tokens

    return counted
