"""Token estimates without a vocabulary (DESIGN.md 4.5 and the notes on tokens).

`estimate_tokens` is a fitted linear model over what one regular-expression pass counts, with
a row of coefficients per family of tokenizers. `documented_tokens` is the documents'
``len * 1.5``. `Calibration` corrects either by what a provider really charged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from context_gatekeeper.core.tables import variants
from context_gatekeeper.core.token_rows import FAMILIES, TokenRow
from context_gatekeeper.errors import ConfigError

__all__ = [
    "DOCUMENTED_FACTOR",
    "FAMILIES",
    "MESSAGE_TOKENS",
    "TOOL_CALL_TOKENS",
    "Calibration",
    "count_features",
    "documented_tokens",
    "estimate_tokens",
    "image_tokens",
    "tool_definition_tokens",
]

DOCUMENTED_FACTOR = 1.5
"""Tokens a character of DESIGN.md 4.5; two to seven times too many."""
MESSAGE_TOKENS = 4
"""Framing of one chat message."""
TOOL_CALL_TOKENS = 8
"""Framing of one tool call."""
_CALIBRATION_LEAST, _CALIBRATION_MOST = 0.7, 1.8
_CALIBRATION_STEP = 0.2
"""Weight of the newest figure in the moving average."""
_PIXELS_PER_TOKEN = 750.0
_MOST_IMAGE_TOKENS = 4_800
"""Images are scaled down by the providers before they are counted."""
_DEFAULT_IMAGE_TOKENS = 1_600

_PIECE = re.compile(
    r"(?P<blob>[A-Za-z0-9+/=_-]{41,})"
    r"|(?P<word>[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+)"
    r"|(?P<digits>[0-9]+)"
    r"|(?P<space>[ \t]+)"
    r"|(?P<newline>\r?\n[\r\n]*)"
    r"|(?P<han>[\u3400-\u9fff\uf900-\ufaff]+)"
    r"|(?P<kana>[\u3040-\u30ff]+)"
    r"|(?P<hangul>[\uac00-\ud7a3]+)"
    r"|(?P<cyrillic>[\u0400-\u04ff]+)"
    r"|(?P<combining>[\u0300-\u036f]+)"
    r"|(?P<cjk>[\u3000-\u303f\uff00-\uffef]+)"
    r"|(?P<punct>[!-/:-@\[-`{-~]+)"
    r"|(?P<other>[^\x00-\x7f])"
)
_HUMP = re.compile(r"[a-z\u00df-\u00ff][A-Z]")
_FEATURES = TokenRow.__slots__
_TRADITIONAL = frozenset(variants.TRADITIONAL)
_COMMON_HAN = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实"
    "日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员"
    "解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象"
    "完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运"
)
"""The commonest characters; most others cost more than one token in places."""


def count_features(text: str) -> dict[str, float]:
    """What the estimate sums up, by feature name (`TokenRow`); one pass over ``text``."""
    counts = dict.fromkeys(_FEATURES, 0.0)
    for match in _PIECE.finditer(text):
        kind = str(match.lastgroup)
        piece = match.group()
        if kind == "word":
            start = match.start()
            _count_word(piece, counts, is_glued=start > 0 and not text[start - 1].isspace())
        elif kind == "digits":
            counts["dig"] += -(-len(piece) // 3)
            start = match.start()
            counts["spdig"] += start > 0 and text[start - 1] in " \t"
        elif kind == "han":
            counts["han"] += len(piece)
            counts["hanrare"] += sum(char not in _COMMON_HAN for char in piece)
            counts["hantrad"] += sum(char in _TRADITIONAL for char in piece)
        elif kind == "punct":
            counts["pr"] += 1
            counts["pe"] += len(piece) - 1
        elif kind == "blob":
            _count_blob(piece, counts)
        elif kind in _BY_LENGTH:
            counts[_BY_LENGTH[kind]] += len(piece)
        else:
            counts[_BY_RUN[kind]] += kind != "space" or len(piece) > 1
    return counts


_BY_LENGTH = {"kana": "kana", "hangul": "hangul", "cyrillic": "cyr", "combining": "latin", "cjk": "cjkp"}
_BY_RUN = {"space": "ind", "newline": "nl", "other": "oth"}


def _count_word(piece: str, counts: dict[str, float], *, is_glued: bool) -> None:
    length = len(piece)
    counts["word"] += 1
    counts["w8"] += max(0, min(length, 12) - 7)
    counts["w13"] += max(0, length - 12)
    if is_glued:
        counts["gluedlong"] += max(0, length - 5)
    if not piece.islower():
        counts["hump"] += max(0.0, (length - 2) / 2) if piece.isupper() else float(len(_HUMP.findall(piece)))
    if not piece.isascii():
        counts["latin"] += sum(char > "\x7f" for char in piece)


_WORDLIKE = re.compile(r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9]+")


def _count_blob(piece: str, counts: dict[str, float]) -> None:
    """A run of more than 40 characters: base64 or hex unless it reads like words (paths, names, rulers)."""
    parts = _WORDLIKE.findall(piece)
    if len(parts) > len(piece) / 4 and any(char.isdigit() for char in piece):
        counts["blob"] += len(piece) / 1.5
        return
    for part in parts:
        if part.isalpha():
            _count_word(part, counts, is_glued=True)
        elif part.isdigit():
            counts["dig"] += -(-len(part) // 3)
        else:
            counts["pr"] += 1
            counts["pe"] += len(part) - 1


def estimate_tokens(text: str, family: str = "o200k") -> int:
    """Estimated tokens of ``text``, >= 0; 0 only for the empty text. Linear; never raises for a ``str``.

    Raises ConfigError for an unknown family.
    """
    row = FAMILIES.get(family)
    if row is None:
        raise ConfigError(
            f"token family {family!r}", "there are no coefficients for it", f"use one of {', '.join(FAMILIES)}"
        )
    if not text:
        return 0
    total: float = sum(getattr(row, name) * count for name, count in count_features(text).items() if count)
    return max(1, ceil(total))


def documented_tokens(text: str) -> int:
    """``len(text) * 1.5``, rounded up (DESIGN.md 4.5)."""
    return ceil(len(text) * DOCUMENTED_FACTOR)


def tool_definition_tokens(tools: Sequence[Mapping[str, Any]], family: str = "o200k") -> int:
    """Tokens of tool definitions, counted as their JSON text."""
    return estimate_tokens(json.dumps(list(tools), ensure_ascii=False, separators=(",", ":")), family) if tools else 0


def image_tokens(width: int | None = None, height: int | None = None) -> int:
    """Tokens of an image by its pixels, 1 to 4,800; a fixed allowance when its size is unknown."""
    if width is None or height is None:
        return _DEFAULT_IMAGE_TOKENS
    return min(_MOST_IMAGE_TOKENS, max(1, ceil(width * height / _PIXELS_PER_TOKEN)))


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
        factor = ratio if not self.samples else self.factor + _CALIBRATION_STEP * (ratio - self.factor)
        return replace(self, factor=min(_CALIBRATION_MOST, max(_CALIBRATION_LEAST, factor)), samples=self.samples + 1)

    def apply(self, estimated_tokens: int) -> int:
        """Corrected estimate, rounded up."""
        return ceil(estimated_tokens * self.factor)
