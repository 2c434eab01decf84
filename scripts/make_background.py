"""Make the background tables of ``core/tables`` from word lists of MIT and Apache packages.

    pip install symspellpy jieba opencc-python-reimplemented
    python scripts/make_background.py

English: stems of the 5,000 commonest words, with the best rank (symspellpy's frequency dictionary). Chinese:
for every 2- and 3-gram the summed frequency of the dictionary words (at most four characters) that hold it
(jieba's dictionary), above 500 as a weight in steps of 0.05; rarer 2-grams are listed as far as 20.
Traditional characters: OpenCC's character table, first choice. Run it again only to change the tables; the
results are committed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from importlib.metadata import distribution
from pathlib import Path

import snowballstemmer

TABLES = Path(__file__).parents[1] / "src" / "context_gatekeeper" / "core" / "tables"
MOST_COMMON_WORDS = 5000
COMMON_FREQUENCY = 500
LISTED_FREQUENCY = 20
LINE_CHARS = 110


def packaged_text(package: str, path: str) -> str:
    """A text file of an installed package, which is not imported for it."""
    return Path(str(distribution(package).locate_file(path))).read_text("utf-8-sig")


def english_ranks() -> list[str]:
    """Stems by falling frequency of their commonest word, as far as rank 5,000 of the words."""
    stem = snowballstemmer.stemmer("english").stemWord
    lines = packaged_text("symspellpy", "symspellpy/frequency_dictionary_en_82_765.txt").splitlines()
    ranks: dict[str, int] = {}
    for rank, line in enumerate(lines[:MOST_COMMON_WORDS], 1):
        ranks.setdefault(stem(line.split()[0].lower()), rank)
    return [f"{word}:{rank}" for word, rank in ranks.items()]


def ngram_frequencies() -> dict[str, int]:
    """Summed frequency of the words that hold a Han 2- or 3-gram, each word once."""
    frequency: dict[str, int] = defaultdict(int)
    for line in packaged_text("jieba", "jieba/dict.txt").splitlines():
        word, count, *_ = line.split()
        if len(word) > 4 or not all("\u4e00" <= char <= "\u9fff" for char in word):
            continue
        for size in (2, 3):
            for ngram in {word[at : at + size] for at in range(len(word) - size + 1)}:
                frequency[ngram] += int(count)
    return frequency


def ngram_weight(count: int) -> float:
    """Background of a common n-gram: 1 at a summed frequency of 500, 0.15 from about 11,500 on."""
    return max(0.15, 1 - math.log(count / COMMON_FREQUENCY) / math.log(40))


def chinese_levels(frequency: dict[str, int]) -> dict[int, list[str]]:
    """Background in hundredths -> common n-grams."""
    levels: dict[int, list[str]] = defaultdict(list)
    for ngram, count in sorted(frequency.items()):
        if count > COMMON_FREQUENCY:
            levels[5 * round(20 * ngram_weight(count))].append(ngram)
    return levels


def rare_pairs(frequency: dict[str, int]) -> str:
    """Known but rare 2-grams: words of a first character and all its second ones."""
    seconds: dict[str, str] = defaultdict(str)
    for ngram, count in sorted(frequency.items()):
        if len(ngram) == 2 and LISTED_FREQUENCY <= count <= COMMON_FREQUENCY:
            seconds[ngram[0]] += ngram[1]
    return " ".join(first + others for first, others in seconds.items())


def traditional_pairs() -> tuple[str, str]:
    """Traditional characters and, place by place, their simplified forms."""
    source, target = [], []
    for line in packaged_text("opencc-python-reimplemented", "opencc/dictionary/TSCharacters.txt").splitlines():
        traditional, simplified, *_ = line.split()
        if traditional != simplified and all(
            len(char) == 1 and ord(char) < 0x10000 for char in (traditional, simplified)
        ):
            source.append(traditional)
            target.append(simplified)
    return "".join(source), "".join(target)


def literal(name: str, text: str) -> str:
    """``text`` as a parenthesised Python string in short lines."""
    pieces = [text[at : at + LINE_CHARS] for at in range(0, len(text), LINE_CHARS)]
    return "\n".join([f"{name} = (", *(f"    {piece!r}".replace("'", '"') for piece in pieces), ")", ""])


def main() -> None:
    """Write the three table modules."""
    note = '"""Made by scripts/make_background.py; see NOTICE for the sources. Do not edit."""\n\n'
    (TABLES / "english.py").write_text(note + literal("STEM_RANKS", " ".join(english_ranks())), "utf-8")
    parts = [note]
    frequency = ngram_frequencies()
    for level, ngrams in sorted(chinese_levels(frequency).items()):
        for size in (2, 3):
            joined = "".join(ngram for ngram in ngrams if len(ngram) == size)
            if joined:
                parts.append(literal(f"LEVEL_{level:03d}_{size}", joined))
    parts.append(literal("RARE_PAIRS", rare_pairs(frequency)))
    (TABLES / "chinese.py").write_text("\n".join(parts), "utf-8")
    source, target = traditional_pairs()
    (TABLES / "variants.py").write_text(
        note + literal("TRADITIONAL", source) + "\n" + literal("SIMPLIFIED", target), "utf-8"
    )


if __name__ == "__main__":
    main()
