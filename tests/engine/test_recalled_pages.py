"""From hits to what is shown: each text once, two versions of a file, excerpts, ages, marks."""

from __future__ import annotations

from context_gatekeeper.engine.card_notes import card_draft, cards_session
from context_gatekeeper.engine.owner_view import OwnerView
from context_gatekeeper.engine.recalled_pages import EXCERPT_CHARS, RecalledPage, recalled_pages
from context_gatekeeper.engine.session_recall import SessionHit, SessionRecall
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.types import AgentSession, PageDraft, PageId, PageKind, PageLabels, Provenance, Role
from tests.engine.agents import FIXING, POOL, answered, call, gave, returned, said, session, stored, take_in


def recalled(
    store: MemoryStore, query: str, *names: str, limit: int = 5, now: float | None = None, owner: str = ""
) -> tuple[RecalledPage, ...]:
    hits = SessionRecall(store, POOL).find(query, names, limit=40)
    return recalled_pages(query, hits, OwnerView(store, POOL, owner), limit=limit, now=now)


def holding(*sessions: AgentSession) -> MemoryStore:
    store = MemoryStore()
    for one in sessions:
        take_in(store, one)
    return store


def test_equal_texts_come_once_the_newest_with_their_number() -> None:
    """O32: the second slot is for something else."""
    text = "The migration needs lock_timeout set to two seconds. " * 8
    store = holding(
        session(said(text, time=100.0), name="a"),
        session(said(text, time=300.0), name="b"),
        session(said(text, time=200.0), said("lock_timeout of another migration"), name="c"),
    )
    first, second = recalled(store, "migration lock_timeout", "a", "b", "c", limit=2)
    assert {first.item.copies, second.item.copies} == {3, 1}
    tripled = first if first.item.copies == 3 else second
    assert (tripled.item.session, tripled.time) == ("b", 300.0)


def test_the_copies_of_a_fork_do_not_fill_the_result() -> None:
    rewound = AgentSession(FIXING.session_id, "test", (*FIXING.messages[:9], said("Stop.")), (), "/srv/shop")
    store = holding(FIXING, rewound)
    pages = recalled(store, "generator TypeError subscriptable", "shop/fixing", "shop/fixing~2")
    assert pages[0].item.copies == 2
    assert len({page.item.text for page in pages}) == len(pages)


def test_of_one_file_two_versions_are_shown() -> None:
    versions = [
        message
        for number in range(5)
        for message in (
            answered(call(f"c{number}", "Read", file_path="/srv/config.toml")),
            returned(gave(f"c{number}", f"timeout_seconds = {number}")),
        )
    ]
    pages = recalled(holding(session(*versions)), "timeout_seconds config.toml", "s", limit=10)
    files = [page.item for page in pages if page.item.path]
    assert len(files) == 2
    assert all(item.superseded_by.startswith("page:") for item in files if "= 4" not in item.text)


def test_a_page_tells_where_it_is_from_how_old_it_is_and_what_came_after() -> None:
    store = holding(FIXING)
    page = next(one for one in recalled(store, "def export orders row", "shop/fixing", now=500.0) if one.item.path)
    view = OwnerView(store, POOL, "")
    pages = {one.ordinal: view.handle_of(one) for one in stored(store, "shop/fixing")}
    assert (page.item.handle, page.item.tool, page.ordinal) == (pages[page.ordinal], "Read", 4)
    assert (page.item.superseded_by, page.item.changed_by) == (pages[14], pages[8])
    assert (page.item.provenance, page.item.age_seconds) == (Provenance.FILE, None)
    told = page.to_dict()
    assert (told["handle"], told["provenance"], told["path"]) == (pages[4], "file", "/srv/shop/export.py")
    (aged,) = recalled(holding(session(said("zebra", time=100.0))), "zebra", "s", now=160.0)
    assert aged.item.age_seconds == 60.0
    (early,) = recalled(holding(session(said("zebra", time=100.0))), "zebra", "s", now=50.0)
    assert early.item.age_seconds == 0.0


def test_an_answer_is_told_by_the_tools_that_it_calls() -> None:
    pages = recalled(holding(FIXING), "I look at the query and the tests", "shop/fixing")
    assert pages[0].item.tool == "Read, Grep"


def test_a_long_page_comes_by_the_lines_that_tell_it() -> None:
    lines = [f"worker {number} idle" for number in range(900)]
    lines[700] = "worker 700 lost its lease"
    store = holding(session(answered(call("c", "Bash")), returned(gave("c", "\n".join(lines)))))
    page = recalled(store, "lost lease", "s")[0]
    assert "worker 700 lost its lease" in page.item.text
    assert f"{page.item.handle}#L" in page.item.text
    assert len(page.item.text) < EXCERPT_CHARS + 400


def test_what_may_not_be_seen_or_was_deleted_leaves_its_slot() -> None:
    store = MemoryStore()
    anns = take_in(store, session(said("the zebra of ann"), name="anns"), owner="ann").session
    bobs = take_in(store, session(said("the zebra of bob"), name="bobs"), owner="bob").session
    hits = SessionRecall(store, POOL).find("zebra", (anns, bobs), limit=9)
    assert [one.item.session for one in recalled_pages("zebra", hits, OwnerView(store, POOL, "bob"), limit=9)] == [bobs]
    store.delete_pages(POOL, [stored(store, bobs)[0].page_id])
    assert recalled_pages("zebra", hits, OwnerView(store, POOL, "bob"), limit=9) == ()


def test_no_hits_are_no_pages() -> None:
    hits: list[SessionHit] = []
    assert recalled_pages("zebra", hits, OwnerView(MemoryStore(), POOL, ""), limit=5) == ()


# -- cards --------------------------------------------------------------------------------------

CARD_LABELS = PageLabels(provenance=Provenance.DERIVED, task_id="t1")


def with_card(store: MemoryStore, text: str, *cited: int) -> PageId:
    """A card of session ``s`` that quotes the pages of these turns."""
    pages = stored(store)
    draft = card_draft(
        PageDraft(0, Role.USER, text, kind=PageKind.CARD, labels=CARD_LABELS),
        [pages[2 * turn].page_id for turn in cited],
    )
    page, _ = store.append(POOL, cards_session("s"), (draft, PageDraft(0, Role.ASSISTANT, "")))
    return page.page_id


def shown(store: MemoryStore, query: str, card: PageId | None, limit: int = 5) -> list[tuple[str, str]]:
    hits = SessionRecall(store, POOL).find(query, ("s", cards_session("s")), limit=40)
    cards = () if card is None else (card,)
    found = recalled_pages(query, hits, OwnerView(store, POOL, ""), limit=limit, cards=cards)
    assert {page.item.session for page in found} <= {"s"}
    return [(page.item.kind.value, page.item.text) for page in found]


def test_a_card_that_tells_all_that_was_asked_for_stands_in_the_place_of_what_it_quotes() -> None:
    store = holding(session(said("the zebra is striped"), said("an okapi is shy"), said("a quokka smiles at okapi")))
    card = with_card(store, "- zebra [p0]\n- okapi [p1]", 0, 1)
    assert shown(store, "zebra okapi", card) == [
        ("card", "- zebra [p0]\n- okapi [p1]"),
        ("turn", "a quokka smiles at okapi"),
    ]


def test_a_page_that_holds_what_its_card_left_out_is_given_instead_of_it() -> None:
    store = holding(session(said("the zebra eats okapi food, 42 bags of acacia"), said("nothing else")))
    card = with_card(store, "- zebra okapi zebra okapi [p0]", 0)
    assert [kind for kind, _ in shown(store, "zebra okapi acacia", card)] == ["turn"]


def test_a_card_stands_beside_pages_that_it_does_not_quote() -> None:
    store = holding(session(said("the zebra is striped"), said("zebra crossing"), said("some long walk")))
    card = with_card(store, "- zebra zebra walk [p2]", 2)
    kinds = [kind for kind, _ in shown(store, "zebra", card)]
    assert sorted(kinds) == ["card", "turn", "turn"]


def test_a_card_that_is_superseded_is_not_given() -> None:
    store = holding(session(said("the zebra is striped")))
    with_card(store, "- zebra [p0]", 0)
    assert [kind for kind, _ in shown(store, "zebra", None)] == ["turn"]
