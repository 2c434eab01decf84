"""MemoryBook: small files that an agent keeps for itself, as pages of a session of their own.

Each change of a file is a new page, which supersedes the one before it; what is gone is marked by a page without text,
so that every older version stays until its owner deletes it. Names are labels of pages and never become paths of a
disk. A change is worked out from the files as they are and stored only when nobody was faster, else worked out again:
writers of several threads or processes lose nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from context_gatekeeper.core.redact import RedactedSpan, join
from context_gatekeeper.engine.agent_pages import empty_page, finish_draft
from context_gatekeeper.engine.goals import append_apart
from context_gatekeeper.engine.importing import owned_name
from context_gatekeeper.engine.owner_view import OwnerView
from context_gatekeeper.errors import ConfigError, MemoryCommandError
from context_gatekeeper.types import Page, PageDraft, PageId, PageKind, PageLabels, Provenance, Role

__all__ = ["MOST_HISTORY_BYTES", "MemoryBook", "MemoryChange", "memory_session"]

MOST_HISTORY_BYTES = 1 << 28
"""Of all versions of one owner's files together."""
_PAGE_BYTES = 512
"""What a version takes beside its text, about."""
_MEMORY = "cgk:memory"
_FILE, _GONE = "memory-file", "memory-gone"
"""Origins of the page of a version, and of one that says that a file is gone."""


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """What becomes of one file."""

    path: str
    text: str | None
    """The new text; None when the file is gone."""
    moved_from: str = ""
    """The file that it was until now."""


@dataclass(frozen=True, slots=True)
class _Version:
    """A page of a file."""

    page_id: PageId
    path: str
    size: int
    supersedes: PageId | None
    is_gone: bool


def memory_session(owner: str) -> str:
    """Name of the session that keeps an owner's files."""
    return owned_name(_MEMORY, owner)


class MemoryBook:
    """The files of one owner in one pool. For one thread at a time.

    Args:
        view: the pool as he sees it.
        spans_of: his redacted text -> what its placeholders stand for.
        redact: makes a draft what may be stored.
        redact_text: the same for a name, of which nothing is sealed.
    """

    def __init__(
        self,
        view: OwnerView,
        spans_of: Callable[[str], Sequence[RedactedSpan]],
        redact: Callable[[PageDraft], PageDraft],
        redact_text: Callable[[str], str],
    ) -> None:
        self._view = view
        self._spans_of = spans_of
        self._redact = redact
        self._redact_text = redact_text
        self._session = memory_session(view.owner)
        self._read_again()

    def files(self) -> dict[str, str]:
        """Path -> text of the files that there are, in the order of paths. O(their text) and new versions."""
        self._catch_up()
        pages = self._current_pages()
        if any(page.labels.deleted for page in pages):  # somebody deleted them for good: older ones may be current
            self._read_again()
            self._catch_up()
            pages = self._current_pages()
        texts = {page.labels.path: join(page.text, self._spans_of(page.text)) for page in pages}
        return dict(sorted(texts.items()))

    def change(self, edit: Callable[[Mapping[str, str]], Sequence[MemoryChange]]) -> None:
        """Change files, all or none.

        Args:
            edit: files as of `files` -> what is to change, at least one change. It is asked again when somebody else
                was faster, and may refuse by an error.

        Raises:
            MemoryCommandError: a name holds a secret, or there are too many versions. StoreError: nothing is stored.
        """

        def sides(turn_id: int) -> Sequence[PageDraft]:
            changes = edit(self.files())
            if self._count != 2 * turn_id:  # before a text that will not be stored is sealed
                raise ConfigError(f"session {self._session!a}", "another writer was first", "read it again")
            self._check_history(changes)
            return [draft for number, one in enumerate(changes, turn_id) for draft in self._drafted(one, number)]

        append_apart(self._view, self._session, sides)

    def versions(self, path: str) -> tuple[Page, ...]:
        """Every page that a file, or the files of a folder, ever had, and those that they came from; oldest first."""
        self._read_again()
        self._catch_up()
        found = {one.page_id for one in self._versions.values() if one.path == path or one.path.startswith(f"{path}/")}
        waiting = list(found)
        while waiting:
            older = self._versions[waiting.pop()].supersedes
            if older in self._versions and older not in found:
                found.add(older)
                waiting.append(older)
        return tuple(self._view.live(page_id for page_id in self._versions if page_id in found))

    # -- inside -----------------------------------------------------------------------------

    def _read_again(self) -> None:
        self._count = 0
        self._bytes = 0
        self._versions: dict[PageId, _Version] = {}
        self._newest: dict[str, _Version] = {}

    def _catch_up(self) -> None:
        """Learn the pages behind those that are known."""
        for page in self._view.store.scan(self._view.pool, self._session, from_ordinal=self._count):
            self._count = page.ordinal + 1
            labels = page.labels
            if labels.deleted or labels.owner != self._view.owner or labels.origin not in (_FILE, _GONE):
                continue
            size = len(page.text.encode("utf-8", "surrogatepass"))
            one = _Version(page.page_id, labels.path, size, labels.supersedes, labels.origin == _GONE)
            self._bytes += size + _PAGE_BYTES
            self._versions[one.page_id] = self._newest[one.path] = one

    def _current_pages(self) -> tuple[Page, ...]:
        page_ids = [one.page_id for one in self._newest.values() if not one.is_gone]
        return self._view.store.get(self._view.pool, page_ids)

    def _check_history(self, changes: Iterable[MemoryChange]) -> None:
        new = sum(len((one.text or "").encode("utf-8", "surrogatepass")) + _PAGE_BYTES for one in changes)
        if self._bytes + new > MOST_HISTORY_BYTES:
            raise MemoryCommandError("The memory holds too many old versions: its owner has to delete some first.")

    def _drafted(self, change: MemoryChange, turn_id: int) -> tuple[PageDraft, PageDraft]:
        """The page of a change, and the empty one on the other side of its turn."""
        if self._redact_text(change.path) != change.path:
            raise MemoryCommandError("The path holds what looks like a secret. Please choose another name.")
        older = self._newest.get(change.moved_from or change.path)
        labels = PageLabels(
            owner=self._view.owner,
            path=change.path,
            provenance=Provenance.ASSISTANT,
            origin=_GONE if change.text is None else _FILE,
        )
        draft = self._redact(PageDraft(turn_id, Role.USER, change.text or "", kind=PageKind.FILE, labels=labels))
        page = finish_draft(draft, turn_id, None if older is None else older.page_id)
        return page, empty_page(turn_id, Role.ASSISTANT, self._view.owner)
