"""How common a word or n-gram is in everyday language, and what Chinese runs are made of.

Tables and patterns are made at first use, so that importing costs nothing. Sources: NOTICE.
"""

from __future__ import annotations

import re
from functools import cache
from math import log

from context_gatekeeper.core.tables.stopwords import (
    ENGLISH_STOP_WORDS,
    FUNCTION_WORDS_ZH,
    PROTECTED_WORDS_ZH,
    TALK_NGRAMS_ZH,
    TALK_WORDS,
)

__all__ = ["ENGLISH_STOP_WORDS", "cut_function_words", "ngram_background", "simplify_han", "word_background"]

LEAST_BACKGROUND = 0.15
"""Weight of the commonest words."""
UNKNOWN_NGRAM = 0.6
"""Weight of an n-gram in no dictionary word: it may be a new word or the seam of two."""
BARE_NUMBER = 0.4
_COMMONEST_RANK = 300
_RARE_RANK = 5000
_NUMBER = re.compile(r"[\d.,]+\Z")
_HAS_HAN = re.compile(r"[\u3400-\u9fff]")


@cache
def _stem_ranks() -> dict[str, int]:
    import snowballstemmer

    from context_gatekeeper.core.tables.english import STEM_RANKS

    ranks = {stem: int(rank) for stem, _, rank in (entry.rpartition(":") for entry in STEM_RANKS.split())}
    stem_word = snowballstemmer.stemmer("english").stemWord
    return ranks | {stem_word(word): 1 for word in TALK_WORDS}


@cache
def _ngram_levels() -> dict[str, float]:
    """Weight of every common n-gram; the rare ones, all of weight 1, are in `_rare_pairs`."""
    from context_gatekeeper.core.tables import chinese

    levels: dict[str, float] = {}
    for name, joined in vars(chinese).items():
        if name.startswith("LEVEL_"):
            _, level, size = name.split("_")
            width = int(size)
            weight = int(level) / 100
            levels.update((joined[at : at + width], weight) for at in range(0, len(joined), width))
    return levels | dict.fromkeys(TALK_NGRAMS_ZH, LEAST_BACKGROUND)


@cache
def _rare_pairs() -> dict[str, str]:
    """First character -> second characters of the known but rare 2-grams."""
    from context_gatekeeper.core.tables.chinese import RARE_PAIRS

    return {group[0]: group[1:] for group in RARE_PAIRS.split()}


@cache
def _function_words() -> re.Pattern[str]:
    """Protected words before function words, longest first."""
    keep, cut = ("|".join(sorted(words, key=len, reverse=True)) for words in (PROTECTED_WORDS_ZH, FUNCTION_WORDS_ZH))
    return re.compile(f"(?P<keep>{keep})|(?P<cut>{cut})")


@cache
def _simplified_forms() -> dict[int, int]:
    """Code point of a traditional character -> that of its simplified form."""
    from context_gatekeeper.core.tables.variants import SIMPLIFIED, TRADITIONAL

    return str.maketrans(TRADITIONAL, SIMPLIFIED)


def word_background(stem: str) -> float:
    """Weight of a stemmed lower-case Latin word, in [0.15, 1]: 1 from rank 5,000 on, or when unlisted.

    Bare numbers count 0.4.
    """
    rank = _stem_ranks().get(stem)
    if rank is None:
        return BARE_NUMBER if _NUMBER.match(stem) else 1.0
    if rank >= _RARE_RANK:
        return 1.0
    return max(LEAST_BACKGROUND, log(max(rank, _COMMONEST_RANK) / _COMMONEST_RANK) / log(_RARE_RANK / _COMMONEST_RANK))


def ngram_background(ngram: str) -> float:
    """Weight of a simplified Han 2- or 3-gram, in [0.15, 1], in steps of 0.05: 1 for a 2-gram of rare dictionary words.

    Not listed: 0.6, for 3-grams at most the weight of either of its 2-grams. Source: rule R1 of the selection notes.
    """
    known = _ngram_levels().get(ngram)
    if known is not None:
        return known
    if len(ngram) == 2 and ngram[1] in _rare_pairs().get(ngram[0], ""):
        return 1.0
    if len(ngram) == 3:
        return min(UNKNOWN_NGRAM, ngram_background(ngram[:2]), ngram_background(ngram[1:]))
    return UNKNOWN_NGRAM


def cut_function_words(run: str) -> list[str]:
    """Content pieces of a run of simplified Han characters, in order; linear in its length.

    At each place the longest protected word is kept, else the longest function word is cut out; pieces are never empty.
    """
    pieces: list[str] = []
    at = 0
    for match in _function_words().finditer(run):
        if match.lastgroup == "keep":
            continue
        if match.start() > at:
            pieces.append(run[at : match.start()])
        at = match.end()
    if at < len(run):
        pieces.append(run[at:])
    return pieces


def simplify_han(text: str) -> str:
    """Traditional characters as simplified ones, one for one; other text is untouched."""
    if text.isascii() or _HAS_HAN.search(text) is None:
        return text
    return text.translate(_simplified_forms())
