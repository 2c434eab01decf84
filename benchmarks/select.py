"""``python -m benchmarks select``: making a turn searchable and ranking, beside the peers, in one run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Any

from benchmarks.corpus import Corpus, SyntheticTurn, load_texts
from benchmarks.rankers import Document, OurBm25, OurRanker, Ranker, open_peer
from benchmarks.timing import percentile
from context_gatekeeper import ContextGatekeeper
from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.stores.sqlite import SqliteStore
from context_gatekeeper.stores.sqlite_file import SYNCHRONOUS
from context_gatekeeper.types import PageDraft, Role

__all__ = ["SelectSettings", "measure_select"]

Report = Callable[[str], None]

_TURN_ANCHORS = 15
_CALLS_IN_A_ROW = 3
_LONG_CALL_SECONDS = 0.05
"""A call that takes longer is made once instead of three times: caches no longer matter."""
_MIN_REPETITIONS = 3
_ADDED_ALONE = 600
_SQLITE_APPENDS = 60
_SQLITE_BATCH_TURNS = 500
_FACADE_SAMPLES = 60


@dataclass(frozen=True, slots=True)
class SelectSettings:
    """What to measure."""

    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    peers: tuple[str, ...] = ()
    data: Path | None = None
    seed: int = 7
    queries: int = 200
    warm_up_queries: int = 100
    added_turns: int = 120
    seconds_per_peer: float = 20.0
    """A peer that would take longer gets fewer repetitions, at least three."""
    facade_max: int = 10_000
    """Largest size at which a whole `ContextGatekeeper` is filled."""


@dataclass(slots=True)
class _Samples:
    """Seconds of one engine."""

    rank: list[float] = field(default_factory=list)
    """The quickest of three calls in a row."""
    first_rank: list[float] = field(default_factory=list)
    """The first of them, with the processor's caches as another engine left them."""
    add: list[float] = field(default_factory=list)


def measure_select(settings: SelectSettings, report: Report) -> dict[str, Any]:
    """Measure every size; the keys of the contract. ``report`` gets a line on each step."""
    return {
        "sizes": {str(size): _measure_size(size, settings, report) for size in settings.sizes},
        "method": {
            "clock": "CPU of the calling thread, and for adding what the engine's own threads used",
            "calls_in_a_row": _CALLS_IN_A_ROW,
            "sqlite_synchronous": SYNCHRONOUS,
            "seed": settings.seed,
            "data": settings.data.name if settings.data else "made by the generator",
        },
    }


def _measure_size(size: int, settings: SelectSettings, report: Report) -> dict[str, Any]:
    texts, questions = load_texts(settings.data) if settings.data else ([], [])
    corpus = Corpus(settings.seed, texts, questions)
    report(f"{size} turns: make and scan")
    turns = list(corpus.turns(size + settings.added_turns))
    documents = [_document(turn) for turn in turns]
    asked = corpus.queries(turns[:size], settings.warm_up_queries + settings.queries)
    queries = [terms for terms in (tuple(scan_anchors(text).counts) for text in asked) if terms]
    added = [_with_anchors(document, documents[number::97]) for number, document in enumerate(documents[size:])]
    ours = OurRanker(documents[:size])
    peers: dict[str, Ranker] = {}
    for name in settings.peers:
        report(f"{size} turns: build {name}")
        peers[name] = open_peer(name, documents[:size])
    race = _Race(ours, peers, settings.seconds_per_peer)
    race.warm_up(queries[: settings.warm_up_queries])
    report(f"{size} turns: rank")
    race.rank(queries[settings.warm_up_queries :])
    report(f"{size} turns: add")
    race.add(added)
    result: dict[str, Any] = {"ours": _engine_keys(race.samples["ours"]), "repetitions": race.repetitions()}
    for name in peers:
        result[name] = _engine_keys(race.samples[name])
    result["ratio"] = {name: _ratio(race.samples[name], race.beside[name]) for name in peers}
    result["ours"].update(_measure_bm25(ours, queries))
    result["ours"]["add_memory_us"] = _measure_adding(ours, documents[:size])
    report(f"{size} turns: SQLite store")
    result["ours"].update(_measure_sqlite(documents[:size], added))
    report(f"{size} turns: whole gatekeeper")
    result["ours"].update(_measure_facade(size, turns, asked, settings))
    result["ours"]["rss_mb"] = _measure_memory(size, settings)
    return result


def _document(turn: SyntheticTurn) -> Document:
    return scan_anchors(turn.user_text).counts, scan_anchors(turn.assistant_text).counts


def _with_anchors(document: Document, others: Sequence[Document]) -> Document:
    """A turn of exactly 15 anchors: that of ``document``, filled up from others, cut to 5 and 10."""
    sides: list[dict[str, int]] = []
    for side, count in enumerate((5, _TURN_ANCHORS - 5)):
        terms = dict(document[side])
        for other in others:
            if len(terms) >= count:
                break
            terms.update(other[side])
        sides.append(dict(list(terms.items())[:count]))
    return sides[0], sides[1]


class _Race:
    """Our ranker and its peers in turn over the same queries and turns: ours, peer, ours, peer ..."""

    def __init__(self, ours: OurRanker, peers: Mapping[str, Ranker], seconds_per_peer: float) -> None:
        self._ours = ours
        self._peers = peers
        self._budget = seconds_per_peer / 2
        self.samples: dict[str, _Samples] = {name: _Samples() for name in ("ours", *peers)}
        self.beside: dict[str, _Samples] = {name: _Samples() for name in peers}
        """Ours, beside each peer: over the very queries and turns that the peer had."""

    def warm_up(self, queries: Sequence[Sequence[str]]) -> None:
        """Let every engine rank other queries first, slow ones fewer."""
        for ranker in (self._ours, *self._peers.values()):
            spent = 0.0
            for terms in queries:
                spent += _timed(ranker.rank, ranker.prepare(terms))
                if spent > self._budget:
                    break

    def rank(self, queries: Sequence[Sequence[str]]) -> None:
        """Ours and one peer in turn over the queries, while its budget lasts; then ours and the next peer.

        In pairs, so that neither finds the processor's caches emptied by a third.
        """
        for name in self._peers or [""]:
            spent = 0.0
            for number, terms in enumerate(queries):
                if spent > self._budget and number >= _MIN_REPETITIONS:
                    break
                self._rank_once(terms, name)
                if name:
                    spent += _CALLS_IN_A_ROW * self.samples[name].first_rank[-1]

    def _rank_once(self, terms: Sequence[str], name: str) -> None:
        first, quickest = _rank_calls(self._ours, terms)
        for kept in (self.samples["ours"], *([self.beside[name]] if name else [])):
            kept.first_rank.append(first)
            kept.rank.append(quickest)
        if name:
            first, quickest = _rank_calls(self._peers[name], terms)
            self.samples[name].first_rank.append(first)
            self.samples[name].rank.append(quickest)

    def add(self, turns: Sequence[Document]) -> None:
        """Make turns searchable in every engine, three in a row, while its budget lasts.

        What an engine's own threads do meanwhile (merging) is shared out over its turns.
        """
        spent = dict.fromkeys(self._peers, 0.0)
        process_started, thread_started = process_time(), thread_time()
        for start in range(0, len(turns) - _CALLS_IN_A_ROW + 1, _CALLS_IN_A_ROW):
            row = turns[start : start + _CALLS_IN_A_ROW]
            ours = [_timed(self._ours.add, turn) for turn in row]
            self.samples["ours"].add.extend(ours)
            for name, peer in self._peers.items():
                if spent[name] > self._budget and start >= _MIN_REPETITIONS * _CALLS_IN_A_ROW:
                    continue
                seconds = [_timed(peer.add, row[0])]
                if seconds[0] < _LONG_CALL_SECONDS:
                    seconds += [_timed(peer.add, turn) for turn in row[1:]]
                spent[name] += sum(seconds)
                self.samples[name].add.extend(seconds)
                self.beside[name].add.extend(ours)
        elsewhere = (process_time() - process_started) - (thread_time() - thread_started)
        for name, peer in self._peers.items():
            if peer.has_threads:
                added = self.samples[name].add
                self.samples[name].add = [seconds + elsewhere / len(added) for seconds in added]

    def repetitions(self) -> dict[str, dict[str, int]]:
        """How many samples each engine has."""
        return {name: {"rank": len(kept.rank), "add": len(kept.add)} for name, kept in self.samples.items()}


def _timed(work: Callable[[Any], object], argument: Any) -> float:
    """CPU seconds of this thread; only `_Race.add` meets work in other threads, and counts it."""
    started = thread_time()
    work(argument)
    return thread_time() - started


def _rank_calls(ranker: Ranker, terms: Sequence[str]) -> tuple[float, float]:
    """(seconds of the first call, of the quickest of three in a row); long calls are made once."""
    query = ranker.prepare(terms)
    first = _timed(ranker.rank, query)
    if first >= _LONG_CALL_SECONDS:
        return first, first
    return first, min(first, *(_timed(ranker.rank, query) for _ in range(_CALLS_IN_A_ROW - 1)))


def _engine_keys(kept: _Samples) -> dict[str, Any]:
    add, rank = percentile(kept.add, 0.5), percentile(kept.first_rank, 0.5)
    return {
        "add_us": add * 1e6,
        "rank_p50_ms": rank * 1e3,
        "rank_p99_ms": percentile(kept.first_rank, 0.99) * 1e3,
        "rank_quickest_p50_ms": percentile(kept.rank, 0.5) * 1e3,
        "turn_cycle_ms": (add + rank) * 1e3,
    }


def _ratio(peer: _Samples, ours: _Samples) -> dict[str, float]:
    """Ours / peer over the same queries."""
    our_rank, peer_rank = percentile(ours.first_rank, 0.5), percentile(peer.first_rank, 0.5)
    our_cycle = our_rank + percentile(ours.add, 0.5)
    return {
        "turn_cycle": our_cycle / (peer_rank + percentile(peer.add, 0.5)),
        "rank_p50": our_rank / peer_rank,
        "rank_quickest_p50": percentile(ours.rank, 0.5) / percentile(peer.rank, 0.5),
    }


def _measure_bm25(ours: OurRanker, queries: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    ranker = OurBm25(ours.index)
    half = len(queries) // 2
    for terms in queries[:half]:
        ranker.rank(ranker.prepare(terms))
    return {"bm25_p50_ms": percentile([_rank_calls(ranker, terms)[1] for terms in queries[half:]], 0.5) * 1e3}


def _measure_adding(ours: OurRanker, documents: Sequence[Document]) -> float:
    """Microseconds to index one turn of 15 anchors, one other turn after the other, nothing in between."""
    places = range(0, len(documents), max(1, len(documents) // _ADDED_ALONE))
    turns = [_with_anchors(documents[place], documents[place + 1 : place + 9]) for place in places]
    return percentile([_timed(ours.add, turn) for turn in turns], 0.5) * 1e6


def _drafts(turn_id: int, document: Document) -> list[PageDraft]:
    return [
        PageDraft(turn_id, role, " ".join(terms), terms)
        for role, terms in zip((Role.USER, Role.ASSISTANT), document, strict=True)
    ]


def _measure_sqlite(documents: Sequence[Document], added: Sequence[Document]) -> dict[str, Any]:
    """Committed appends of turns of 15 anchors to a file that holds the whole conversation."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "pages.db")
        for start in range(0, len(documents), _SQLITE_BATCH_TURNS):
            batch = enumerate(documents[start : start + _SQLITE_BATCH_TURNS], start)
            store.append(
                "bench", "bench", [draft for turn_id, document in batch for draft in _drafts(turn_id, document)]
            )
        cpu_seconds, wall_seconds = [], []
        for number in range(_SQLITE_APPENDS):
            drafts = _drafts(len(documents) + number, added[number % len(added)])
            cpu_started, wall_started = thread_time(), perf_counter()
            store.append("bench", "bench", drafts)
            cpu_seconds.append(thread_time() - cpu_started)
            wall_seconds.append(perf_counter() - wall_started)
        store.close()
    return {
        "add_sqlite_us": percentile(cpu_seconds, 0.5) * 1e6,
        "add_sqlite_wall_us": percentile(wall_seconds, 0.5) * 1e6,
    }


def _measure_facade(
    size: int, turns: Sequence[SyntheticTurn], asked: Sequence[str], settings: SelectSettings
) -> dict[str, Any]:
    """The whole `select` and `add_turn` in memory; nulls above `SelectSettings.facade_max`."""
    keys = ("select_p50_ms", "select_p99_ms", "add_turn_p50_ms", "add_turn_p99_ms")
    if size > settings.facade_max:
        return dict.fromkeys(keys)
    gatekeeper = ContextGatekeeper()
    for turn in turns[:size]:
        gatekeeper.add_turn(turn.user_text, turn.assistant_text)
    selects = [_timed(gatekeeper.select, text) for text in asked[:_FACADE_SAMPLES]]

    def add(turn: SyntheticTurn) -> None:
        gatekeeper.add_turn(turn.user_text, turn.assistant_text)

    adds = [_timed(add, turn) for turn in turns[size:][:_FACADE_SAMPLES]]
    gatekeeper.close()
    values = (percentile(selects, 0.5), percentile(selects, 0.99), percentile(adds, 0.5), percentile(adds, 0.99))
    return {key: seconds * 1e3 for key, seconds in zip(keys, values, strict=True)}


def _measure_memory(size: int, settings: SelectSettings) -> float:
    """Resident memory of a fresh process that indexed the turns and ranked the queries."""
    command = [sys.executable, "-m", "benchmarks.memory", str(size), str(settings.seed)]
    if settings.data:
        command.append(str(settings.data))
    answer = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own module
    return float(json.loads(answer.stdout)["rss_mb"])
