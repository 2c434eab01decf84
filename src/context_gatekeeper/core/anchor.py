"""Anchors: the verbatim token strings that identify a subject (DESIGN.md 4.1, SPEC.md 3.1).

A text is scanned once, left to right, into occurrences of *terms*. A term is what the
index stores: the stem of an English word, a whole identifier, version, number, path or
quoted phrase in lower case, a Han or kana 2- or 3-gram, a letter run of any other
alphabet. `extract_anchors` shows anchors as a reader wrote them; the engine works
with `scan_anchors`, which also tells where each term stands.

Everything here is linear in the length of the text: no pattern has nested or
overlapping repeats, and compound words are cut up once, outside the patterns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import islice, takewhile
from math import log
from typing import NamedTuple

import snowballstemmer

from context_gatekeeper.core.background import ENGLISH_STOP_WORDS, cut_function_words, simplify_han
from context_gatekeeper.core.text import normalise_text
from context_gatekeeper.errors import ConfigError

__all__ = [
    "ANCHOR_PARAMS",
    "FALLBACK_CHARS",
    "AnchorKind",
    "AnchorParams",
    "AnchorScan",
    "anchor_kind",
    "extract_anchors",
    "fallback_anchor",
    "inverse_document_frequency",
    "is_above_floor",
    "scan_anchors",
    "shortened",
]


@dataclass(frozen=True, slots=True)
class AnchorParams:
    """Numbers of DESIGN.md 4.1 and the readings that make them usable."""

    idf_floor: float = 1.5
    """N-grams with a lower IDF do not count: they stand in more than 60 % of the blocks."""
    floor_asleep_below_blocks: int = 5
    """With fewer blocks the floor would drop every n-gram that was ever seen."""
    max_phrase_chars: int = 80
    """Longest quoted phrase that still is one anchor."""
    max_compound_chars: int = 200
    """Longer identifiers are cut into parts only: nobody quotes them whole."""


ANCHOR_PARAMS = AnchorParams()
FALLBACK_CHARS = 20
"""A query without any anchor is searched by its first characters (DESIGN.md section 7)."""


class AnchorKind(Enum):
    """What a term is; the exact tier is everything but words and n-grams."""

    WORD = "word"
    IDENTIFIER = "identifier"
    VERSION = "version"
    NUMBER = "number"
    PHRASE = "phrase"
    NGRAM = "ngram"
    LETTERS = "letters"


_LATIN = "A-Za-z0-9_\u00c0-\u024f"
_UNPARTED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7a3"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Letters of writing that has no blanks around its words, or glues endings to what is quoted (Korean)."""
_BESIDE_QUOTE = rf"[^\W{_UNPARTED}]"
"""A word character that no quote stands beside: there the mark is an apostrophe or an inch (reading 41)."""
# Order matters: phrases first (their inside is scanned again), then compounds, then scripts.
_TOKEN = re.compile(
    r"`(?P<code>[^`\n]{1,80})`"
    r"|\u201c(?P<curly>[^\u201c\u201d\n]{1,80})\u201d"
    r"|[\u300c\u300e\u300a](?P<corner>[^\u300a-\u300f\n]{1,80})[\u300b\u300d\u300f]"
    rf"|(?<!{_BESIDE_QUOTE})\"(?P<double>[^\"\n]{{1,80}})\"(?!{_BESIDE_QUOTE})"
    rf"|(?<!{_BESIDE_QUOTE})'(?P<single>[^'\n]{{1,80}})'(?!{_BESIDE_QUOTE})"
    rf"|(?P<compound>[{_LATIN}]+(?:(?:[./\\:@'\u2019+#~-]{{1,3}}|(?<=\d),(?=\d))[{_LATIN}]+)*(?:\+\+|\#)?)"
    r"|(?P<han>[\u3400-\u9fff\uf900-\ufaff\u3005\U00020000-\U0003ffff]+)"
    r"|(?P<kana>[\u3040-\u30ff\u31f0-\u31ff]+)"
    r"|(?P<hangul>[\u1100-\u11ff\uac00-\ud7a3]+)"
    r"|(?P<unspaced>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+)"
    r"|(?P<letters>[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
    r"[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]*)"
)
_PHRASE_GROUPS = frozenset({"code", "curly", "corner", "double", "single"})
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+(?:[-.]?(?:rc|alpha|beta|dev|post|pre)[-.]?\d*)?)\Z", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*\Z")
_PART = re.compile(rf"[{_LATIN}]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z\u00df-\u024f]+|\d+|[A-Z\u00c0-\u00de]")
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+\Z"
)
_HANGUL = re.compile(r"[\u1100-\u11ff\uac00-\ud7a3]+\Z")
_CROSSING_SHARE = 0.2
"""Weight share of an n-gram that reaches into a function word."""
_STEMMER = snowballstemmer.stemmer("english")
_MOST_SPANS = 1 << 16
"""Whoever asks where terms stand reads the beginning of a text only."""
_MOST_KNOWN_CHARS = 64
"""Longer compounds hardly come twice."""
_STEMMED_ENDINGS = frozenset("cdegilmnrsty")
"""Last letters of the suffixes that the stemmer changes; any other word is its own stem."""


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    """Snowball (Porter 2) stem of a lower-case Latin word; words with digits stay whole."""
    if not word or word[-1] not in _STEMMED_ENDINGS or not word.isalpha():
        return word
    return str(_STEMMER.stemWord(word))


@dataclass(frozen=True, slots=True)
class AnchorScan:
    """Where the terms of one text stand."""

    text: str
    """The normalised text that the offsets refer to."""
    spans: tuple[tuple[str, int, int], ...]
    """(term, start, end) in ``text``, in reading order, of the first 65,536; parts of a compound share its span."""
    counts: Mapping[str, int]
    """Term -> occurrences, capped at 255."""
    shares: Mapping[str, float]
    """Term -> weight share in (0, 1]; parts of one compound split one share, the compound keeps a whole.

    The ``v1`` of ``v1.2.3`` weighs as any word (reading 14)."""
    surfaces: Mapping[str, str]
    """Term -> the anchor as first written, lower-cased."""


def shortened(scan: AnchorScan, most_terms: int, most_chars: int) -> AnchorScan:
    """The scan's first terms, for readers that need not know all of a long text."""
    if len(scan.counts) <= most_terms:
        return scan
    first = list(islice(scan.counts, most_terms))
    spans = tuple(takewhile(lambda span: span[1] < most_chars, scan.spans))
    return AnchorScan(
        scan.text[:most_chars],
        spans,
        {term: scan.counts[term] for term in first},
        {term: scan.shares[term] for term in first},
        {term: scan.surfaces[term] for term in first},
    )


class _Term(NamedTuple):
    """One term of a compound."""

    term: str
    surface: str
    share: float


class _Collector:
    """Gathers the terms of one scan; lives only inside `scan_anchors`."""

    __slots__ = ("counts", "shares", "spans", "surfaces")

    def __init__(self) -> None:
        self.spans: list[tuple[str, int, int]] = []
        self.counts: dict[str, int] = {}
        self.shares: dict[str, float] = {}
        self.surfaces: dict[str, str] = {}

    def add(self, term: str, surface: str, start: int, end: int, share: float = 1.0) -> None:
        seen = self.counts.get(term)
        if len(self.spans) < _MOST_SPANS:
            self.spans.append((term, start, end))
        if seen is None:
            self.counts[term] = 1
            self.shares[term] = share
            self.surfaces[term] = surface
            return
        if seen < 255:
            self.counts[term] = seen + 1
        if share > self.shares[term]:
            self.shares[term] = share

    def add_all(self, terms: Iterable[_Term], start: int, end: int) -> None:
        """Terms that share one span."""
        for term, surface, share in terms:
            self.add(term, surface, start, end, share)

    def add_ngrams(self, run: str, start: int) -> None:
        """All 2- and 3-grams of a run without spaces.

        Those that reach into a function word (``的``, ``怎么`` ...) say little: they get a small share.
        """
        inside = _content_ends(run)
        length = len(run)
        counts, shares, surfaces, spans = self.counts, self.shares, self.surfaces, self.spans
        for offset in range(length - 1):
            room = inside[offset] - offset
            for size in (2, 3) if offset + 3 <= length else (2,):
                ngram = run[offset : offset + size]
                share = 1.0 if room >= size else _CROSSING_SHARE
                if ngram in counts:
                    self.add(ngram, ngram, start + offset, start + offset + size, share)
                else:  # `add` without the call: a long text brings hundreds of thousands
                    counts[ngram] = 1
                    shares[ngram] = share
                    surfaces[ngram] = ngram
                    if len(spans) < _MOST_SPANS:
                        spans.append((ngram, start + offset, start + offset + size))


def scan_anchors(text: str, params: AnchorParams = ANCHOR_PARAMS) -> AnchorScan:
    """Scan ``text`` (any ``str``) into its terms. O(len(text)).

    Text is normalised first (`core.text.normalise_text`) and traditional Han
    characters are read as simplified ones, so that both spellings share anchors.
    Source: DESIGN.md 4.1, SPEC.md 3.1, readings 14-18 and 41 of the selection notes.
    """
    normal = simplify_han(normalise_text(text))
    found = _Collector()
    _scan_region(normal, 0, len(normal), found, params)
    return AnchorScan(normal, tuple(found.spans), found.counts, found.shares, found.surfaces)


def _content_ends(run: str) -> list[int]:
    """For each place of a run the end of the content piece it stands in; 0 inside function words."""
    ends = [0] * len(run)
    at = 0
    for piece in cut_function_words(run):
        at = run.index(piece, at)
        ends[at : at + len(piece)] = [at + len(piece)] * len(piece)
        at += len(piece)
    return ends


def _scan_region(text: str, begin: int, stop: int, found: _Collector, params: AnchorParams, depth: int = 0) -> None:
    for match in _TOKEN.finditer(text, begin, stop):
        group = match.lastgroup or ""
        start, end = match.span(group)
        token = text[start:end]
        if group == "compound":
            terms_of = _known_compound_terms if len(token) <= _MOST_KNOWN_CHARS else _compound_terms
            found.add_all(terms_of(token, params.max_compound_chars), start, end)
        elif group in _PHRASE_GROUPS:
            if depth == 0:
                _add_phrase(" ".join(token.lower().split()), start, end, found)
                _scan_region(text, start, end, found, params, depth=1)
        elif group in ("han", "kana", "unspaced"):
            found.add_ngrams(token, start)
        elif group == "hangul":
            _add_hangul(token, start, end, found)
        elif len(token) > 1:
            word = token.casefold()
            found.add(word, word, start, end)


def _add_phrase(phrase: str, start: int, end: int, found: _Collector) -> None:
    if _is_phrase(phrase) and any(char.isalnum() for char in phrase):
        found.add(phrase, phrase, start, end)


def _add_hangul(token: str, start: int, end: int, found: _Collector) -> None:
    """A word and, because endings are glued to it, its 2-grams."""
    found.add(token, token, start, end)
    if len(token) > 2:
        for offset in range(len(token) - 1):
            pair = token[offset : offset + 2]
            found.add(pair, pair, start, end)


def _is_phrase(phrase: str) -> bool:
    """A quoted single word or short Han run is already an anchor; a longer text is one of its own."""
    return not phrase.isalnum() or (len(phrase) > 3 and not phrase.isascii())


def _compound_terms(token: str, most_chars: int) -> tuple[_Term, ...]:
    """Terms of a Latin word, or of words and digits glued by ``. / : _ -`` and the like."""
    lowered = token.lower().replace("\u2019", "'")
    if token.isalpha() and (token.islower() or token.istitle() or token.isupper()):
        return tuple(_word_terms(lowered))
    if version := _VERSION.match(lowered):
        whole = _Term(version.group(1), lowered, 1.0)
        major = lowered.split(".")[0]
        return (whole, _Term(major, major, 1.0)) if lowered[0] == "v" else (whole,)
    if _NUMBER.match(lowered):
        return (_Term(lowered, lowered, 1.0),)
    if "'" in lowered and (stripped := _strip_apostrophe(lowered)) is not None:
        return tuple(_word_terms(stripped))
    return tuple(_identifier_terms(token, lowered, most_chars))


_known_compound_terms = lru_cache(maxsize=1 << 15)(_compound_terms)
"""The same for compounds that come again."""


def _word_terms(word: str, share: float = 1.0) -> Iterator[_Term]:
    """One Latin word or number; English stop words are no anchors."""
    if word.isdigit():
        yield _Term(word, word, share)
    elif word not in ENGLISH_STOP_WORDS and (len(word) > 1 or share < 1.0):
        yield _Term(_stem(word), word, share)


def _identifier_terms(token: str, lowered: str, most_chars: int) -> Iterator[_Term]:
    """The whole compound, and its parts sharing one weight."""
    parts = [part for piece in _PART.findall(token) for part in _split_humps(piece)]
    is_whole = (len(token) <= most_chars and not lowered.isalpha()) or len(parts) > 1
    if is_whole and len(token) <= most_chars and lowered not in ENGLISH_STOP_WORDS:
        yield _Term(_stem(lowered), lowered, 1.0)
    if len(parts) == 1 and is_whole and parts[0].lower() == lowered:
        return
    for part in parts:
        if len(part) > 1:
            yield from _word_terms(part.lower(), 1.0 / len(parts))


def _strip_apostrophe(lowered: str) -> str | None:
    """``don't`` and ``it's`` as one word: without the ending; None when it is no such form."""
    if lowered in ENGLISH_STOP_WORDS:
        return lowered
    head, _, tail = lowered.partition("'")
    if tail in ("s", "re", "ve", "ll", "d", "m", "t"):
        return head
    return None


def _split_humps(piece: str) -> list[str]:
    """camelCase, PascalCase, snake_case and letter-digit borders; ``PostgreSQL`` -> postgre, SQL."""
    parts: list[str] = []
    for word in piece.split("_"):
        if not word:
            continue
        if word.islower() or word.isdigit() or (word.isupper() and word.isalpha()):
            parts.append(word)
        else:
            parts.extend(_HUMP.findall(word) if not _is_short_code(word) else [word])
    return parts


def _is_short_code(word: str) -> bool:
    """Names such as ``k8s``, ``S3`` or ``v2`` mean something only whole."""
    return len(word) <= 4 and any(char.isdigit() for char in word)


@lru_cache(maxsize=1 << 17)
def anchor_kind(term: str) -> AnchorKind:
    """Kind of a term, read off the term itself so that an index need not keep it."""
    if term.isascii():
        if term.isalpha():
            return AnchorKind.WORD
        if _NUMBER.match(term):
            return AnchorKind.VERSION if term.count(".") > 1 else AnchorKind.NUMBER
        if " " in term:
            return AnchorKind.PHRASE
        return AnchorKind.VERSION if _VERSION.match(term) else AnchorKind.IDENTIFIER
    if _UNSPACED.match(term):
        return AnchorKind.NGRAM if len(term) <= 3 else AnchorKind.PHRASE
    if _HANGUL.match(term):
        return AnchorKind.NGRAM if len(term) == 2 else AnchorKind.LETTERS
    if term.isalpha():
        return AnchorKind.LETTERS
    return AnchorKind.PHRASE if " " in term else AnchorKind.IDENTIFIER


def inverse_document_frequency(document_frequency: int, block_count: int) -> float:
    """``log((N + 1) / (df + 1)) + 1``, natural logarithm; > 0 for 0 <= df <= N (DESIGN.md 4.1)."""
    return log((block_count + 1) / (document_frequency + 1)) + 1.0


def is_above_floor(kind: AnchorKind, idf: float, block_count: int, params: AnchorParams = ANCHOR_PARAMS) -> bool:
    """Whether a term may count: only n-grams have a floor, and it sleeps in short chats (readings 2, 3)."""
    if kind is not AnchorKind.NGRAM or block_count < params.floor_asleep_below_blocks:
        return True
    return idf >= params.idf_floor


def fallback_anchor(query: str) -> str:
    """The first 20 characters, case-folded and stripped, of a query without anchors; may be empty."""
    return normalise_text(query).strip()[:FALLBACK_CHARS].casefold().strip()


def extract_anchors(
    text: str,
    document_frequency: Callable[[str], int] | None = None,
    block_count: int = 0,
    params: AnchorParams = ANCHOR_PARAMS,
) -> dict[str, float]:
    """Anchors of ``text`` with their IDF, as DESIGN.md 4.1 shows them.

    Args:
        text: any text.
        document_frequency: term -> blocks that hold it; without one every anchor is new.
        block_count: blocks in the corpus, >= 0.
        params: floor and lengths.

    Returns:
        ``{anchor: IDF}``, anchors in lower case as written, in reading order; n-grams under the floor
        are left out. Two spellings with one stem are one anchor. Empty for a text without anchors.

    Raises:
        ConfigError: ``text`` is no str.
    """
    if not isinstance(text, str):
        raise ConfigError("text", f"it is a {type(text).__name__}, not a text", "pass a str")
    scan = scan_anchors(text, params)
    found: dict[str, float] = {}
    for term in scan.counts:
        frequency = document_frequency(term) if document_frequency is not None else 0
        idf = inverse_document_frequency(frequency, block_count)
        if is_above_floor(anchor_kind(term), idf, block_count, params):
            found[scan.surfaces[term]] = idf
    return found
