"""Our ranking and its peers behind one face: the same documents, the same terms, the best 20 ids.

A document is a turn. Peers see its terms as words ``t0 t1 ...`` so that no tokenizer of
theirs changes what is compared; a repeated term is repeated.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from context_gatekeeper.core.anchor import inverse_document_frequency
from context_gatekeeper.core.ranking import top_blocks, top_pages_bm25
from context_gatekeeper.stores.postings import PostingIndex

__all__ = ["PEERS", "TOP", "Document", "OurBm25", "OurRanker", "Ranker", "Vocabulary", "open_peer"]

TOP = 20
Document = tuple[Mapping[str, int], Mapping[str, int]]
"""Terms of the user's and of the assistant's text."""

PEERS = ("tantivy", "fts5", "rank_bm25", "bm25s")


class Ranker(Protocol):
    """One engine that holds the corpus."""

    @property
    def has_threads(self) -> bool:
        """Whether it works in threads of its own, beside the caller's."""
        ...

    def add(self, document: Document) -> None:
        """Make one more turn searchable; it is when the call returns."""
        ...

    def prepare(self, terms: Sequence[str]) -> Any:
        """The engine's own form of a query; not timed."""
        ...

    def rank(self, query: Any) -> list[int]:
        """Ids of the best 20 turns, best first."""
        ...


class Vocabulary:
    """Names terms for peers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def name(self, term: str) -> str:
        """``t`` and a number, one for each term."""
        return f"t{self._numbers.setdefault(term, len(self._numbers))}"

    def words(self, document: Document) -> list[str]:
        """The document as words."""
        return [self.name(term) for side in document for term, count in side.items() for _ in range(count)]


class OurRanker:
    """`PostingIndex` and `top_blocks` with the documented weights."""

    has_threads = False

    def __init__(self, documents: Sequence[Document]) -> None:
        self.index = PostingIndex()
        for document in documents:
            self.add(document)

    def add(self, document: Document) -> None:
        """Both pages of the turn."""
        ordinal = 2 * self.index.block_count
        self.index.add_page(ordinal, document[0])
        self.index.add_page(ordinal + 1, document[1])

    def prepare(self, terms: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
        """Share of each term in the query's IDF, and its share in the exact tier."""
        count = self.index.block_count
        idf = {term: inverse_document_frequency(self.index.document_frequency(term), count) for term in terms}
        total = sum(idf.values())
        return {term: weight / total for term, weight in idf.items()}, dict.fromkeys(idf, 1 / len(idf))

    def rank(self, query: tuple[dict[str, float], dict[str, float]]) -> list[int]:
        """The documented formula: 1.5 user + 0.7 assistant + 1.0 exact + 0.2 recency."""
        found = top_blocks(
            self.index,
            query[0],
            user_weight=1.5,
            assistant_weight=0.7,
            any_weights=query[1],
            recency_weight=0.2,
            limit=TOP,
        )
        return [turn_id for turn_id, _ in found]


class OurBm25(OurRanker):
    """`PostingIndex` and `top_pages_bm25`, the ranking of the ``recall`` profile; it ranks pages."""

    def __init__(self, index: PostingIndex) -> None:
        self.index = index

    def prepare(self, terms: Sequence[str]) -> Any:
        """IDF of each term."""
        count = self.index.block_count
        return {term: inverse_document_frequency(self.index.document_frequency(term), count) for term in terms}

    def rank(self, query: Any) -> list[int]:
        """Ordinals of the best 20 pages."""
        return [ordinal for ordinal, _ in top_pages_bm25(self.index, query, limit=TOP)]


class _Tantivy:
    """tantivy: one writer thread, committed and reloaded after every added turn; segments merged after the build."""

    has_threads = True

    def __init__(self, documents: Sequence[Document]) -> None:
        self._tantivy = import_module("tantivy")
        self._vocabulary = Vocabulary()
        builder = self._tantivy.SchemaBuilder()
        builder.add_text_field("body", stored=False, tokenizer_name="default", index_option="freq")
        builder.add_integer_field("turn", stored=False, indexed=False, fast=True)
        self._schema = builder.build()
        self._index = self._tantivy.Index(self._schema)
        self._count = 0
        self._writer = self._index.writer(50_000_000, 1)
        for document in documents:
            self._write(document)
        self._writer.commit()
        self._writer.wait_merging_threads()
        self._writer = self._index.writer(50_000_000, 1)
        self._reload()

    def add(self, document: Document) -> None:
        self._write(document)
        self._writer.commit()
        self._reload()

    def prepare(self, terms: Sequence[str]) -> Any:
        tantivy = self._tantivy
        return tantivy.Query.boolean_query(
            [
                (
                    tantivy.Occur.Should,
                    tantivy.Query.term_query(self._schema, "body", self._vocabulary.name(term), "freq"),
                )
                for term in terms
            ]
        )

    def rank(self, query: Any) -> list[int]:
        """The quickest way to ids: no count of all matches, ids from a column."""
        hits = self._searcher.search(query, TOP, count=False).hits
        return list(self._searcher.fast_field_values("turn", [address for _, address in hits]))

    def _write(self, document: Document) -> None:
        words = " ".join(self._vocabulary.words(document))
        self._writer.add_document(self._tantivy.Document(body=words, turn=self._count))
        self._count += 1

    def _reload(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()


class _Fts5:
    """SQLite's FTS5, in memory, contentless, committed after every added turn; ``rank`` is its BM25."""

    has_threads = False

    def __init__(self, documents: Sequence[Document]) -> None:
        self._vocabulary = Vocabulary()
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE VIRTUAL TABLE turns USING fts5(body, content='')")
        rows = ((number, self._text(document)) for number, document in enumerate(documents))
        self._database.executemany("INSERT INTO turns(rowid, body) VALUES (?, ?)", rows)
        self._database.commit()
        self._count = len(documents)

    def add(self, document: Document) -> None:
        self._database.execute("INSERT INTO turns(rowid, body) VALUES (?, ?)", (self._count, self._text(document)))
        self._database.commit()
        self._count += 1

    def prepare(self, terms: Sequence[str]) -> str:
        return " OR ".join(self._vocabulary.name(term) for term in terms)

    def rank(self, query: str) -> list[int]:
        rows = self._database.execute("SELECT rowid FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT ?", (query, TOP))
        return [turn for (turn,) in rows]

    def _text(self, document: Document) -> str:
        return " ".join(self._vocabulary.words(document))


class _RankBm25:
    """rank_bm25's BM25Okapi; it has no way to add a document but to build the index again."""

    has_threads = False

    def __init__(self, documents: Sequence[Document]) -> None:
        self._make = import_module("rank_bm25").BM25Okapi
        self._vocabulary = Vocabulary()
        self._corpus = [self._vocabulary.words(document) for document in documents]
        self._index = self._make(self._corpus)
        self._numbers = list(range(len(self._corpus)))

    def add(self, document: Document) -> None:
        self._numbers.append(len(self._corpus))
        self._corpus.append(self._vocabulary.words(document))
        self._index = self._make(self._corpus)

    def prepare(self, terms: Sequence[str]) -> list[str]:
        return [self._vocabulary.name(term) for term in terms]

    def rank(self, query: list[str]) -> list[int]:
        return list(self._index.get_top_n(query, self._numbers, TOP))


class _Bm25s:
    """bm25s on numpy; it has no way to add a document but to build the index again."""

    has_threads = False

    def __init__(self, documents: Sequence[Document]) -> None:
        self._bm25s = import_module("bm25s")
        self._vocabulary = Vocabulary()
        self._corpus = [self._vocabulary.words(document) for document in documents]
        self._build()

    def add(self, document: Document) -> None:
        self._corpus.append(self._vocabulary.words(document))
        self._build()

    def prepare(self, terms: Sequence[str]) -> list[list[str]]:
        return [[name for term in terms if (name := self._vocabulary.name(term)) in self._known]]

    def rank(self, query: list[list[str]]) -> list[int]:
        if not query[0]:
            return []
        found, _ = self._index.retrieve(query, k=TOP, show_progress=False)
        return [int(turn) for turn in found[0]]

    def _build(self) -> None:
        self._index = self._bm25s.BM25()
        self._index.index(self._corpus, show_progress=False)
        self._known = self._index.vocab_dict


_MAKERS: Mapping[str, Callable[[Sequence[Document]], Ranker]] = {
    "tantivy": _Tantivy,
    "fts5": _Fts5,
    "rank_bm25": _RankBm25,
    "bm25s": _Bm25s,
}


def open_peer(name: str, documents: Sequence[Document]) -> Ranker:
    """The peer of that name with ``documents`` indexed. Raises KeyError for an unknown name."""
    return _MAKERS[name](documents)
