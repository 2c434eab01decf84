"""Content words of a query: what a block must hold after a switch of topic (DESIGN.md 4.3)."""

from __future__ import annotations

import re

from context_gatekeeper.core.anchor import AnchorScan
from context_gatekeeper.core.background import (
    ENGLISH_STOP_WORDS,
    cut_function_words,
    ngram_background,
    simplify_han,
)
from context_gatekeeper.core.text import normalise_text

__all__ = ["CONTENT_WORD_MIN_LEN", "CONTENT_WORD_PATTERNS", "content_words", "holds_content_word"]

CONTENT_WORD_MIN_LEN = 4
"""Window length in Chinese pieces; shorter pieces count whole (reading 16)."""
KNOWN_RARE_BACKGROUND = 0.8
"""Two-character words of the dictionary that are this rare count even inside a longer piece: pieces run together
where no function word parts them."""
CONTENT_WORD_PATTERNS = (
    r"(?<![a-z0-9_\u00df-\u024f])[a-z\u00df-\u024f]{4,}(?![a-z0-9_\u00df-\u024f])",
    r"(?<![a-z0-9_])(?<!\d\.)v?\d+\.\d+\.\d+(?![a-z0-9_]|\.\d)",
    r"(?<![a-z0-9_])(?=[a-z_]*\d)(?=\d*[a-z_])[a-z0-9_]{2,}(?![a-z0-9_])",
    r"(?<![a-z0-9_])(?=_*[a-z])(?=[a-z]*_)[a-z_]{3,}(?![a-z0-9_])",
    r"(?<![a-z0-9_])[a-z](?:\+\+|#)(?![a-z0-9_+#])",
)
"""Latin terms of at least four letters, versions, and of any length: identifiers with digits or with
underscores, and names such as ``C++`` and ``C#`` (readings 17, 18)."""
_PATTERN = re.compile("|".join(CONTENT_WORD_PATTERNS))
_UNSPACED_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_OTHER_LETTERS = re.compile(r"[^\W\da-z_\u00df-\u024f\u3040-\u30ff\u3400-\u9fff]{2,}")


def content_words(scan: AnchorScan) -> frozenset[str]:
    """Content words of a scanned query, lower case; empty when it has none (the filter is void then)."""
    text = scan.text[:4000].lower()
    words = {match.group() for match in _PATTERN.finditer(text) if match.group() not in ENGLISH_STOP_WORDS}
    words.update(match.group() for match in _OTHER_LETTERS.finditer(text))
    for match in _UNSPACED_RUN.finditer(text):
        for piece in cut_function_words(match.group()):
            if len(piece) > CONTENT_WORD_MIN_LEN:
                words.update(
                    piece[at : at + CONTENT_WORD_MIN_LEN] for at in range(len(piece) - CONTENT_WORD_MIN_LEN + 1)
                )
            elif len(piece) >= 2:
                words.add(piece)
            pairs = (piece[at : at + 2] for at in range(len(piece) - 1))
            words.update(pair for pair in pairs if ngram_background(pair) >= KNOWN_RARE_BACKGROUND)
    return frozenset(words)


def holds_content_word(words: frozenset[str], text: str) -> bool:
    """Whether a block's text holds one of ``words``; True when there are none.

    The text is read as the query was: full-width, traditional and capital letters make no difference.
    """
    if not words:
        return True
    folded = simplify_han(normalise_text(text)).lower()
    return any(word in folded for word in words)
