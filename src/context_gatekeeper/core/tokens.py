"""Token estimates without a vocabulary (DESIGN.md 4.5, reading 33).

`estimate_tokens` is a fitted linear model with a row of coefficients per family of tokenizers. For
the families in ``PIECE_ROWS`` it cuts a text into pieces as their tokenizers do before they merge
bytes, and adds up what a piece of its kind costs: how likely a word breaks is read off its letter
pairs, Han characters and the commonest pieces have costs of their own. The other families
(``RUN_ROWS``) count runs of characters of one class. `documented_tokens` is the documents'
``len * 1.5``. `Calibration` corrects either by what a provider really charged.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Any

from context_gatekeeper.core.tables import token_pieces
from context_gatekeeper.core.token_rows import PIECE_ROWS, RUN_ROWS, PieceRow, RunRow
from context_gatekeeper.errors import ConfigError

__all__ = [
    "DOCUMENTED_FACTOR",
    "FAMILIES",
    "MESSAGE_TOKENS",
    "TOOL_CALL_TOKENS",
    "Calibration",
    "apply_calibration",
    "count_pieces",
    "count_runs",
    "documented_tokens",
    "estimate_tokens",
    "image_tokens",
    "split_pieces",
    "tool_definition_tokens",
]

FAMILIES = (*PIECE_ROWS, *RUN_ROWS)
"""Names of the families of tokenizers, the default first."""
DOCUMENTED_FACTOR = 1.5
"""Tokens a character of DESIGN.md 4.5; two to seven times too many."""
MESSAGE_TOKENS = 4
"""Framing of one chat message."""
TOOL_CALL_TOKENS = 8
"""Framing of one tool call."""


def estimate_tokens(text: str, family: str = "o200k") -> int:
    """Estimated tokens of ``text``; 0 only for the empty text, never an error for a ``str``. O(len(text)).

    Raises ConfigError for an unknown family.
    """
    if family in PIECE_ROWS:
        total = _piece_total(text, family)
    elif family in RUN_ROWS:
        total = _add_up(RUN_ROWS[family], count_runs(text))
    else:
        raise ConfigError(
            f"token family {family!r}", "there are no coefficients for it", f"use one of {', '.join(FAMILIES)}"
        )
    return max(1, round(total)) if text else 0


def _piece_total(text: str, family: str) -> float:
    """The sum over `count_pieces`, piece by piece: what most pieces cost is known."""
    cost_of, known_cost_of = _PIECE_COSTS[family]
    total = 0.0
    for piece, times in Counter(split_pieces(text)).items():
        total += times * (known_cost_of(piece) if len(piece) <= _CACHED_PIECE_CHARS else cost_of(piece))
    if abs(total % 1.0 - 0.5) < _ROUNDING_ERROR:  # the order of the sum must not decide which way it is rounded
        return _add_up(PIECE_ROWS[family], count_pieces(text))
    return total


def _add_up(row: PieceRow | RunRow, counts: Mapping[str, float]) -> float:
    return float(sum(getattr(row, name) * count for name, count in counts.items() if count))


def documented_tokens(text: str) -> int:
    """``len(text) * 1.5``, rounded up (DESIGN.md 4.5)."""
    return ceil(len(text) * DOCUMENTED_FACTOR)


# -- pieces: o200k, cl100k --------------------------------------------------------------------

# The published splitting pattern of o200k_base, with the character classes that `re` has: letters
# outside ASCII count as both cases, as caseless letters do there.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u064b-\u065f\u0670\u0900-\u0903"
    "\u093a-\u093c\u093e-\u094f\u0981-\u0983\u09bc\u09be-\u09cd\u0b82\u0bbe-\u0bcd\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u3099\u309a"
)
_CONTRACTION = r"(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?"


def _piece_pattern(lead: str, upper: str, lower: str, mark: str) -> re.Pattern[str]:
    """The splitting pattern by what stands in front of a word, its capitals, its small letters, and marks."""
    return re.compile(
        rf"{lead}?{upper}*{lower}+{_CONTRACTION}|{lead}?{upper}+{lower}*{_CONTRACTION}|[0-9]{{1,3}}"
        rf"| ?{mark}+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+|.",
        re.DOTALL,
    )


_LEAD = r"(?:[^\w\r\n]|_)"
_MARK = r"(?:[^\s\w]|_)"
_PIECE = _piece_pattern(_LEAD, rf"(?:[A-Z{_MARKS}]|[^\W\d_a-zA-Z])", rf"(?:[a-z{_MARKS}]|[^\W\d_a-zA-Z])", _MARK)
# The same for most texts, with classes that are matched several times as fast.
_UNMARKED_PIECE = _piece_pattern(_LEAD, r"[^\W\d_a-z]", r"[^\W\d_A-Z]", _MARK)
_ASCII_PIECE = _piece_pattern(r"[^A-Za-z0-9\r\n]", "[A-Z]", "[a-z]", r"[^\sA-Za-z0-9]")
_ANY_MARK = re.compile(f"[{_MARKS}]")
_SCRIPT_RUN = re.compile(
    "(?P<latin>[a-zA-Z\u00aa-\u024f\u1e00-\u1eff]+)"
    "|(?P<han>[\u2e80-\u2fdf\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)"
    "|(?P<hiragana>[\u3040-\u309f]+)|(?P<katakana>[\u30a0-\u30ff\uff66-\uff9f]+)"
    "|(?P<hangul>[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]+)|(?P<cyrillic>[\u0400-\u052f]+)"
    "|(?P<greek>[\u0370-\u03ff\u1f00-\u1fff]+)|(?P<arabic>[\u0600-\u06ff\u0750-\u077f]+)"
    "|(?P<hebrew>[\u0590-\u05ff]+)|(?P<thai>[\u0e00-\u0e7f]+)|(?P<indic>[\u0900-\u0dff]+)"
    "|(?P<caucasian>[\u10a0-\u10ff\u0530-\u058f]+)|(?P<letter>[^\\W\\d_]+)"
    "|(?P<cjk_mark>[\u3000-\u3004\u3008-\u303f\uff00-\uff65\u2018-\u201f\u2026\u2013\u2014\u00b7]+)"
    "|(?P<box>[\u2500-\u25ff]+)|(?P<emoji>[\U00010000-\U0010ffff]+)|(?P<symbol>[^\x00-\x7f])|(?P<ascii>[\x00-\x7f]+)"
)
_LONGEST_BLANK = 128
"""Blanks in one token at most."""
_LONG_WORD_LETTERS = 8
_LONG_UPPER_LETTERS = 3
_ACCENTED_WORD_LETTERS = 5
"""Up to this length words with accents (Vietnamese, French) are mostly one token."""
_ROUNDING_ERROR = 1e-6
_CACHED_PIECE_CHARS = 32
"""Longer pieces hardly come twice."""
_OUTSIDE_ASCII = re.compile(r"[^\x00-\x7f]")
_PIECE_FEATURES = tuple(PieceRow.__slots__)


def split_pieces(text: str) -> list[str]:
    """The pieces into which o200k's tokenizer cuts ``text`` before it merges bytes; they join to ``text``."""
    if text.isascii():
        return _ASCII_PIECE.findall(text)
    return (_UNMARKED_PIECE if _ANY_MARK.search(text) is None else _PIECE).findall(text)


def count_pieces(text: str) -> dict[str, float]:
    """What the estimate of the ``PIECE_ROWS`` sums up, by field of `PieceRow`. O(len(text))."""
    counts = dict.fromkeys(_PIECE_FEATURES, 0.0)
    for piece, times in Counter(split_pieces(text)).items():
        _count_piece(piece, times, counts)
    return counts


def _count_piece(piece: str, times: int, counts: dict[str, float]) -> None:
    known = token_pieces.KNOWN_PIECES.get(piece)
    if known is not None:
        counts["known"] += known * times
    elif piece.isascii():
        for name, count in _ascii_counts(piece):
            counts[name] += count * times
    else:
        _count_other_piece(piece, times, counts)


def _ascii_counts(piece: str) -> Iterable[tuple[str, float]]:
    """What one ASCII piece adds: (field of `PieceRow`, count)."""
    counts: defaultdict[str, float] = defaultdict(float)
    first = piece[0]
    word = piece if first.isalpha() else piece[1:]
    if word[:1].isalpha():
        apostrophe = word.find("'")
        if apostrophe > 0:
            word = word[:apostrophe]
            counts["contractions"] += 1
        _count_word(word, "glued" if first.isalpha() else "spaced" if first == " " else "marked", 1, counts)
    elif first.isdigit():
        counts["digits"] += 1
    elif piece.isspace():
        kind = "lines" if "\n" in piece or "\r" in piece else "blanks"
        counts[kind] += -(-len(piece) // _LONGEST_BLANK)
    else:
        counts["marks"] += 1
        marks = piece.strip()
        if len(marks) > 1:
            changes = sum(map(str.__ne__, marks, marks[1:]))
            counts["mark_changes"] += max(0, changes - 1)
            counts["mark_repeats"] += len(marks) - 1 - max(1, changes) if len(marks) > 2 else 0
    return counts.items()


def _count_word(word: str, kind: str, times: int, counts: dict[str, float]) -> None:
    """A run of Latin letters by what stands before it: ``spaced``, ``glued`` (nothing), ``marked`` (a mark)."""
    letters = len(word)
    breaks = times * _likely_breaks(word.lower())
    counts[f"{kind}_words"] += times
    if letters > 1 and word.isupper():
        counts["upper_words"] += times
        counts["upper_breaks"] += breaks
        counts["upper_letters"] += times * max(0, letters - _LONG_UPPER_LETTERS)
        return
    counts[f"{kind}_breaks"] += breaks
    counts[f"{kind}_letters"] += times * max(0, letters - _LONG_WORD_LETTERS)
    if word[0].isupper():
        counts["capitals"] += times


def _likely_breaks(word: str) -> float:
    """Expected token borders inside a lower-case word, by its letter pairs."""
    if not word.isascii():
        if len(word) <= _ACCENTED_WORD_LETTERS:
            return 0.0
        word = _OUTSIDE_ASCII.sub(token_pieces.OTHER_LETTER, word)
    rates = token_pieces.PAIR_BREAKS
    return sum([rates[first + second] for first, second in pairwise(word)])


def _count_other_piece(piece: str, times: int, counts: dict[str, float]) -> None:
    """A piece with characters outside ASCII, script by script."""
    runs = 0
    only_latin = True
    for run in _SCRIPT_RUN.finditer(piece):
        kind = str(run.lastgroup)
        text = run.group()
        if kind == "latin":
            before = piece[run.start() - 1] if run.start() else "a"
            counts["accents"] += times * len(_OUTSIDE_ASCII.findall(text))
            place = "glued" if before.isalpha() else "spaced" if before == " " else "marked"
            _count_word(text, place, times, counts)
            runs += 1
        elif kind == "ascii":
            counts["marks"] += times if text.strip() and not piece.strip()[-1].isalpha() else 0
        else:
            only_latin = False
            runs += kind not in ("cjk_mark", "box", "emoji", "symbol")
            _count_script_run(kind, text, times, counts)
    counts["other_pieces"] += times * (not only_latin)
    counts["script_switches"] += times * max(0, runs - 1)


def _count_script_run(kind: str, text: str, times: int, counts: dict[str, float]) -> None:
    if kind == "han":
        costs = token_pieces.HAN_TOKENS
        counts["han_runs"] += times
        counts["han"] += times * sum([costs.get(char, token_pieces.OTHER_HAN_TOKENS) for char in text])
    elif kind == "cyrillic":
        counts["cyrillic"] += times * len(text)
        counts["cyrillic_runs"] += times
        if len(text) > 1 and text.isupper():
            counts["cyrillic_upper"] += times * len(text)
    elif kind == "cjk_mark":
        counts["cjk_marks"] += times
        counts["cjk_marks_more"] += times * (len(text) - 1)
    else:
        counts[kind] += times * len(text)


def _piece_costs(row: PieceRow) -> tuple[Callable[[str], float], Callable[[str], float]]:
    """Tokens of a piece by one row; and the same for pieces that come again, words."""
    weights = {name: getattr(row, name) for name in _PIECE_FEATURES}

    def cost(piece: str) -> float:
        counts: defaultdict[str, float] = defaultdict(float)
        _count_piece(piece, 1, counts)
        return float(sum([weights[name] * count for name, count in counts.items()]))

    return cost, lru_cache(maxsize=1 << 15)(cost)


_PIECE_COSTS = {family: _piece_costs(row) for family, row in PIECE_ROWS.items()}


# -- runs: families known by published figures only -------------------------------------------

_RUN = re.compile(
    r"(?P<blob>[A-Za-z0-9+/=_-]{41,})"
    r"|(?P<word>[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+)"
    r"|(?P<digits>[0-9]+)"
    r"|(?P<space>[ \t]+)"
    r"|(?P<newline>\r?\n[\r\n]*)"
    r"|(?P<han>[\u3400-\u9fff\uf900-\ufaff]+)"
    r"|(?P<kana>[\u3040-\u30ff]+)"
    r"|(?P<hangul>[\uac00-\ud7a3]+)"
    r"|(?P<cyr>[\u0400-\u04ff]+)"
    r"|(?P<latin>[\u0300-\u036f]+)"
    r"|(?P<cjkp>[\u3000-\u303f\uff00-\uffef]+)"
    r"|(?P<punct>[!-/:-@\[-`{-~]+)"
    r"|(?P<oth>[^\x00-\x7f])"
)
_BLOB_PART = re.compile(r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9]+")
_BLOB_CHARS_PER_TOKEN = 1.5
_HUMP = re.compile(r"[a-z\u00df-\u00ff][A-Z]")
_RUN_FEATURES = tuple(RunRow.__slots__)


def count_runs(text: str) -> dict[str, float]:
    """What the estimate of the ``RUN_ROWS`` sums up, by field of `RunRow`. O(len(text))."""
    counts = dict.fromkeys(_RUN_FEATURES, 0.0)
    space_end = 0
    for run in _RUN.finditer(text):
        kind, piece = str(run.lastgroup), run.group()
        if kind == "space":
            counts["ind"] += len(piece) > 1
            space_end = run.end()
        elif kind == "blob":
            _count_blob(piece, counts)
        else:
            counts["spdig"] += kind == "digits" and 0 < space_end == run.start()
            _count_run(kind, piece, counts)
    return counts


def _count_run(kind: str, piece: str, counts: dict[str, float]) -> None:
    length = len(piece)
    if kind == "word":
        counts["word"] += 1
        counts["w8"] += max(0, min(length, 12) - 7)
        counts["w13"] += max(0, length - 12)
        counts["hump"] += max(0.0, (length - 2) / 2) if piece.isupper() else len(_HUMP.findall(piece))
        counts["latin"] += len(_OUTSIDE_ASCII.findall(piece))
    elif kind == "digits":
        counts["dig"] += -(-length // 3)
    elif kind == "punct":
        counts["pr"] += 1
        counts["pe"] += length - 1
    elif kind == "newline":
        counts["nl"] += 1
    else:
        counts[kind] += length


def _count_blob(piece: str, counts: dict[str, float]) -> None:
    """A run of more than 40 characters: base64 or hex unless it reads like words (paths, names, rulers)."""
    parts = _BLOB_PART.findall(piece)
    if len(parts) > len(piece) / 4 and any(char.isdigit() for char in piece):
        counts["blob"] += len(piece) / _BLOB_CHARS_PER_TOKEN
        return
    for part in parts:
        _count_run("word" if part.isalpha() else "digits" if part.isdigit() else "punct", part, counts)


# -- what is no text, and correction by real figures ------------------------------------------

_PIXELS_PER_TOKEN = 750.0
_MOST_IMAGE_TOKENS = 4_800
"""Images are scaled down by the providers before they are counted."""
_UNKNOWN_IMAGE_TOKENS = 1_600


def image_tokens(width: int | None = None, height: int | None = None) -> int:
    """Tokens of an image by its pixels, 1 to 4,800; a fixed allowance of 1,600 when its size is unknown.

    Never counted by the length of its base64 text.
    """
    if width is None or height is None:
        return _UNKNOWN_IMAGE_TOKENS
    return min(_MOST_IMAGE_TOKENS, max(1, ceil(width * height / _PIXELS_PER_TOKEN)))


def tool_definition_tokens(tools: Sequence[Mapping[str, Any]], family: str = "o200k") -> int:
    """Tokens of tool definitions, counted as their JSON text; 0 for none."""
    return estimate_tokens(json.dumps(list(tools), ensure_ascii=False, separators=(",", ":")), family) if tools else 0


_LEAST_FACTOR, _MOST_FACTOR = 0.7, 1.8
_NEWEST_SHARE = 0.2
"""Weight of the newest figure in the moving average."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Moving average of real tokens over estimated tokens for one (provider, model)."""

    factor: float = 1.0
    """In [0.7, 1.8]."""
    samples: int = 0

    def updated(self, real_tokens: int, estimated_tokens: int) -> Calibration:
        """With one more usage figure; figures of no tokens are ignored."""
        if real_tokens <= 0 or estimated_tokens <= 0:
            return self
        ratio = real_tokens / estimated_tokens
        factor = ratio if not self.samples else self.factor + _NEWEST_SHARE * (ratio - self.factor)
        return replace(self, factor=min(_MOST_FACTOR, max(_LEAST_FACTOR, factor)), samples=self.samples + 1)

    def apply(self, estimated_tokens: int) -> int:
        """Corrected estimate, rounded up."""
        return ceil(estimated_tokens * self.factor)


def apply_calibration(estimated_tokens: int, calibration: Calibration | None = None) -> int:
    """The estimate as ``calibration`` corrects it, rounded up; as it is without one."""
    return estimated_tokens if calibration is None else calibration.apply(estimated_tokens)
