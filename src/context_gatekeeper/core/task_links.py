"""How strongly a message, or another task, is tied to a task: by files and folders, core anchors, goals.

``link = .5 files + .35 core anchors + .15 goal``, re-normalised over the parts that there is evidence for.
A message names few of the many files a task works on, so its files count by the share that the task holds;
two tasks are compared by the weighted Jaccard index. A file or word that many tasks hold (a README,
``utils``, the project's name) tells little: both weigh ``ln((N + 1) / df)`` over the N open tasks, and what
all of them hold is no evidence at all.

Source: section 1 of the paging notes (task clustering).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from math import log
from typing import Any

from context_gatekeeper.core.anchor import AnchorKind, anchor_kind

__all__ = [
    "LINK_PARAMS",
    "FileIndex",
    "LinkParams",
    "OpenTasks",
    "TaskEvidence",
    "core_overlap",
    "file_id",
    "file_likeness",
    "is_folder",
    "known_share",
    "link_scores",
]


@dataclass(frozen=True, slots=True)
class LinkParams:
    """Shares of the parts, and how much of a task is kept."""

    files: float = 0.5
    core: float = 0.35
    goal: float = 0.15
    folder: float = 0.5
    """Weight of a folder beside that of a file in it."""
    unseen: float = 0.5
    """Weight of a message's anchor that no open task holds, beside one that a single task holds. A file that none
    holds weighs as if one did."""
    unseen_ngram: float = 0.25
    """The same for Han and kana pairs and triples: many reach over a word's border and are never seen again."""
    core_anchors: int = 256
    """Anchors of a task that count, by the sum of their weights."""
    most_anchors: int = 512
    """Anchors of a task that are remembered; beyond it the lighter half is forgotten."""
    most_files: int = 256
    """Files and folders of a task; beyond it the half that was used longest ago is forgotten."""
    most_components: int = 3
    """Components at the end of a path by which a message may name it."""


LINK_PARAMS = LinkParams()


def file_id(path: str) -> str:
    """A path as tasks compare it: forward slashes, no ``./``, lower case; "" for nothing."""
    return "/".join(part for part in path.strip().replace("\\", "/").split("/") if part not in ("", ".")).lower()


def is_folder(file: str) -> bool:
    """Whether an id of `TaskEvidence.files` is that of a folder."""
    return file.endswith("/")


@dataclass(slots=True)
class TaskEvidence:
    """What is known of a task, or of the turn that runs."""

    files: dict[str, int] = field(default_factory=dict)
    """File and folder ids -> uses, the last used at the end; folders end in a slash."""
    words: dict[str, float] = field(default_factory=dict)
    """Anchor -> sum of its weights."""
    goals: set[str] = field(default_factory=set)
    _core: frozenset[str] | None = None

    def add_file(self, path: str, params: LinkParams = LINK_PARAMS) -> None:
        """Count a use of a file, and of its folder."""
        file = file_id(path)
        folder, slash, _ = file.rpartition("/")
        for place in (folder + slash, file):
            if place:
                self.files[place] = self.files.pop(place, 0) + 1
        self._forget_files(params)

    def add_words(self, anchors: Mapping[str, float], params: LinkParams = LINK_PARAMS) -> None:
        """Add anchors with their weights; those of 0 or less are left out."""
        for term, weight in anchors.items():
            if weight > 0.0:
                self.words[term] = self.words.get(term, 0.0) + weight
        if len(self.words) > params.most_anchors:
            self.words = self.heaviest(params.most_anchors // 2)
        self._core = None

    def absorb(self, other: TaskEvidence, params: LinkParams = LINK_PARAMS) -> None:
        """Take in all that is known of ``other``."""
        for file, uses in other.files.items():
            self.files[file] = self.files.pop(file, 0) + uses
        self._forget_files(params)
        self.add_words(other.words, params)
        self.goals |= other.goals

    def core(self, params: LinkParams = LINK_PARAMS) -> frozenset[str]:
        """The anchors that count: the heaviest, ties by the earlier. Worked out once after each change."""
        if self._core is None:
            self._core = frozenset(nlargest(params.core_anchors, self.words, key=self.words.__getitem__))
        return self._core

    def heaviest(self, count: int) -> dict[str, float]:
        """The ``count`` heaviest anchors."""
        return dict(nlargest(count, self.words.items(), key=lambda row: row[1]))

    def file_count(self) -> int:
        """Files without folders."""
        return sum(not is_folder(file) for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"files": dict(self.files), "words": dict(self.words), "goals": sorted(self.goals)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> TaskEvidence:
        """Inverse of `to_dict`."""
        return cls(dict(stored["files"]), dict(stored["words"]), set(stored["goals"]))

    def _forget_files(self, params: LinkParams) -> None:
        if len(self.files) > params.most_files:
            self.files = dict(list(self.files.items())[-(params.most_files // 2) :])


class FileIndex:
    """Which open tasks hold a file, and by which names a message may call it: the last components of its path."""

    def __init__(self, tasks: Iterable[TaskEvidence] = (), params: LinkParams = LINK_PARAMS) -> None:
        self._params = params
        self._holders: dict[str, int] = {}
        self._files_of: dict[str, dict[str, None]] = {}
        for task in tasks:
            self.add(task.files)

    def add(self, files: Iterable[str]) -> None:
        """Count files and folders that one more task holds."""
        for file in files:
            self._holders[file] = self._holders.get(file, 0) + 1
            for name in self._names(file):
                self._files_of.setdefault(name, {})[file] = None

    def remove(self, files: Iterable[str]) -> None:
        """Take back what `add` counted, for a task that is closed or forgot files."""
        for file in files:
            self._holders[file] -= 1
            if not self._holders[file]:
                del self._holders[file]
                for name in self._names(file):
                    del self._files_of[name][file]
                    if not self._files_of[name]:
                        del self._files_of[name]

    def holders(self, file: str) -> int:
        """Open tasks that hold a file or folder."""
        return self._holders.get(file, 0)

    def called(self, anchors: Iterable[str]) -> dict[str, float]:
        """Files and folders that anchors name -> weight in (0, 1]; files of one name share it.

        ``auth.py:120`` names ``auth.py``; a bare word without dot or slash names no file.
        """
        found: dict[str, float] = {}
        for anchor in anchors:
            name = file_id(anchor.split(":", 1)[0])
            if "." in name or "/" in name:
                files = self._files_of.get("/".join(name.split("/")[-self._params.most_components :]), {})
                for file in files:
                    found[file] = max(found.get(file, 0.0), 1.0 / len(files))
        return found

    def _names(self, file: str) -> list[str]:
        parts = file.rstrip("/").split("/")
        return ["/".join(parts[-count:]) for count in range(1, min(len(parts), self._params.most_components) + 1)]


@dataclass(frozen=True, slots=True)
class OpenTasks:
    """The open tasks as one message sees them."""

    tasks: Mapping[str, TaskEvidence]
    index: FileIndex
    cores: Mapping[str, Collection[str]]
    """Task -> the anchors of it that count."""
    params: LinkParams = LINK_PARAMS

    def rarity(self, holders: int) -> float:
        """``ln((N + 1) / holders)``, > 0, for 1 <= holders <= N."""
        return log((len(self.tasks) + 1) / holders)

    def file_weight(self, file: str) -> float:
        """Weight of a file or folder; 0.0 when every one of several tasks holds it."""
        weight = self._telling(max(1, self.index.holders(file)))
        return weight * self.params.folder if is_folder(file) else weight

    def word_weight(self, term: str) -> float:
        """The same for an anchor. O(tasks)."""
        holders = sum(term in core for core in self.cores.values())
        return self._telling(holders) if holders else self.unseen_share(term) * self.rarity(1)

    def unseen_share(self, term: str) -> float:
        """Weight of an anchor that no task holds, beside one that a single task holds."""
        return self.params.unseen_ngram if anchor_kind(term) is AnchorKind.NGRAM else self.params.unseen

    def _telling(self, holders: int) -> float:
        return 0.0 if holders == len(self.tasks) > 1 else self.rarity(holders)


def _shares(weights: Mapping[str, float], held: Mapping[str, Collection[str]]) -> dict[str, float] | None:
    """Task -> share of the weights that it holds; None when there is no weight."""
    telling = [(key, weight) for key, weight in weights.items() if weight > 0.0]
    mass = sum(weight for _, weight in telling)
    if not telling:
        return None
    return {task: sum(weight for key, weight in telling if key in keys) / mass for task, keys in held.items()}


def link_scores(
    view: OpenTasks, files: Mapping[str, float], anchors: Mapping[str, float], goals: Collection[str] = ()
) -> dict[str, float]:
    """Link of a message or turn with every open task, in [0, 1]; all 0.0 when nothing tells them apart.

    Args:
        view: the open tasks.
        files: file or folder id -> weight, as `FileIndex.called` gives them or as a turn used them.
        anchors: anchor -> weight, > 0.
        goals: goals that are active; a task scores the share of them that it serves.

    O((files + anchors) x tasks).
    """
    params, tasks = view.params, view.tasks
    file_weights = {file: weight * view.file_weight(file) for file, weight in files.items()}
    word_weights = {term: weight * view.word_weight(term) for term, weight in anchors.items()}
    parts = (
        (params.files, _shares(file_weights, {task: known.files for task, known in tasks.items()})),
        (params.core, _shares(word_weights, view.cores)),
        (params.goal, _shares(dict.fromkeys(goals, 1.0), {task: known.goals for task, known in tasks.items()})),
    )
    there = [(share, scores) for share, scores in parts if scores is not None]
    whole = sum(share for share, _ in there)
    return {task: sum(share * scores[task] for share, scores in there) / whole if whole else 0.0 for task in tasks}


def known_share(view: OpenTasks, anchors: Mapping[str, float]) -> float:
    """Share of a message's anchors that any open task holds, in [0, 1]; 0.0 without anchors.

    Words that all tasks hold tell none from another, but a message full of them is no new subject.
    """
    known = unseen = 0.0
    for term, weight in anchors.items():
        if any(term in core for core in view.cores.values()):
            known += weight
        else:
            unseen += weight * view.unseen_share(term)
    return known / (known + unseen) if known else 0.0


def core_overlap(one: TaskEvidence, other: TaskEvidence, params: LinkParams = LINK_PARAMS) -> float:
    """Shared core anchors of two tasks over those of the smaller core, in [0, 1]; 0.0 when one has none."""
    first, second = one.core(params), other.core(params)
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def file_likeness(view: OpenTasks, one: str, other: str) -> float:
    """Jaccard index of two open tasks' files and folders, weighed by rarity, in [0, 1]. O(files of the two)."""
    first, second = view.tasks[one].files, view.tasks[other].files

    def mass(files: Iterable[str]) -> float:
        return sum(view.rarity(max(1, view.index.holders(file))) for file in sorted(files))

    union = mass(first.keys() | second.keys())
    return mass(first.keys() & second.keys()) / union if union else 0.0
