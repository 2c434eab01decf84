"""Two owners and a shared page that holds a secret: its owner gets it, the other one the placeholder (T2, T7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.core.redact import PLACEHOLDER_START, RedactionMode
from context_gatekeeper.engine.agent_pages import empty_page, finish_draft
from context_gatekeeper.entrypoints.mcp.tools import PoolTools, ToolScope
from context_gatekeeper.memory_tool import PoolMemory
from context_gatekeeper.stores import open_store
from context_gatekeeper.stores.sealed import Redactor, SealedSpans
from context_gatekeeper.types import PageDraft, PageLabels, PageScope, Provenance, Role
from tests.core.secret_samples import secret_samples
from tests.engine.agents import POOL, said, session

SECRET = next(sample.secret for sample in secret_samples() if sample.name == "github ghp")
TEXT = f"The zeppelin flies at noon.\nIts token is {SECRET}, keep it.\nThe mast is free.\n"
NAME = "mixed@ann"
SHARED = {
    "named": PageLabels(owner="ann", acl=("bob",), provenance=Provenance.USER),
    "shared": PageLabels(owner="ann", scope=PageScope.SHARED, provenance=Provenance.USER),
    "knowledge": PageLabels(owner="ann", scope=PageScope.KNOWLEDGE, provenance=Provenance.TOOL),
}


@dataclass
class Desk:
    """A pool file with a session of ann's, of which bob may see one page, with a secret."""

    folder: Path

    def pool(self, owner: str) -> AgentPool:
        return AgentPool(self.folder / "pages.db", owner=owner, sealed_folder=self.folder / "sealed")

    def tools(self, owner: str) -> PoolTools:
        scope = ToolScope(
            str(self.folder / "pages.db"),
            owner=owner,
            session=NAME,
            allows_writing=True,
            sealed_folder=str(self.folder / "sealed"),
        )
        return PoolTools(scope)

    def share(self, labels: PageLabels) -> None:
        path = self.folder / "pages.db"
        store = open_store(path)
        sealed = SealedSpans(self.folder / "sealed", str(path.resolve()))
        redactor = Redactor(store.handle_key(POOL), RedactionMode.KEEP, sealed)
        draft = redactor.redact_draft(PageDraft(1, Role.USER, TEXT, labels=labels))
        store.append(POOL, NAME, [finish_draft(draft, 1), finish_draft(empty_page(1, Role.ASSISTANT, "ann"), 2)])
        store.close()


@pytest.fixture(params=sorted(SHARED))
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    with made.pool("ann") as ann:
        ann.import_session(session(said("for ann alone"), name="mixed"))
    made.share(SHARED[request.param])
    return made


def handle_of(pool: AgentPool) -> str:
    return pool.pages(NAME)[-1].handle


def everything(pool: AgentPool, handle: str) -> dict[str, str]:
    """All that a pool tells of the page, by the way in which it is asked."""
    pieces: dict[str, Any] = {
        "whole": {},
        "lines": {"lines": (2, 2)},
        "characters": {"characters": (0, 90)},
        "pattern": {"pattern": "token"},
        "regex": {"pattern": "to+ken", "regex": True},
        "apart": {"joins_secrets": False},
    }
    told = {name: pool.expand(handle, **wanted).text for name, wanted in pieces.items()}
    told["range"] = pool.expand(f"{handle}#L1-3").text
    told["block"] = pool.expand("p1", session=NAME).text
    file = Path(pool.expand(handle, as_file=True).file)
    told["file"] = file.read_text(encoding="utf-8")
    file.unlink()
    told["recall"] = pool.recall("zeppelin token mast").text
    told["session"] = repr(pool.session(NAME))
    told["pages"] = repr(pool.pages(NAME))
    told["cards"] = repr(pool.cards(NAME))
    told["session card"] = repr(pool.session_card(NAME))
    told["card pages"] = repr(pool.card_pages(NAME)) + pool.quoted_cards(NAME)
    told["plan"] = repr(pool.plan(NAME)) + repr(pool.explain(NAME))
    told["pin"] = repr(pool.pin(handle)) + repr(pool.pin("p1#L2", session=NAME)) + repr(pool.pins())
    return told


JOINED = ("whole", "lines", "characters", "pattern", "regex", "range", "block", "file")


def test_only_the_owner_gets_the_secret_back(desk: Desk) -> None:
    with desk.pool("ann") as ann:
        handle = handle_of(ann)
        hers = everything(ann, handle)
    assert hers["whole"] == hers["block"] == hers["file"] == TEXT
    assert {name for name, text in hers.items() if SECRET in text} == set(JOINED)
    with desk.pool("bob") as bob:
        his = everything(bob, handle)
        assert [bob.expand(handle).secrets_joined, bob.expand("p1", session=NAME).secrets_joined] == [0, 0]
    assert [name for name, text in his.items() if SECRET in text or SECRET[8:20] in text] == []
    assert all(PLACEHOLDER_START in his[name] for name in JOINED)
    assert his["whole"] == hers["apart"]


def test_what_is_asked_for_tells_nobody_else_whether_a_guess_is_right(desk: Desk) -> None:
    with desk.pool("ann") as ann, desk.pool("bob") as bob:
        handle = handle_of(ann)
        assert len(ann.expand(handle, pattern=SECRET).slices) == 1
        assert bob.expand(handle, pattern=SECRET).slices == bob.expand(handle, pattern="ghp_").slices == ()
        stored = bob.expand(handle).text
        for end in range(len(stored) + 1):
            for joins_secrets in (True, False):  # nor how long it is
                shown = bob.expand(handle, characters=(0, end), joins_secrets=joins_secrets).text
                assert shown == stored[:end]


def test_through_mcp_too(desk: Desk) -> None:
    hers, his = desk.tools("ann"), desk.tools("bob")
    with desk.pool("ann") as ann:
        handle = handle_of(ann)
    for arguments in ({"handle": handle}, {"handle": "p1"}, {"handle": handle, "grep": "token"}):
        assert SECRET in hers.call("cgk_expand", arguments).text
        result = his.call("cgk_expand", arguments)
        assert (result.is_error, SECRET in result.text, PLACEHOLDER_START in result.text) == (False, False, True)
    for tool, arguments in (("cgk_recall", {"query": "zeppelin token"}), ("cgk_pin", {"handle": handle})):
        result = his.call(tool, arguments)
        assert (result.is_error, SECRET in result.text) == (False, False)
    hers.close()
    his.close()


def test_a_copy_of_the_stored_text_gives_its_new_owner_no_secret(desk: Desk) -> None:
    with desk.pool("bob") as bob:
        copied = bob.expand(handle_of(bob)).text
        bob.import_session(session(said(copied), name="copied"))
        assert bob.expand("p0", session="copied").text == copied
        memory = PoolMemory(bob)
        memory.run({"command": "create", "path": "/memories/copied.md", "file_text": copied})
        assert SECRET not in memory.run({"command": "view", "path": "/memories/copied.md"})
        assert bob.set_goal(copied).text == copied.strip()
        assert SECRET not in repr(bob.goals())


def test_what_one_owner_deletes_leaves_the_secret_of_the_other(desk: Desk) -> None:
    with desk.pool("ann") as ann, desk.pool("bob") as bob:
        bob.import_session(session(said(TEXT), name="own"))
        assert bob.expand("p0", session="own").text == TEXT
        bob.forget_session("own")
        assert ann.expand(handle_of(ann)).text == TEXT
        bob.import_session(session(said(TEXT), name="second"))
        ann.forget_pages([handle_of(ann)])
        assert bob.expand("p0", session="second").text == TEXT
