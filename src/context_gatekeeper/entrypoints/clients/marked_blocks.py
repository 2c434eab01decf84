"""Blocks of our own between marked lines in a text file: put in, replaced and taken out, all else byte for byte.

One block may stand at the beginning, where TOML wants its root keys, and one at the end, for tables.
"""

from __future__ import annotations

import re

__all__ = ["with_blocks", "without_blocks"]

_NAME = "context-gatekeeper"
_BEGIN = f"# >>> {_NAME} >>> (cgk uninstall takes this block out)"
_BEGIN_GLUED = f"# >>> {_NAME} >>> (cgk uninstall takes this block out, and the line end in front of it)"
_END = f"# <<< {_NAME} <<<"
_BLOCK = re.compile(
    rf"(?:\r?\n(?={re.escape(_BEGIN_GLUED)}))?(?:{re.escape(_BEGIN)}|{re.escape(_BEGIN_GLUED)})\r?\n"
    rf"(?:(?!{re.escape(_END)})[^\n]*\n)*{re.escape(_END)}(?:\r?\n|\Z)"
)


def with_blocks(text: str, head: str, tail: str) -> str:
    """The text with our blocks, which replace those that it has.

    Args:
        text: what the file holds.
        head: lines for its beginning; "" for none.
        tail: lines for its end; "" for none.
    """
    rest = without_blocks(text)
    newline = "\r\n" if "\r\n" in rest else "\n"
    first = _block(_BEGIN, head, newline) if head else ""
    if not tail:
        return f"{first}{rest}"
    is_glued = bool(rest) and not rest.endswith("\n")
    last = newline + _block(_BEGIN_GLUED, tail, newline) if is_glued else _block(_BEGIN, tail, newline)
    return f"{first}{rest}{last}"


def without_blocks(text: str) -> str:
    """The text without our blocks."""
    return _BLOCK.sub("", text)


def _block(begin: str, lines: str, newline: str) -> str:
    return newline.join((begin, *lines.strip("\n").split("\n"), _END, ""))
