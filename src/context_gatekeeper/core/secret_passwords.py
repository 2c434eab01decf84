"""Passwords that people chose, told by where they stand: ``DB_PASSWORD=...``, ``password: ...``, a password in quotes.

Such a value need not look like anything, so its place must say that it is one and no code: a name that ends in a
word for password; behind ``=`` a shell's or an environment file's assignment, behind ``:`` the rest of a line; and the
value mixes letters with digits or marks. Letters alone are a password only in the forms of an environment file
(name in capitals), for elsewhere they are labels, types and variables. What is left alone on purpose: words
that every manual has (``changeme``, ``example``, ``postgres``, rows such as ``12345678``), templates and masks,
values of several words (messages of forms), paths, and arguments of calls without quotes.

Linear: each name is found once, what follows it is read for a bounded length. Source: threat T2 of the threat notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from context_gatekeeper.core.lazy_pattern import lazy_pattern
from context_gatekeeper.core.secret_text import is_code_name, is_stand_in, names_a_secret

__all__ = ["find_passwords"]

_NAMES = ("password", "passwd", "passphrase", "pwd", "_pass", "\u5bc6\u7801", "\u5bc6\u78bc", "\u53e3\u4ee4")
"""The last three are Chinese."""
_LEAST_CHARS = 6
_GIVEN = lazy_pattern(
    r"\\{0,3}[\"'`]?\]?(?P<before>[ \t]{0,8})(?P<sign>=>|:=|=(?!=)|[:\uff1a\u662f\u4e3a])(?P<behind>[ \t]{0,8})"
    r"(?:(?P<quote>\\{0,3}[\"'`])(?P<quoted>[^\"'`\\\r\n]{6,128})(?P=quote)"
    r"|(?P<bare>[^\s\"'`\\,;&|<>(){}\[\]\u3000-\u303f\uff00-\uffef\u4e00-\u9fff]{1,128}+))"
)
_ENVIRONMENT_REST = lazy_pattern(r"(?:[^\s\"'`\\<>(){}\[\];&]|[;&](?![A-Za-z_ ]{1,20}=)){0,128}+")
"""What a value in an environment file may go on with, where a shell or a URL would end."""
_LINE_END = lazy_pattern(r"[ \t]{0,8}(?:$|[\r\n\"'`]|\\[nr]|#)")
_VALUE_END = lazy_pattern(r"$|[\s\"'`;&\u3000-\u303f\uff00-\uffef\u4e00-\u9fff]|\\[nr]|,(?:\s|$)")
_NAME_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_NAME_BEHIND_CHARS = 40
_ARGUMENT_BEHIND = lazy_pattern(r"[({,][ \t]{0,8}\Z")
_ARGUMENT_BEHIND_CHARS = 9
_CODE = lazy_pattern(r"[<>{}()\[\]]|^[$%^#@!]|://|^[./~]|^\\|^[A-Z_]+$")
"""What templates, patterns, paths and names of constants hold; passwords with such marks must be strong to be found."""
_TYPES = lazy_pattern(
    r"(?:u?int|float|sha|md|argon|base|utf|varchar|char|string|text|bytea?|nvarchar|bcrypt|scrypt|pbkdf)[0-9]"
    r"|optional|required|string|boolean|object|undefined|disabled|enabled|hidden|default|missing|invalid|number|prompt",
    re.IGNORECASE,
)
_MARKS = frozenset("!@#$%^&*+~?")


def find_passwords(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each password, not in order. O(length).

    Args:
        text: any text.
        lowered: the same in small letters, each at its place.
    """
    for name in _NAMES:
        if name in lowered:
            place = lowered.find(name)
            while place >= 0:
                span = _password_behind(text, place, place + len(name))
                if span is not None:
                    yield span
                place = lowered.find(name, place + len(name))


def _password_behind(text: str, place: int, end: int) -> tuple[int, int] | None:
    given = _GIVEN.match(text, end)
    if given is None:
        return None
    behind = text[max(0, place - _NAME_BEHIND_CHARS) : place]
    name_start = place - len(behind) + len(behind.rstrip(_NAME_LETTERS))
    name = text[name_start:end]
    is_tight = not given["before"] and not given["behind"]
    is_environment = name.isupper() and "=" in given["sign"] and is_tight
    group = "bare" if given["quoted"] is None else "quoted"
    start, stop = given.span(group)
    if group == "bare":
        stop = _bare_end(text, name_start, given, is_environment=is_environment)
    value = text[start:stop].rstrip(".,;:") if group == "bare" else text[start:stop]
    is_settled = is_environment or (name.isupper() and "_" in name and _ends_line(text, max(stop, given.end())))
    if " " in value and not is_environment:
        return None
    return (start, start + len(value)) if _is_password(value, group, is_settled=is_settled) else None


def _bare_end(text: str, name_start: int, given: re.Match[str], *, is_environment: bool) -> int:
    """Where a value without quotes ends; where it begins when the place does not say that it is a password."""
    start, stop = given.span("bare")
    if is_environment:
        rest = _ENVIRONMENT_REST.match(text, stop)
        return rest.end() if rest else stop
    ahead = text[max(0, name_start - _ARGUMENT_BEHIND_CHARS) : name_start]
    if _ARGUMENT_BEHIND.search(ahead):
        return start
    is_tight = given["sign"] == "=" and not given["before"] and not given["behind"]
    is_chinese = not text[name_start].isascii()
    is_ended = _VALUE_END.match(text, stop) if is_tight or is_chinese else _ends_line(text, stop)
    return stop if is_ended else start


def _ends_line(text: str, place: int) -> bool:
    return _LINE_END.match(text, place) is not None


def _is_password(value: str, group: str, *, is_settled: bool) -> bool:
    if len(value) < _LEAST_CHARS or _CODE.search(value) or is_code_name(value) or is_stand_in(value):
        return False
    if ("/" in value and not is_settled) or _TYPES.match(value):
        return False
    has_digit = any(map(str.isdigit, value))
    has_letter = any(map(str.isalpha, value))
    if has_letter and (has_digit or not _MARKS.isdisjoint(value.rstrip("?!"))):
        return group == "quoted" or is_settled or not names_a_secret(value)
    if has_digit:
        return not has_letter and len(value) <= 12
    return is_settled and (value.isalpha() or not names_a_secret(value))
