"""Make the background tables of ``core/tables`` from word lists of MIT and Apache packages.

    pip install symspellpy jieba opencc-python-reimplemented
    python scripts/make_background.py

English: ranks of the 5,000 commonest stems (symspellpy's frequency dictionary). Chinese: for every
2- and 3-gram the summed frequency of the dictionary words (at most four characters) that hold it
(jieba's dictionary). Traditional characters: OpenCC's character table, first choice. Run it again only to
change the tables; the results are committed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

import snowballstemmer

TABLES = Path(__file__).parents[1] / "src" / "context_gatekeeper" / "core" / "tables"
MOST_COMMON_STEMS = 5000
COMMON_FREQUENCY = 500
LISTED_FREQUENCY = 20
LINE_CHARS = 110


def english_ranks() -> list[str]:
    """Stems by falling frequency of their commonest word, as far as rank 5,000 of the words."""
    stem = snowballstemmer.stemmer("english").stemWord
    lines = (files("symspellpy") / "frequency_dictionary_en_82_765.txt").read_text("utf-8-sig").splitlines()
    ranks: dict[str, int] = {}
    for rank, line in enumerate(lines[:MOST_COMMON_STEMS], 1):
        ranks.setdefault(stem(line.split()[0].lower()), rank)
    return [f"{word}:{rank}" for word, rank in ranks.items()]


def chinese_levels() -> dict[int, list[str]]:
    """Background in hundredths -> n-grams; 100 holds the known but rare ones."""
    frequency: dict[str, int] = defaultdict(int)
    for line in (files("jieba") / "dict.txt").read_text("utf-8").splitlines():
        word, count, *_ = line.split()
        if len(word) > 4 or not all("\u4e00" <= char <= "\u9fff" for char in word):
            continue
        for size in (2, 3):
            for ngram in {word[at : at + size] for at in range(len(word) - size + 1)}:
                frequency[ngram] += int(count)
    levels: dict[int, list[str]] = defaultdict(list)
    for ngram, count in sorted(frequency.items()):
        if count > COMMON_FREQUENCY:
            weight = max(0.15, 1 - math.log(count / COMMON_FREQUENCY) / math.log(40))
            levels[5 * round(20 * weight)].append(ngram)
        elif len(ngram) == 2 and count >= LISTED_FREQUENCY:
            levels[100].append(ngram)
    return levels


def traditional_pairs() -> tuple[str, str]:
    """Traditional characters and, place by place, their simplified forms."""
    source, target = [], []
    for line in (files("opencc") / "dictionary" / "TSCharacters.txt").read_text("utf-8").splitlines():
        fields = line.split()
        if len(fields) >= 2 and len(fields[0]) == 1 and fields[0] != fields[1] and ord(fields[0]) < 0x10000:
            if len(fields[1]) == 1 and ord(fields[1]) < 0x10000:
                source.append(fields[0])
                target.append(fields[1])
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
    for level, ngrams in sorted(chinese_levels().items()):
        for size in (2, 3):
            joined = "".join(ngram for ngram in ngrams if len(ngram) == size)
            if joined:
                parts.append(literal(f"LEVEL_{level:03d}_{size}", joined))
    (TABLES / "chinese.py").write_text("\n".join(parts), "utf-8")
    source, target = traditional_pairs()
    (TABLES / "variants.py").write_text(note + literal("TRADITIONAL", source) + "\n" + literal("SIMPLIFIED", target), "utf-8")


if __name__ == "__main__":
    main()
