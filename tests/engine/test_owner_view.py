"""What one owner may see of a pool."""

from __future__ import annotations

from dataclasses import replace

import pytest

from context_gatekeeper.core.handles import handle_of
from context_gatekeeper.engine.owner_view import OwnerView, SessionFacts, may_see, read_facts
from context_gatekeeper.errors import PageNotFoundError
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.types import PageDraft, PageId, PageLabels, PageScope, Provenance, Role, SessionEvent
from tests.engine.agents import FIXING, POOL, said, session, stored, take_in


@pytest.mark.parametrize(
    ("labels", "owner", "may"),
    [
        (PageLabels(), "", True),
        (PageLabels(), "ann", False),
        (PageLabels(owner="ann"), "ann", True),
        (PageLabels(owner="ann"), "", False),
        (PageLabels(owner="ann", acl=("bob",)), "bob", True),
        (PageLabels(owner="ann", acl=("bob",)), "eve", False),
        (PageLabels(owner="ann", scope=PageScope.SHARED), "eve", True),
        (PageLabels(owner="ann", scope=PageScope.KNOWLEDGE), "eve", True),
    ],
)
def test_own_named_and_shared_pages_are_seen(labels: PageLabels, owner: str, may: bool) -> None:
    assert may_see(labels, owner) is may


def test_facts_come_back_as_they_were_noted() -> None:
    facts = SessionFacts("id", "codex", "/srv", "ann", (SessionEvent("compact", None, 5), SessionEvent("micro", 1.5)))
    assert read_facts({"agent-session": facts.to_json()}) == facts
    assert read_facts({"language": "zh"}) is None


def shared_store() -> MemoryStore:
    store = MemoryStore()
    take_in(store, FIXING, owner="ann")
    take_in(store, session(said("mine"), name="bobs"), owner="bob")
    shared = PageLabels(owner="ann", acl=("bob",), provenance=Provenance.USER)
    secret = replace(shared, acl=())
    turn = [PageDraft(0, Role.USER, "for bob", labels=shared), PageDraft(0, Role.ASSISTANT, "for ann", labels=secret)]
    store.append(POOL, "shared", turn)
    store.set_setting(POOL, "shared", "agent-session", SessionFacts("shared", "test", owner="ann").to_json())
    store.append(POOL, "chat", [PageDraft(0, Role.USER, "hi"), PageDraft(0, Role.ASSISTANT, "")])
    return store


def test_sessions_and_pages_of_others_are_not_there() -> None:
    store = shared_store()
    ann, bob, eve = (OwnerView(store, POOL, owner) for owner in ("ann", "bob", "eve"))
    assert [name for name, _ in ann.sessions()] == ["shop/fixing@ann", "shared"]
    assert [name for name, _ in bob.sessions()] == ["bobs@bob", "shared"]
    assert list(eve.sessions()) == []
    assert [page.text for page in bob.pages("shared")] == ["for bob"]
    assert [page.text for page in ann.pages("shared")] == ["for bob", "for ann"]
    for view, name in ((eve, "shared"), (bob, "shop/fixing@ann"), (ann, "chat"), (ann, "nobody")):
        with pytest.raises(PageNotFoundError, match="no such agent session"):
            view.facts(name)


def test_absent_deleted_and_forbidden_pages_give_one_error() -> None:
    store = shared_store()
    bob = OwnerView(store, POOL, "bob")
    key = store.handle_key(POOL)
    own, anns = stored(store, "bobs@bob")[0], stored(store, "shared")[1]
    gone = stored(store, "shop/fixing@ann")[0]
    store.delete_pages(POOL, [gone.page_id])
    assert bob.page_of(bob.handle_of(own)) == own
    handles = [handle_of(page_id, key) for page_id in (anns.page_id, gone.page_id, PageId(1 << 40))]
    errors = []
    for handle in handles:
        with pytest.raises(PageNotFoundError) as refusal:
            bob.page_of(handle)
        errors.append(str(refusal.value).replace(handle, "HANDLE"))
    assert len(set(errors)) == 1
    assert list(bob.live([own.page_id, anns.page_id, gone.page_id])) == [own]
