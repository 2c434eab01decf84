"""Handles lead back to the original bytes, whole and by pieces (E7)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_gatekeeper.core.expansion import TextSlice
from context_gatekeeper.core.redact import RedactedSpan, RedactionMode, redact, redact_parts
from context_gatekeeper.engine.agent_pages import block_places
from context_gatekeeper.engine.expanding import Expander, Wanted
from context_gatekeeper.engine.importing import SessionImporter
from context_gatekeeper.engine.owner_view import OwnerView
from context_gatekeeper.errors import ConfigError, PageNotFoundError
from context_gatekeeper.stores import MemoryStore
from context_gatekeeper.stores.sealed import Redactor, SpansInMemory
from context_gatekeeper.types import PageKind, Provenance
from tests.core.secret_samples import secret_samples
from tests.engine.agents import (
    FIXING,
    POOL,
    answered,
    blocks_of,
    call,
    importer,
    said,
    session,
    stored,
    take_in,
    thinking,
)

ALL = Wanted()
GITHUB = next(sample.secret for sample in secret_samples() if sample.name == "github ghp")
SECRETS = [sample.secret for sample in secret_samples() if "\n" not in sample.secret][:3]


def nothing_sealed(_text: str) -> tuple[RedactedSpan, ...]:
    return ()


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    take_in(store, FIXING)
    return store


@pytest.fixture
def expander(store: MemoryStore) -> Expander:
    return Expander(OwnerView(store, POOL, ""), nothing_sealed)


def test_every_block_and_every_page_expands_to_its_text(store: MemoryStore, expander: Expander) -> None:
    view = OwnerView(store, POOL, "")
    blocks = blocks_of(FIXING)
    for number, block in enumerate(blocks):
        expansion = expander.expand(f"p{number}", ALL, session="shop/fixing")
        assert expansion.text == block.text
        assert expansion.tool == block.name
    for page in stored(store, "shop/fixing"):
        expansion = expander.expand(view.handle_of(page), ALL)
        assert (expansion.text, expansion.page, expansion.session) == (page.text, view.handle_of(page), "shop/fixing")
        assert (expansion.kind, expansion.provenance) == (page.kind, page.labels.provenance)


def test_an_expansion_tells_what_it_is_of(expander: Expander) -> None:
    expansion = expander.expand("p6", ALL, session="shop/fixing")
    assert (expansion.kind, expansion.provenance) == (PageKind.FILE, Provenance.FILE)
    assert (expansion.tool, expansion.path) == ("Read", "/srv/shop/export.py")
    assert expansion.page.startswith("page:")


def test_neighbouring_blocks_come_one_behind_the_other_each_as_it_is(expander: Expander) -> None:
    expansion = expander.expand("p0-p2", ALL, session="shop/fixing")
    texts = [block.text for block in blocks_of(FIXING)[:3]]
    assert expansion.blocks == tuple((f"p{number}", text) for number, text in enumerate(texts))
    assert expansion.text == "\n\n".join(texts)


def test_pieces_are_slices_of_the_original(store: MemoryStore, expander: Expander) -> None:
    page = next(page for page in stored(store, "shop/fixing") if page.labels.is_error)
    handle = OwnerView(store, POOL, "").handle_of(page)
    (number,) = (place.number for place in block_places(page))
    lines = page.text.splitlines(keepends=True)
    for named in (handle, f"p{number}"):
        asked = expander.expand(f"{named}#L2-3", ALL, session="shop/fixing")
        assert asked.text == lines[1] + lines[2]
        assert expander.expand(named, Wanted(lines=(2, None)), session="shop/fixing").text == "".join(lines[1:])
        assert expander.expand(f"{named}#C0-4", ALL, session="shop/fixing").text == "Exit"
        assert expander.expand(named, Wanted(characters=(5, None)), session="shop/fixing").text == page.text[5:]
        found = expander.expand(named, Wanted(pattern="TypeError"), session="shop/fixing")
        assert found.slices == (TextSlice(1, 3, page.text),)
        assert expander.expand(named, Wanted(pattern=r"^\d failed$", regex=True), session="shop/fixing").slices
        assert expander.expand(named, Wanted(pattern="absent"), session="shop/fixing").text == ""


@pytest.mark.parametrize("handle", ["page:aaaaaaaaaaaaaaaa", "p17", "p0-p17", "p16-p999999999", "p999999999#L1-2"])
def test_a_handle_of_nothing_is_one_clear_error(expander: Expander, handle: str) -> None:
    with pytest.raises(PageNotFoundError, match="there is no such page here"):
        expander.expand(handle, ALL, session="shop/fixing")
    with pytest.raises(PageNotFoundError, match="there is no such page here"):
        expander.expand(handle, ALL, session="nobody's")


def test_what_is_no_handle_says_what_one_is(expander: Expander) -> None:
    for handle in ("", "page:short", "12", "../../etc/passwd", "p20-p12", "page:aaaaaaaaaaaaaaaa#L9-2"):
        with pytest.raises(ConfigError, match="write page: and 16"):
            expander.expand(handle, ALL, session="shop/fixing")
    with pytest.raises(ConfigError, match="say which session"):
        expander.expand("p1", ALL)


def test_one_piece_is_asked_for_at_a_time(expander: Expander) -> None:
    with pytest.raises(ConfigError, match="more than one"):
        Wanted(lines=(1, 2), pattern="x")
    with pytest.raises(ConfigError, match="it has a range"):
        expander.expand("p1#L1-2", Wanted(lines=(1, 2)), session="shop/fixing")


@pytest.mark.parametrize("wanted", [Wanted(lines=(0, 1)), Wanted(characters=(9**6, None)), Wanted(pattern="")])
def test_a_piece_out_of_range_is_refused(expander: Expander, wanted: Wanted) -> None:
    with pytest.raises(ConfigError):
        expander.expand("p1", wanted, session="shop/fixing")


def test_secrets_are_joined_block_by_block_for_whoever_may_see_them() -> None:
    store = MemoryStore()
    one = session(
        said(f"keys: {SECRETS[0]} and {SECRETS[1]}"),
        answered(thinking(f"hm {SECRETS[2]}"), "no secret", call("c1", "Bash", command=f"export T={SECRETS[0]}")),
    )
    take_in(store, one)
    key = store.handle_key(POOL)
    raw = MemoryStore()
    importer(raw, mode=RedactionMode.OFF).run(one)
    redactions = (redact_parts(page.text, page.labels.parts, key)[0] for page in stored(raw))
    spans = {redaction.text: redaction.spans for redaction in redactions}
    expander = Expander(OwnerView(store, POOL, ""), lambda text: spans.get(text, ()))
    blocks = blocks_of(one)
    for number, block in enumerate(blocks):
        asked = expander.expand(f"p{number}", ALL, session="s")
        assert asked.text == block.text
        assert asked.secrets_joined == sum(secret in block.text for secret in SECRETS)
        hidden = expander.expand(f"p{number}", ALL, session="s", joins_secrets=False)
        assert not any(secret in hidden.text for secret in SECRETS)
        assert hidden.secrets_joined == 0
    page = stored(store)[0]
    assert expander.expand(OwnerView(store, POOL, "").handle_of(page), ALL).text == blocks[0].text


TOKENS = [GITHUB, GITHUB[:-3] + "QQQ"]
TEXTS = st.lists(
    st.sampled_from([*(f" {token} " for token in TOKENS), "word ", "\n", "\n\n", "值", "\ud83d", "", " and "]),
    max_size=8,
).map("".join)


@settings(max_examples=80, deadline=None)
@given(blocks=st.lists(TEXTS, min_size=1, max_size=3), data=st.data())
def test_a_range_is_one_of_the_original_whether_or_not_secrets_are_shown(
    blocks: list[str], data: st.DataObject
) -> None:
    """What is pinned and what is expanded is the same piece: where one has a secret the other has its placeholder."""
    store, spans = MemoryStore(), SpansInMemory()
    redactor = Redactor(store.handle_key(POOL), RedactionMode.KEEP, spans)
    SessionImporter(store, POOL, redactor.redact_draft, redactor.redact_text).run(session(answered(*blocks)))
    expander = Expander(OwnerView(store, POOL, ""), spans.spans_of)
    handle = f"p0-p{len(blocks) - 1}"
    original = expander.expand(handle, ALL, session="s").text
    hidden = expander.expand(handle, ALL, session="s", joins_secrets=False).text
    assert original == "\n\n".join(blocks)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(original))] * 2)))
    shown = expander.expand(handle, Wanted(characters=(start, end)), session="s", joins_secrets=False).text
    assert shown in hidden
    assert not any(token in shown for token in TOKENS)
    placeholders = {redact(token, store.handle_key(POOL)).text: token for token in TOKENS}
    whole = shown
    for placeholder, one in placeholders.items():
        whole = whole.replace(placeholder, one)
    assert original[start:end] in whole
    assert len(whole) - (end - start) < 2 * max(map(len, TOKENS))
    first = data.draw(st.integers(1, max(1, len(original.removesuffix("\n").split("\n")))))
    lines = expander.expand(handle, Wanted(lines=(first, first + 1)), session="s", joins_secrets=False).text
    for placeholder, one in placeholders.items():
        lines = lines.replace(placeholder, one)
    assert lines == expander.expand(handle, Wanted(lines=(first, first + 1)), session="s").text
