"""``python -m benchmarks.memory SIZE SEED [DATA]``: memory of a process that holds one index and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.corpus import Corpus, load_texts
from benchmarks.rankers import OurRanker
from benchmarks.timing import resident_megabytes
from context_gatekeeper.core.anchor import scan_anchors

_QUERIES = 200


def main(arguments: list[str]) -> None:
    """Index, rank, print ``{"rss_mb"}``."""
    size, seed = int(arguments[0]), int(arguments[1])
    texts, questions = load_texts(Path(arguments[2])) if len(arguments) > 2 else ([], [])
    corpus = Corpus(seed, texts, questions)
    ranker = OurRanker([])
    some = []
    for number, turn in enumerate(corpus.turns(size)):
        ranker.add((scan_anchors(turn.user_text).counts, scan_anchors(turn.assistant_text).counts))
        if number % max(1, size // 1_000) == 0:
            some.append(turn)
    for text in corpus.queries(some, _QUERIES):
        ranker.rank(ranker.prepare(tuple(scan_anchors(text).counts) or ("none",)))
    print(json.dumps({"rss_mb": round(resident_megabytes(), 1)}))


if __name__ == "__main__":
    main(sys.argv[1:])
