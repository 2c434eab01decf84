"""Seeded conversations of any size, with the word statistics of real chat.

A turn has about 28 words: every other word is a function word (no anchor), the rest is
drawn from a Zipf-Mandelbrot law over a chat vocabulary whose head stands in some 5-10 %
of the turns, as the common words of recorded chats do, and one content word in eight comes
from a long flat tail of identifiers, versions and numbers. A turn names one of twelve
speakers more often than not, so that names stand in 3-20 % of the turns. With a data file
the two sides of a turn are halves of two real texts instead, with the same share of words
replaced from the tail.
"""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random

__all__ = ["Corpus", "SyntheticTurn", "load_texts"]

_CONSONANTS = "bdfgklmnprstvz"
_VOWELS = "aeiou"
_FUNCTION_WORDS = (
    "the a and of to in is was it that for on with as at by this be are have not you i we he she they but or if so"
).split()
_SPEAKERS = ("Carolina Melvin Joanna Nathan Andrea Tobias Evelyn Samuel Deborah Jolene Gilbert Marianne").split()
_VOCABULARY = 20_000
_ZIPF_SHIFT = 20.0
"""Mandelbrot's shift: flattens the head so that the commonest content word is in about 8 % of the turns."""
_TAIL_VOCABULARY = 400_000
_TAIL_SHARE = 0.12
_USER_CONTENT_WORDS = (3, 7)
_ASSISTANT_CONTENT_WORDS = (5, 11)
_SPEAKER_SHARE = 0.6
_QUERY_RARE_TERMS = (3, 4)


@dataclass(frozen=True, slots=True)
class SyntheticTurn:
    """One turn of a corpus."""

    user_text: str
    assistant_text: str


def load_texts(path: Path) -> tuple[list[str], list[str]]:
    """Texts of the turns, and the questions, of a JSON Lines conversation file.

    Raises:
        ValueError: the file holds no texts.
    """
    texts: list[str] = []
    questions: list[str] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.strip():
                continue
            record = json.loads(line)
            for turn in record.get("turns", ()):
                texts.extend(turn[key] for key in ("text", "user_text", "assistant_text") if turn.get(key))
            questions.extend(question["q"] for question in record.get("questions", ()))
    if not texts:
        raise ValueError(f"{path}: no turn with a text; pass a JSON Lines file of conversations with 'turns'")
    return texts, questions


class Corpus:
    """Endless turns, and queries about them, from one seed.

    Args:
        seed: equal seeds give equal turns and queries.
        texts: real texts to splice instead of made words.
        questions: real queries; made from the turns when empty.
    """

    def __init__(self, seed: int, texts: list[str] | None = None, questions: list[str] | None = None) -> None:
        self._seed = seed
        self._texts = texts or []
        self._questions = questions or []
        self._words = [_made_word(rank) for rank in range(_VOCABULARY)]
        self._cumulated = list(accumulate(1.0 / (rank + 1 + _ZIPF_SHIFT) for rank in range(_VOCABULARY)))
        self._tail_cumulated = list(accumulate(1.0 / (rank + 1) ** 0.8 for rank in range(_TAIL_VOCABULARY)))

    def turns(self, count: int) -> Iterator[SyntheticTurn]:
        """The first ``count`` turns; a longer corpus starts with the same ones."""
        random = Random(self._seed)
        for _ in range(count):
            if self._texts:
                first, second = random.choice(self._texts).split(), random.choice(self._texts).split()
                yield SyntheticTurn(
                    self._with_tail(random, first[: (len(first) + 1) // 2]),
                    self._with_tail(random, second[len(second) // 2 :]),
                )
            else:
                yield SyntheticTurn(
                    self._made_text(random, _USER_CONTENT_WORDS), self._made_text(random, _ASSISTANT_CONTENT_WORDS)
                )

    def queries(self, turns: list[SyntheticTurn], count: int) -> list[str]:
        """``count`` queries of about five terms, one or two of them common (a speaker, a head word)."""
        random = Random(self._seed + 1)
        if self._questions:
            return [random.choice(self._questions) for _ in range(count)]
        made = []
        for _ in range(count):
            turn = random.choice(turns)
            words = [word for word in f"{turn.user_text} {turn.assistant_text}".split() if word not in _FUNCTION_WORDS]
            picked = random.sample(words, min(len(words), random.randint(*_QUERY_RARE_TERMS)))
            common = [random.choice(_SPEAKERS)]
            if random.random() < 0.5:
                common.append(self._words[random.randrange(40)])
            made.append(" ".join(["did", *common, "the", *picked]))
        return made

    def _made_text(self, random: Random, content_words: tuple[int, int]) -> str:
        words: list[str] = []
        for _ in range(random.randint(*content_words)):
            words.extend((random.choice(_FUNCTION_WORDS), self._content_word(random)))
        if random.random() < _SPEAKER_SHARE / 2:
            words.append(_SPEAKERS[min(int(random.expovariate(0.35)), len(_SPEAKERS) - 1)])
        return " ".join(words)

    def _content_word(self, random: Random) -> str:
        if random.random() < _TAIL_SHARE:
            return self._tail_word(random)
        return self._words[bisect(self._cumulated, random.random() * self._cumulated[-1])]

    def _tail_word(self, random: Random) -> str:
        rank = bisect(self._tail_cumulated, random.random() * self._tail_cumulated[-1])
        shape = rank % 4
        if shape == 0:
            return f"{_made_word(rank)}_{_made_word(rank // 3)}"
        if shape == 1:
            return f"{rank % 30}.{rank % 97}.{rank // 97}"
        if shape == 2:
            return str(10_000 + rank)
        return f"{_made_word(rank)}{rank}"

    def _with_tail(self, random: Random, words: list[str]) -> str:
        return " ".join(
            self._tail_word(random) if len(word) > 4 and random.random() < _TAIL_SHARE else word for word in words
        )


def _made_word(rank: int) -> str:
    """A pronounceable word, one for each rank."""
    syllables = []
    rest = rank + len(_CONSONANTS) * len(_VOWELS)
    while rest:
        rest, pair = divmod(rest, len(_CONSONANTS) * len(_VOWELS))
        syllables.append(_CONSONANTS[pair // len(_VOWELS)] + _VOWELS[pair % len(_VOWELS)])
    return "".join(syllables) + "n"
