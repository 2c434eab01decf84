"""Goals and pins, and the bound on what is always sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from context_gatekeeper.core.redact import RedactedSpan, RedactionMode
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.engine import goals as goals_module
from context_gatekeeper.engine.expanding import Expander
from context_gatekeeper.engine.goals import GOALS_SESSION, RESIDENT_TOKENS, Goal, GoalBook, pinned_items
from context_gatekeeper.engine.owner_view import OwnerView
from context_gatekeeper.errors import BudgetError, ConfigError, PageNotFoundError, StoreBusyError
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.stores.sealed import Redactor, SpansInMemory
from context_gatekeeper.types import Page, PageDraft, PageKind, Provenance
from tests.core.secret_samples import secret_samples
from tests.engine.agents import FIXING, POOL, said, session, stored, take_in

SECRET = next(sample.secret for sample in secret_samples() if sample.name == "github ghp")


def nothing_sealed(_text: str) -> tuple[RedactedSpan, ...]:
    return ()


def book_of(store: MemoryStore, owner: str = "") -> GoalBook:
    view = OwnerView(store, POOL, owner)
    redactor = Redactor(store.handle_key(POOL), RedactionMode.KEEP, SpansInMemory())
    return GoalBook(view, Expander(view, nothing_sealed), redactor.redact_draft)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    take_in(store, FIXING)
    take_in(store, session(said("line\n" * 30_000), name="long"))
    return store


def handle_at(store: MemoryStore, name: str, ordinal: int) -> str:
    return OwnerView(store, POOL, "").handle_of(stored(store, name)[ordinal])


# -- goals --------------------------------------------------------------------------------------


def test_a_goal_is_a_page_of_its_own_until_it_is_done_and_after(store: MemoryStore) -> None:
    book = book_of(store)
    first, second = book.set_goal("  Ship the export.  "), book.set_goal("修好登录")
    assert [goal.goal_id for goal in book.goals()] == ["g1", "g2"]
    assert (first.text, first.is_done, second.text) == ("Ship the export.", False, "修好登录")
    assert book.finish_goal("g1").is_done
    assert book.finish_goal("g1").is_done
    assert [goal.is_done for goal in book_of(store).goals()] == [True, False]
    page = OwnerView(store, POOL, "").page_of(first.handle)
    assert (page.kind, page.text, page.labels.provenance) == (PageKind.GOAL, "Ship the export.", Provenance.USER)
    assert first.to_dict() == {
        "goal_id": "g1",
        "text": "Ship the export.",
        "handle": first.handle,
        "tokens": first.tokens,
        "is_done": False,
    }


def test_a_secret_in_a_goal_is_not_stored(store: MemoryStore) -> None:
    assert SECRET not in book_of(store).set_goal(f"use {SECRET}").text
    assert SECRET not in stored(store, GOALS_SESSION)[0].text


def test_goals_of_two_owners_stay_apart(store: MemoryStore) -> None:
    ann, bob = book_of(store, "ann"), book_of(store, "bob")
    ann.set_goal("hers")
    bob.set_goal("his")
    assert [goal.text for goal in ann.goals()] == ["hers"]
    with pytest.raises(ConfigError, match="there is no such goal"):
        ann.finish_goal("g2")


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_blank_goal_is_refused(store: MemoryStore, text: str) -> None:
    with pytest.raises(ConfigError, match="it is blank"):
        book_of(store).set_goal(text)


def test_a_deleted_goal_is_gone(store: MemoryStore) -> None:
    book = book_of(store)
    book.set_goal("one")
    store.delete_pages(POOL, [stored(store, GOALS_SESSION)[0].page_id])
    assert book.goals() == ()


def test_goals_set_by_several_at_once_all_get_their_place() -> None:
    class Overtaken(MemoryStore):
        before: Callable[[], object] = staticmethod(lambda: None)

        def append(
            self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
        ) -> tuple[Page, ...]:
            self.before()
            return super().append(pool, session, drafts, idempotency_key=idempotency_key)

    shared = Overtaken()
    others: list[Goal] = []

    def overtake() -> None:
        shared.before = lambda: None
        others.append(book_of(shared).set_goal("theirs"))

    shared.before = overtake
    assert book_of(shared).set_goal("ours").goal_id == "g2"
    assert [goal.text for goal in book_of(shared).goals()] == ["theirs", "ours"]


def test_who_is_always_overtaken_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goals_module, "_ATTEMPTS", 2)

    class Overtaken(MemoryStore):
        is_inside = False

        def append(
            self, pool: str, session: str, drafts: Sequence[PageDraft], *, idempotency_key: str | None = None
        ) -> tuple[Page, ...]:
            if not self.is_inside:
                self.is_inside = True
                book_of(self).set_goal("theirs")
                self.is_inside = False
            return super().append(pool, session, drafts, idempotency_key=idempotency_key)

    with pytest.raises(StoreBusyError, match="2 times in a row"):
        book_of(Overtaken()).set_goal("ours")


def test_a_goal_that_the_store_refuses_is_an_error() -> None:
    class Refusing(MemoryStore):
        def append(self, *_: object, **__: object) -> tuple[Page, ...]:
            raise ConfigError("page", "it is refused", "pass another")

    with pytest.raises(ConfigError, match="it is refused"):
        book_of(Refusing()).set_goal("ours")


# -- pins ---------------------------------------------------------------------------------------


def test_a_page_or_some_lines_of_it_are_pinned_once(store: MemoryStore) -> None:
    book = book_of(store)
    handle = handle_at(store, "shop/fixing", 4)
    whole, lines = book.pin(handle), book.pin(f"{handle}#L1")
    assert book.pin(f" {handle} ") == whole
    assert [pin.handle for pin in book_of(store).pins()] == [handle, f"{handle}#L1"]
    assert (lines.text, whole.text.startswith(lines.text)) == ("     1\tdef export(orders):\n", True)
    assert whole.to_dict() == {"handle": handle, "text": whole.text, "tokens": whole.tokens}
    book.unpin(handle)
    assert [pin.handle for pin in book.pins()] == [f"{handle}#L1"]


def test_a_block_is_pinned_inside_its_session(store: MemoryStore) -> None:
    book = book_of(store)
    pin = book.pin("p0", "shop/fixing")
    assert (pin.handle, pin.text) == ("shop/fixing p0", "You mend shops.")
    assert book.pin("p0", "shop/fixing") == pin
    book.unpin("p0", "shop/fixing")
    assert book.pins() == ()


def test_what_is_not_pinned_or_not_there_is_told(store: MemoryStore) -> None:
    book = book_of(store)
    for session_name in (None, "shop/fixing"):
        with pytest.raises(ConfigError, match="nothing is pinned"):
            book.unpin("p0", session_name)
    with pytest.raises(PageNotFoundError):
        book.pin("page:aaaaaaaaaaaaaaaa")


def test_pins_of_two_owners_and_of_deleted_pages_do_not_show(store: MemoryStore) -> None:
    book = book_of(store)
    handle = handle_at(store, "shop/fixing", 4)
    book.pin(handle)
    assert book_of(store, "ann").pins() == ()
    store.delete_pages(POOL, [stored(store, "shop/fixing")[4].page_id])
    assert book.pins() == ()


# -- the bound ----------------------------------------------------------------------------------


def test_a_pin_that_alone_is_too_much_is_named(store: MemoryStore) -> None:
    handle = handle_at(store, "long", 0)
    with pytest.raises(BudgetError, match=rf"{handle}: it alone has \d+ tokens of 8000") as refusal:
        book_of(store).pin(handle)
    assert "#L10-40" in str(refusal.value)
    with pytest.raises(BudgetError, match="this goal: it alone has"):
        book_of(store).set_goal("goal " * 9000)
    assert book_of(store).goals() == book_of(store).pins() == ()


def test_pins_that_together_are_too_much_are_named_the_largest_first(store: MemoryStore) -> None:
    book = book_of(store)
    handle = handle_at(store, "long", 0)
    book.set_goal("small")
    large = book.pin(f"{handle}#L1-2500")
    with pytest.raises(
        BudgetError, match=rf"have \d+ of {RESIDENT_TOKENS} \({handle}#L1-2500 {large.tokens}, goal g1"
    ) as told:
        book.pin(f"{handle}#L3000-5000")
    assert "take a pin away" in str(told.value)
    with pytest.raises(BudgetError, match="this goal: with its"):
        book.set_goal("words " * 6000)
    book.unpin(f"{handle}#L1-2500")
    book.pin(f"{handle}#L3000-5000")


def test_a_goal_that_is_done_leaves_its_room(store: MemoryStore) -> None:
    book = book_of(store)
    book.set_goal("words " * 6000)
    with pytest.raises(BudgetError):
        book.set_goal("words " * 6000)
    book.finish_goal("g1")
    assert book.set_goal("words " * 6000).goal_id == "g2"


# -- what is sent -------------------------------------------------------------------------------


def test_active_goals_and_pins_are_sent_with_handle_and_origin(store: MemoryStore) -> None:
    book = book_of(store)
    goal, done = book.set_goal("Ship the export."), book.set_goal("Done already.")
    book.finish_goal(done.goal_id)
    pin = book.pin("p3#L1", "shop/fixing")
    assert book.active() == {"g1": "Ship the export."}
    first, second = pinned_items(book.goals(), book.pins())
    assert (first.handle, first.kind, first.provenance, first.text) == (
        goal.handle,
        PageKind.GOAL,
        Provenance.USER,
        "Ship the export.",
    )
    assert (second.handle, second.kind, second.session, second.text) == (
        "shop/fixing p3#L1",
        PageKind.TURN,
        "shop/fixing",
        pin.text,
    )
    assert pin.to_dict() == {"handle": pin.handle, "text": pin.text, "tokens": pin.tokens}


def test_a_pinned_file_is_sent_with_its_path(store: MemoryStore) -> None:
    pin = book_of(store).pin("p6", "shop/fixing")
    assert (pin.item().kind, pin.item().path) == (PageKind.FILE, "/srv/shop/export.py")


def test_the_bound_counts_what_is_sent_around_goals_too(store: MemoryStore) -> None:
    book = book_of(store)
    words = "word " * (7980 * 1000 // estimate_tokens("word " * 1000))
    assert estimate_tokens(words) < RESIDENT_TOKENS
    with pytest.raises(BudgetError, match="it alone has"):
        book.set_goal(words)
    assert book.set_goal("word " * 7800).tokens < RESIDENT_TOKENS


@pytest.mark.parametrize("session", [None, "shop/fixing"])
def test_a_pin_leaves_by_the_form_in_which_it_is_listed(store: MemoryStore, session: str | None) -> None:
    book = book_of(store)
    pin = book.pin("p6#L1", "shop/fixing")
    assert pin.handle == "shop/fixing p6#L1"
    book.unpin(pin.handle, session)
    assert book.pins() == ()
