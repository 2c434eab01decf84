"""What a reader is shown of a session."""

from __future__ import annotations

from dataclasses import replace

from context_gatekeeper.engine.owner_view import OwnerView, SessionFacts
from context_gatekeeper.engine.session_view import (
    PageMarks,
    SessionTotals,
    file_marks,
    session_of,
    view_pages,
)
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.types import AgentSession, Page, SessionEvent
from tests.engine.agents import FIXING, POOL, answered, call, gave, returned, said, session, stored, take_in


def handle(page: Page) -> str:
    return f"page:{page.ordinal}"


def fixing() -> tuple[MemoryStore, list[Page]]:
    store = MemoryStore()
    take_in(store, FIXING)
    return store, stored(store, "shop/fixing")


def test_a_file_page_tells_what_came_after_it() -> None:
    _, pages = fixing()
    assert file_marks(pages, "/srv/shop") == {4: PageMarks(superseded_by=14, changed_by=8)}


def test_pages_without_versions_have_no_marks() -> None:
    store = MemoryStore()
    take_in(store, session(said("hi"), answered(call("c", "Bash", command="ls")), returned(gave("c", "a"))))
    assert file_marks(stored(store)) == {}


def test_an_edit_alone_marks_and_supersedes_nothing() -> None:
    store = MemoryStore()
    reads = (answered(call("r", "Read", file_path="/a")), returned(gave("r", "1")))
    edits = (answered(call("e", "Edit", file_path="/a")), returned(gave("e", "ok")))
    take_in(store, session(*reads, *edits))
    (marks,) = file_marks(stored(store)).values()
    assert (marks.superseded_by, marks.changed_by is not None) == (None, True)


def test_every_page_that_holds_something_is_shown_with_its_marks() -> None:
    store, pages = fixing()
    store.delete_pages(POOL, [pages[0].page_id])
    views = view_pages(stored(store, "shop/fixing"), "/srv/shop", handle)
    assert [view.ordinal for view in views] == [0, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    deleted, _, answer, read, *_ = views
    assert (deleted.is_deleted, deleted.blocks, deleted.provenance, deleted.head) == (True, "", "", "")
    assert (answer.blocks, answer.tool, answer.role, answer.kind) == ("p2-p5", "Read,Grep", "assistant", "turn")
    assert (read.blocks, read.tool, read.path, read.kind) == ("p6", "Read", "/srv/shop/export.py", "file")
    assert (read.superseded_by, read.changed_by) == ("page:14", "page:8")
    assert read.head == "1 def export(orders): 2 return [row(o) for o in orders]"
    assert [view.ordinal for view in views if view.is_error] == [10]
    assert read.to_dict()["provenance"] == "file"
    assert all(view.tokens > 0 for view in views[1:])


def test_totals_add_up_over_sessions() -> None:
    store, pages = fixing()
    totals = SessionTotals()
    totals.add(pages, "/srv/shop")
    assert (totals.pages, totals.blocks, totals.superseded, totals.changed, totals.errors) == (14, 17, 1, 1, 1)
    assert totals.kinds == {"turn": 9, "file": 2, "tool": 3}
    assert totals.tokens == sum(totals.kind_tokens.values()) > 100
    assert totals.chars == sum(len(page.text) for page in pages)
    store.delete_pages(POOL, [pages[2].page_id])
    totals.add(stored(store, "shop/fixing"), "/srv/shop")
    told = totals.to_dict()
    assert (told["pages"], told["deleted"], told["kinds"]["tool"]) == (27, 1, 6)


def test_the_session_comes_back_message_by_message() -> None:
    store = MemoryStore()
    events = (SessionEvent("compact", 9.0, 5),)
    one = replace(FIXING, events=events)
    take_in(store, one)
    view = OwnerView(store, POOL, "")
    facts = view.facts("shop/fixing")
    assert facts == SessionFacts("shop/fixing", "test", "/srv/shop", "", events)
    again = session_of("shop/fixing", facts, view.pages("shop/fixing"))
    assert again == AgentSession("shop/fixing", "test", one.messages, events, "/srv/shop")
