"""Files of an agent as pages: versions, marks, what is deleted for good, and what is left of a lost race."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from context_gatekeeper.core.redact import RedactedSpan, RedactionMode, redact
from context_gatekeeper.engine import memory_files
from context_gatekeeper.engine.memory_files import MemoryBook, MemoryChange, memory_session
from context_gatekeeper.engine.owner_view import OwnerView
from context_gatekeeper.errors import MemoryCommandError
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.stores.sealed import Redactor, SpansInMemory
from context_gatekeeper.types import PageDraft, PageKind, PageLabels, Provenance, Role
from tests.core.secret_samples import secret_samples
from tests.engine.agents import POOL, said, session, stored, take_in

SECRET = next(sample.secret for sample in secret_samples() if sample.name == "github ghp")


class SpansThatAreCounted(SpansInMemory):
    """Knows what was sealed."""

    def __init__(self) -> None:
        super().__init__()
        self.sealed: list[str] = []

    def seal(self, redactions: Sequence[object], owner: str = "") -> None:
        super().seal(redactions, owner)  # type: ignore[arg-type]
        self.sealed += (one.text for one in redactions if one.spans)  # type: ignore[attr-defined]


def book_of(store: MemoryStore, spans: SpansInMemory | None = None, owner: str = "ann") -> MemoryBook:
    kept = SpansInMemory() if spans is None else spans
    key = store.handle_key(POOL)
    redactor = Redactor(key, RedactionMode.KEEP, kept)

    def spans_of(text: str) -> Sequence[RedactedSpan]:
        return kept.spans_of(text, owner)

    view = OwnerView(store, POOL, owner)
    return MemoryBook(view, spans_of, redactor.redact_draft, lambda text: redact(text, key).text)


def put(book: MemoryBook, *changes: MemoryChange) -> None:
    book.change(lambda _files: changes)


def test_changes_are_made_together_and_seen_by_every_book() -> None:
    store = MemoryStore()
    book, other = book_of(store), book_of(store)
    put(book, MemoryChange("b", "2"), MemoryChange("a", "1"))
    assert book.files() == other.files() == {"a": "1", "b": "2"}
    assert list(book.files()) == ["a", "b"]
    put(other, MemoryChange("b", None), MemoryChange("a", "", "b"))
    assert book.files() == other.files() == {"a": ""}
    assert book_of(store, owner="bob").files() == {}
    assert memory_session("ann") != memory_session("bob")


def test_a_change_is_asked_again_when_somebody_else_was_faster_and_nothing_of_the_first_is_sealed() -> None:
    store, spans = MemoryStore(), SpansThatAreCounted()
    book, other = book_of(store, spans), book_of(store, spans)
    seen: list[dict[str, str]] = []

    def edit(files: Mapping[str, str]) -> Sequence[MemoryChange]:
        seen.append(dict(files))
        if len(seen) == 1:
            put(other, MemoryChange("a", "faster"))
            book.files()  # what came in between is known now
        return [MemoryChange("a", f"{files.get('a', '')} {SECRET} {len(seen)}")]

    book.change(edit)
    assert seen == [{}, {"a": "faster"}]
    assert book.files() == other.files() == {"a": f"faster {SECRET} 2"}
    assert [text.rpartition(" ")[2] for text in spans.sealed] == ["2"]


def test_of_two_who_store_at_the_same_time_one_is_asked_again() -> None:
    store = MemoryStore()
    book, other = book_of(store), book_of(store)
    asked = 0

    def edit(files: Mapping[str, str]) -> Sequence[MemoryChange]:
        nonlocal asked
        asked += 1
        if asked == 1:
            put(other, MemoryChange("a", "faster"))
        return [MemoryChange("a", f"{files.get('a', '')}+")]

    book.change(edit)
    assert (asked, book.files()) == (2, {"a": "faster+"})


def test_a_refusal_stores_nothing() -> None:
    store = MemoryStore()
    book = book_of(store)

    def refuse(_files: Mapping[str, str]) -> Sequence[MemoryChange]:
        raise MemoryCommandError("no")

    with pytest.raises(MemoryCommandError):
        book.change(refuse)
    with pytest.raises(MemoryCommandError, match="a secret"):
        put(book, MemoryChange("a", "1"), MemoryChange(SECRET, "2"))
    assert store.page_count(POOL, memory_session("ann")) == 0


def test_a_version_that_is_deleted_for_good_leaves_the_one_before() -> None:
    store = MemoryStore()
    book, other = book_of(store), book_of(store)
    for text in ("1", "2", "3"):
        put(book, MemoryChange("a", text))
    assert other.files() == {"a": "3"}
    newest = book.versions("a")[-1]
    store.delete_pages(POOL, [newest.page_id])
    assert book.files() == other.files() == {"a": "2"}
    store.delete_pages(POOL, [page.page_id for page in book.versions("a")])
    assert book.files() == other.files() == {}
    put(book, MemoryChange("a", "4"))
    assert [page.labels.supersedes for page in book.versions("a")] == [None]


def test_versions_of_a_file_are_those_of_its_path_and_those_that_it_came_from() -> None:
    store = MemoryStore()
    book = book_of(store)
    put(book, MemoryChange("d/a", "1"))
    put(book, MemoryChange("d/a", "2"))
    put(book, MemoryChange("d/a", None), MemoryChange("b", "2", "d/a"))
    put(book, MemoryChange("d/a", "new"))
    put(book, MemoryChange("dd", "other"))
    assert [page.text for page in book.versions("b")] == ["1", "2", "2"]
    assert [page.text for page in book.versions("d")] == ["1", "2", "", "new"]
    assert [page.text for page in book.versions("d/a")] == ["1", "2", "", "new"]
    assert book.versions("x") == ()
    store.delete_pages(POOL, [page.page_id for page in book.versions("b")])
    assert book.files() == {"d/a": "new", "dd": "other"}
    assert [page.text for page in book.versions("d/a")] == ["", "new"]


def test_versions_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_files, "MOST_HISTORY_BYTES", 2000)
    store = MemoryStore()
    book = book_of(store)
    for _ in range(3):
        put(book, MemoryChange("a", "x"))
    with pytest.raises(MemoryCommandError, match="too many old versions"):
        put(book, MemoryChange("a", "x" * 600))
    with pytest.raises(MemoryCommandError, match="too many old versions"):
        put(book, MemoryChange("a", None))
    store.delete_pages(POOL, [page.page_id for page in book.versions("a")[:-1]])
    put(book_of(store), MemoryChange("a", "x" * 600))
    assert book.files() == {"a": "x" * 600}


def test_pages_of_others_in_the_session_are_no_files() -> None:
    store = MemoryStore()
    assert take_in(store, session(said("hello"), name="cgk:memory"), owner="ann").session != memory_session("ann")
    name = memory_session("ann")
    foreign = PageLabels(owner="eve", path="a", origin="memory-file", provenance=Provenance.ASSISTANT)
    turn = store.page_count(POOL, name) // 2
    drafts = [PageDraft(turn, Role.USER, "evil", kind=PageKind.FILE, labels=foreign)]
    store.append(POOL, name, [*drafts, PageDraft(turn, Role.ASSISTANT, "")])
    assert len(stored(store, name)) == 2
    book = book_of(store)
    assert book.files() == {}
    put(book, MemoryChange("a", "mine"))
    assert book.files() == {"a": "mine"}
