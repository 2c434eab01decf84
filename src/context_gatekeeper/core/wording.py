"""Repeated wording: question frames, greetings and pasted text that come back word for word.

A sentence pattern ("what did we conclude about ...") returns under many subjects and says
nothing about any of them. Every minimal token run of a user message is remembered by its
hash; an anchor that stands only inside runs that earlier messages hold too, and that is
seldom seen outside of them, is wording. A topic's name occurs in many contexts and escapes.
Source: rule R2 of the selection notes, section 5.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

__all__ = ["WORDING_PARAMS", "RepeatedWording", "WordingParams"]


@dataclass(frozen=True, slots=True)
class WordingParams:
    """Numbers of rule R2."""

    run_length: float = 6.0
    """Length of a run: a Chinese, Japanese or Korean character counts 1, a word 1.5."""
    word_length: float = 1.5
    max_chars: int = 4000
    """Only the first characters of a message are read."""
    share_of_holders: float = 0.6
    """Wording when the run stands in this share of the messages that hold the anchor."""
    factor: float = 0.05
    """What remains of the weight of an anchor that is wording."""
    max_rare_runs: int = 1 << 19
    """Runs seen once are forgotten beyond this number, oldest generation first."""


WORDING_PARAMS = WordingParams()
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")


@dataclass(slots=True)
class RepeatedWording:
    """Token runs of the user messages of one session, with the number of messages that hold each."""

    params: WordingParams = WORDING_PARAMS
    _young: dict[int, int] = field(default_factory=dict)
    _old: dict[int, int] = field(default_factory=dict)

    def add(self, normal_text: str) -> None:
        """Remember the runs of one more user message (normalised). O(first 4000 characters)."""
        young, old = self._young, self._old
        for run in {run for run, _, _ in self._runs(normal_text)}:
            known = young.get(run)
            young[run] = (old.pop(run, 0) if known is None else known) + 1
        if len(young) > self.params.max_rare_runs:
            self._old = {run: count for run, count in (old | young).items() if count > 1}
            self._young = {}

    def wording_terms(
        self, normal_text: str, spans: Iterable[tuple[str, int, int]], holders: Callable[[str], int]
    ) -> frozenset[str]:
        """Terms of a message that are nothing but repeated wording.

        Args:
            normal_text: the message as `scan_anchors` normalised it.
            spans: its terms with their places.
            holders: term -> earlier user messages that hold it.
        """
        covered = self._covered(normal_text)
        if covered is None:
            return frozenset()
        least: dict[str, int] = {}
        for term, start, end in spans:
            inside = min(covered[start:end], default=0) if end <= len(covered) else 0
            least[term] = min(inside, least.get(term, inside))
        share = self.params.share_of_holders
        return frozenset(term for term, count in least.items() if count and count >= share * holders(term))

    def _covered(self, normal_text: str) -> list[int] | None:
        """For each character the largest number of earlier messages that hold a run over it; None without any."""
        covered: list[int] | None = None
        for run, start, end in self._runs(normal_text):
            count = self._young.get(run) or self._old.get(run)
            if count:
                if covered is None:
                    covered = [0] * min(len(normal_text), self.params.max_chars)
                for place in range(start, end):
                    if covered[place] < count:
                        covered[place] = count
        return covered

    def _runs(self, normal_text: str) -> Iterator[tuple[int, int, int]]:
        """(hash, start, end) of every shortest token run of at least the run length."""
        tokens = [
            (match.group().lower(), match.start(), match.end())
            for match in _TOKEN.finditer(normal_text, 0, min(len(normal_text), self.params.max_chars))
        ]
        words = [token for token, _, _ in tokens]
        lengths = [1.0 if "\u3040" <= word[0] <= "\ud7a3" else self.params.word_length for word in words]
        last, total = 0, 0.0
        for first in range(len(tokens)):
            while last < len(tokens) and total < self.params.run_length:
                total += lengths[last]
                last += 1
            if total < self.params.run_length:
                return
            yield hash(tuple(words[first:last])), tokens[first][1], tokens[last - 1][2]
            total -= lengths[first]
