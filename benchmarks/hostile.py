"""``python -m benchmarks text``: 100,000 characters of each hostile kind through ``add_turn``."""

from __future__ import annotations

from random import Random
from time import process_time

from context_gatekeeper import ContextGatekeeper

__all__ = ["hostile_texts", "measure_text"]

_SEED = 11


def hostile_texts(length: int) -> dict[str, str]:
    """Name of the kind -> text of exactly ``length`` characters."""
    return {**_latin_texts(length), **_script_texts(length)}


def _filled(pattern: str, length: int) -> str:
    return (pattern * (length // len(pattern) + 1))[:length]


def _drawn(alphabet: str, length: int) -> str:
    return "".join(Random(_SEED).choices(alphabet, k=length))


def _between(first: int, last: int, length: int) -> str:
    return _drawn("".join(map(chr, range(first, last + 1))), length)


def _latin_texts(length: int) -> dict[str, str]:
    """Letters, numbers, marks and code."""

    def filled(pattern: str) -> str:
        return _filled(pattern, length)

    def drawn(alphabet: str) -> str:
        return _drawn(alphabet, length)

    return {
        "one letter": filled("a"),
        "one line of letters": drawn("abcdefghijklmnopqrstuvwxyz"),
        "distinct words": filled(" ".join(f"w{number}x" for number in range(length // 5))),
        "digits": drawn("0123456789"),
        "numbers": filled(" ".join(str(number) for number in range(10_000, 10_000 + length // 6))),
        "dotted numbers": filled("1.2.3."),
        "spaces": filled(" "),
        "newlines": filled("\n"),
        "carriage returns": filled("\r\n"),
        "tabs and words": filled("\tx "),
        "full stops": filled("."),
        "sentences": filled("Yes. No! Why? "),
        "question marks": filled("?"),
        "opening quotes": filled('"'),
        "quotes and letters": filled('"a '),
        "apostrophes": filled("'a "),
        "back quotes": filled("`"),
        "open back quotes": filled("`a "),
        "fences": filled("```\n"),
        "open fence": ("```python\n" + filled("x = 1\n"))[:length],
        "corner brackets": filled("\u300c"),
        "underscores": filled("_"),
        "snake case": filled("some_name_"),
        "camel case": filled("someName"),
        "path": filled("/folder"),
        "dotted path": filled("a.b."),
        "hyphens": filled("a-"),
        "plus signs": filled("c++"),
        "base64": drawn("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
        "hexadecimal": drawn("0123456789abcdef"),
        "nested brackets": filled("[{"),
        "JSON": filled('{"key": [1, 2, {"k": "v"}]}, '),
        "markdown table": filled("| a | b |\n"),
        "web addresses": filled("https://example.org/a?b=c&d=e#f "),
    }


def _script_texts(length: int) -> dict[str, str]:
    """Other scripts, and characters that are not letters."""

    def filled(pattern: str) -> str:
        return _filled(pattern, length)

    def between(first: int, last: int) -> str:
        return _between(first, last, length)

    return {
        "one Han character": filled("\u5b57"),
        "Han": between(0x4E00, 0x9FA5),
        "Han with stops": filled("\u8fd9\u4e2a\u3002"),
        "kana": between(0x3041, 0x30FA),
        "hangul": between(0xAC00, 0xD7A3),
        "Cyrillic": between(0x0430, 0x044F),
        "Arabic": between(0x0621, 0x064A),
        "right-to-left marks": filled("\u202e\u202da"),
        "Thai": between(0x0E01, 0x0E3A),
        "Devanagari": between(0x0905, 0x0939),
        "combining marks": "e" + filled("\u0301")[: length - 1],
        "letters with marks": filled("e\u0301\u0302\u0303 "),
        "emoji families": filled("\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"),
        "flags": filled("\U0001f1e8\U0001f1ed"),
        "zero width": filled("\u200b"),
        "wide letters": between(0xFF21, 0xFF5A),
        "NUL": filled("\x00"),
        "control characters": between(0x00, 0x1F),
        "lone surrogates": filled("\ud800\udfff\ud83d"),
        "ligatures that grow": filled("\ufdfa"),
        "anything": between(0x20, 0xD7FE),
    }


def measure_text(length: int = 100_000) -> dict[str, object]:
    """CPU seconds of ``add_turn`` by kind, and how they grow from half the length.

    Each text is the user's in a fresh conversation, behind one short turn. ``growth`` is
    2 for linear work and 4 for quadratic; it is null where the half takes under 20 ms. It compares second
    calls, for the half's words would else be known from the whole.
    """
    seconds = {name: _add_seconds(text) for name, text in hostile_texts(length).items()}
    again = {name: _add_seconds(text) for name, text in hostile_texts(length).items()}
    halves = {name: _add_seconds(text) for name, text in hostile_texts(length // 2).items()}
    slowest = max(seconds, key=seconds.__getitem__)
    return {
        "characters": length,
        "seconds": {name: round(took, 4) for name, took in seconds.items()},
        "growth": {
            name: round(took / halves[name], 2) if halves[name] > 0.02 else None for name, took in again.items()
        },
        "slowest": slowest,
        "slowest_seconds": round(seconds[slowest], 4),
    }


def _add_seconds(text: str) -> float:
    with ContextGatekeeper() as gatekeeper:
        gatekeeper.add_turn("hello there", "good morning")
        started = process_time()
        gatekeeper.add_turn(text, "")
        return process_time() - started
