"""Texts for the tests of text, fences and cuts."""

from __future__ import annotations

from hypothesis import strategies as st

ANY_TEXT = st.text(st.characters(), max_size=60)
"""Includes lone surrogates and NUL."""
CODE_PIECES = (
    "A script:\n", "\n", "```bash\n", "```\n", "```", "``", "`", "`x`", "``a`b``", " text ", "code. x", "~~~\n",
    "~~~~ py\n", "~~~", "  ```\n", "> ```\n", "\r\n", "🇩🇪", "e\u0301", "````\n", "```a`b", "   ",
)  # fmt: skip
MARKDOWN = st.lists(st.sampled_from(CODE_PIECES), max_size=14).map("".join)
LONG = 100_000
STORMS = {
    "dots": "." * LONG, "quoted dots": '."' * (LONG // 2), "backticks": "`" * LONG, "spans": "` " * (LONG // 2),
    "marks": "a" + "\u0301\u0316" * (LONG // 2), "lines": "\r\n" * (LONG // 2), "flags": "🇩🇪" * (LONG // 2),
    "joiners": "\u200d" * LONG, "fences": "```\n" * (LONG // 4), "surrogates": "\ud83d" * LONG,
    "runs": " ".join("`" * length for length in range(1, 440)), "tildes": "~~~ " * (LONG // 4),
    "jamo": "\u1112\u1161\u11ab" * (LONG // 3), "ends": "。" * LONG, "blanks": " " * LONG, "quotes": '"' * LONG,
    "numbers": "1. " * (LONG // 3), "NUL": "\x00" * LONG, "arabic": "\u0644\u0627\u064e" * (LONG // 3),
    "devanagari": "\u0915\u094d\u0937" * (LONG // 3), "thai": "\u0e01\u0e33" * (LONG // 2),
}  # fmt: skip
"""A hundred thousand characters of one kind each: what would take a quadratic rule hours."""
