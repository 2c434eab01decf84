"""Rankings that the questions are also put to: plain BM25 and the newest first."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any, Protocol

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.evals.qa_log import LoggedTurns

__all__ = ["PEERS", "Bm25Peer", "Peer", "RecencyPeer", "open_peers", "peer_tokens"]

_CJK = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_RUN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")


class Peer(Protocol):
    """Ranks the items of a log for a query, best first; made afresh for each log."""

    def rank(self, log: LoggedTurns, query: str) -> list[str]:
        """Items, best first; items without any relation to the query may be left out."""
        ...


class RecencyPeer:
    """The newest first, whatever is asked."""

    def rank(self, log: LoggedTurns, query: str) -> list[str]:
        """Items, newest first."""
        del query
        return list(log.texts())[::-1]


class Bm25Peer:
    """Okapi BM25 of rank_bm25 with its own defaults over plain words; ties go to the older item."""

    def __init__(self) -> None:
        try:
            self._model_class: Any = importlib.import_module("rank_bm25").BM25Okapi
        except ImportError as error:
            raise ConfigError(
                "peer bm25", "rank_bm25 is not installed", 'run: pip install "context-gatekeeper[peers]"'
            ) from error
        self._tokens: dict[str, list[str]] = {}
        self._texts: dict[str, str] = {}
        self._model: Any = None

    def rank(self, log: LoggedTurns, query: str) -> list[str]:
        """Items with a positive score, best first."""
        texts = log.texts()
        if texts != self._texts:
            self._texts = texts
            for item, text in texts.items():
                if item not in self._tokens:
                    self._tokens[item] = peer_tokens(text)
            self._model = (
                self._model_class([self._tokens[item] for item in texts]) if any(self._tokens.values()) else None
            )
        if self._model is None:
            return []
        scores = self._model.get_scores(peer_tokens(query))
        order = sorted((-float(points), place) for place, points in enumerate(scores) if points > 0)
        items = list(texts)
        return [items[place] for _, place in order]


PEERS: dict[str, type[Bm25Peer | RecencyPeer]] = {"bm25": Bm25Peer, "recency": RecencyPeer}


def open_peers(names: Sequence[str]) -> dict[str, Peer]:
    """A new peer for each name. Raises ConfigError: an unknown name, or a package that is missing."""
    for name in names:
        if name not in PEERS:
            raise ConfigError(f"peer {name!r}", "there is no such peer", f"use {', '.join(PEERS)}")
    return {name: PEERS[name]() for name in names}


def peer_tokens(text: str) -> list[str]:
    """Lower-case words; of Chinese and Japanese text the characters and the pairs of neighbours."""
    tokens: list[str] = []
    for run in _RUN.findall(text.lower()):
        tokens.extend(run if re.match(f"[{_CJK}]", run) else [run])
        if re.match(f"[{_CJK}]", run):
            tokens.extend(run[at : at + 2] for at in range(len(run) - 1))
    return tokens
