"""Values that were named: versions, ports, ids, addresses, commits, numbers with units, colours.

A value is quoted with the words just before it, which say what it is. Linear.
"""

from __future__ import annotations

import re

from context_gatekeeper.core.card_prose import Prose
from context_gatekeeper.core.secret_rules import FoundSecret, find_secrets

__all__ = ["find_values"]

_LEFT = r"(?<![\w.#/@:-])"
_RIGHT = r"(?![\w/]|[.:-]\w)"
_VALUE = re.compile(
    r"https?://[^\s\"'<>()`，。；！？、）】」\]]{4,200}"
    rf"|{_LEFT}(?:localhost|\d{{1,3}}(?:\.\d{{1,3}}){{3}}):\d{{2,5}}{_RIGHT}"
    rf"|{_LEFT}[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{12}}{_RIGHT}"
    rf"|(?<=[\s(（:：，])#(?:[0-9a-fA-F]{{6}}|\d{{1,6}})(?!\w)"
    rf"|{_LEFT}(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{{7,40}}{_RIGHT}"
    rf"|{_LEFT}[A-Z]{{2,10}}-\d{{1,6}}{_RIGHT}"
    rf"|{_LEFT}v?\d{{1,5}}(?:\.\d{{1,6}}){{1,3}}(?:-(?:rc|beta|alpha|dev)[.\w]{{0,8}})?{_RIGHT}(?! ?(?:s|ms|%)\b)"
    r"|(?<![\w.])\d{1,12}(?:[.,]\d{1,9})? ?(?:%|ms|s|sec(?:onds?)?|min(?:utes?)?|h|hours?|days?|weeks?|[KMGT]i?B|[kK]"
    r"|px|rpm|req/s|tokens?|chars?|characters|lines|bytes?|rows"
    r"|毫秒|秒|分钟|小时|天|周|个月|次|条|个|行|字符|字节|元|倍|万)(?![A-Za-z])"
    r"|(?i:(?<![A-Za-z0-9_])(?:port|端口|version|版本|timeout|超时|limit|上限|max|min|size|id|pr|issue|threshold|阈值|ttl|retries"
    r"|重试))[ \t]{0,2}(?:[=:：#是为]|to|is|of)?[ \t]{0,2}#?\d{1,9}(?!\w|\.\w|%)"
)
_BEFORE = re.compile(r"(?:[^\s，。；、,;:：()（）\"'`]{1,24}[ \t]*[:=：]?[ \t]*){1,3}\Z")
_BEFORE_HAN = re.compile(r"[\u3400-\u9fffA-Za-z0-9_. -]{1,10}[:：=]?[ \t]?\Z")
_HAN = re.compile(r"[\u3400-\u9fff]")
_BEFORE_CHARS = 32
_DIGIT = re.compile(r"[0-9]")
_MOST_VALUES = 60
"""Of one message; a table of numbers is not what a card is for."""


def find_values(prose: Prose) -> list[tuple[int, int, str]]:
    """(start, end, the value in lower case) of each value that a message names, with the words before it.

    Values inside a secret are left out. O(length of the message).
    """
    text = prose.text
    found: list[tuple[int, int, str]] = []
    secrets: list[FoundSecret] | None = None
    for start, end in prose.spans:
        told = start
        if _DIGIT.search(text, start, end) is None and text.find("://", start, end) < 0:
            continue
        for value in _VALUE.finditer(text, start, end):
            if len(found) == _MOST_VALUES:
                return found
            if secrets is None:
                secrets = find_secrets(text)
            first, last = value.start(), value.start() + len(value.group().rstrip(".,;:"))
            if any(secret.start < last and first < secret.end for secret in secrets):
                continue
            found.append((_with_noun(text, told, first), last, text[first:last].lower()))
            told = last
    return found


def _with_noun(text: str, told: int, value: int) -> int:
    """Where the words before a value begin; what stands before ``told`` is not theirs."""
    begin = max(told, value - _BEFORE_CHARS)
    around = text[begin:value]
    pattern = _BEFORE_HAN if _HAN.search(around) else _BEFORE
    words = pattern.search(around)
    if words is None:
        return value
    first = begin + words.start()
    while (
        first > told
        and first < value
        and text[first].isalnum()
        and text[first - 1].isalnum()
        and text[first] < "\u2e80"
    ):
        first += 1
    return (
        value if first >= value else first + len(text[first:value]) - len(text[first:value].lstrip(" \t,，:：-*#>|~"))
    )
