"""Topics and wordings for made conversations, and the seed fixture that is used without files.

The seed fixture is four topics of our own, two Chinese and two English, in
``data/seed_topics.json`` and ``data/seed_frames.json``: the formats that the options
``--topics`` and ``--frames`` read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from context_gatekeeper.errors import TranscriptError
from context_gatekeeper.evals.datasets import read_json

__all__ = [
    "DEFAULT_FOLLOWUPS",
    "KINDS",
    "TopicScript",
    "Wordings",
    "read_frames",
    "read_topics",
    "read_wordings",
    "seed_topics",
    "seed_wordings",
]

KINDS = ("explicit", "elliptic", "recap", "deictic")
"""Kinds of questions: topic and sub named, the sub alone, an earlier sub again, neither."""
_NEEDED = {"explicit": ("{n}", "{s}"), "elliptic": ("{s}",), "recap": ("{s}",), "deictic": ()}
_DATA = Path(__file__).parent / "data"
DEFAULT_FOLLOWUPS = _DATA / "followups.jsonl"
Wordings = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Kind -> language -> frames with ``{n}`` for the topic and ``{s}`` for the sub."""


@dataclass(frozen=True, slots=True)
class TopicScript:
    """A topic with its sub-questions and their answers."""

    name: str
    lang: str
    subs: tuple[tuple[str, str], ...]


def read_topics(path: Path) -> tuple[TopicScript, ...]:
    """Topics of a file (``data/frames/topics.json``). Raises TranscriptError."""
    content = read_json(path)
    try:
        topics = tuple(
            TopicScript(
                str(topic["name"]), str(topic["lang"]), tuple((str(sub), str(answer)) for sub, answer in topic["subs"])
            )
            for topic in content["topics"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TranscriptError(
            str(path),
            f"it holds no topics ({error!r})",
            'pass {"topics": [{"name", "lang", "subs": [[sub, answer], ...]}]}',
        ) from error
    for topic in topics:
        if not topic.subs:
            raise TranscriptError(str(path), f"topic {topic.name!r} has no subs", "give it at least one [sub, answer]")
    return topics


def read_frames(path: Path, kind: str) -> dict[str, tuple[str, ...]]:
    """Frames of one kind by language (``data/frames/frames*.json``); a language without any is left out.

    Raises TranscriptError.
    """
    return _checked_frames(read_json(path), kind, str(path))


def _checked_frames(content: Any, kind: str, place: str) -> dict[str, tuple[str, ...]]:
    if (
        not isinstance(content, dict)
        or not any(content.values())
        or not all(isinstance(texts, list) for texts in content.values())
    ):
        raise TranscriptError(place, "it holds no frames by language", 'pass {"zh": [...], "en": [...]}')
    frames = {str(lang): tuple(str(text) for text in texts) for lang, texts in content.items() if texts}
    for texts in frames.values():
        for text in texts:
            missing = [mark for mark in _NEEDED[kind] if mark not in text]
            if missing:
                raise TranscriptError(
                    place, f"the {kind} frame {text!r} has no {' and no '.join(missing)}", "add it to the frame"
                )
    return frames


def read_wordings(paths: Mapping[str, Path | None]) -> Wordings:
    """Frames by kind: from the files named, else those of the seed fixture."""
    seed = seed_wordings()
    return {kind: seed[kind] if (path := paths.get(kind)) is None else read_frames(path, kind) for kind in KINDS}


@cache
def seed_topics() -> tuple[TopicScript, ...]:
    """The four topics of the seed fixture."""
    return read_topics(_DATA / "seed_topics.json")


@cache
def seed_wordings() -> Wordings:
    """The wordings of the seed fixture."""
    path = _DATA / "seed_frames.json"
    content = read_json(path)
    return {kind: _checked_frames(content[kind], kind, str(path)) for kind in KINDS}
