"""What every store promises about kinds, labels and long texts."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.ports import PageStore
from context_gatekeeper.types import (
    BlockKind,
    PageDraft,
    PageId,
    PageKind,
    PageLabels,
    PagePart,
    PageScope,
    Provenance,
    Role,
)
from tests.conformance.samples import HOSTILE_TEXTS, turn

ALL_LABELS = PageLabels(
    namespace="project",
    scope=PageScope.SHARED,
    owner="ann",
    acl=("bob", "会话"),
    task_id="t7",
    goal_ids=("g1", "g2"),
    call_id="call_0001",
    tool="Read",
    path="src/a b.py",
    content_hash="0f" * 32,
    supersedes=PageId(2**63 - 1),
    provenance=Provenance.FILE,
    parts=(PagePart(BlockKind.TEXT, 0, 2), PagePart(BlockKind.TOOL_CALL, 2, 5, "Bash", "call_0002", 9)),
    origin="attachment",
    is_error=True,
)


def labelled(labels: PageLabels, text: str = "a text", kind: PageKind = PageKind.TOOL) -> list[PageDraft]:
    """A user-side page with labels, and an empty page for the other side."""
    return [PageDraft(0, Role.USER, text, kind=kind, labels=labels), PageDraft(0, Role.ASSISTANT, "")]


class TestLabels:
    @pytest.mark.parametrize("kind", PageKind)
    def test_kind_and_labels_come_back(self, store: PageStore, kind: PageKind) -> None:
        pages = store.append("p", "s", labelled(ALL_LABELS, kind=kind))
        assert tuple(store.scan("p", "s")) == pages
        assert (pages[0].kind, pages[0].labels) == (kind, ALL_LABELS)
        assert (pages[1].kind, pages[1].labels) == (PageKind.TURN, PageLabels())

    @pytest.mark.parametrize(
        "change",
        [
            {"namespace": ""},
            {"scope": PageScope.KNOWLEDGE},
            {"owner": "ann"},
            {"acl": ("",)},
            {"goal_ids": ("g", "g")},
            {"supersedes": PageId(1)},
            {"origin": "meta"},
            {"is_error": True},
            *({"provenance": provenance} for provenance in Provenance),
            *({"parts": (PagePart(kind, 0, 6),)} for kind in BlockKind),
            {"parts": (PagePart(BlockKind.TEXT, 3, 3), PagePart(BlockKind.TEXT, 3, 6))},
        ],
        ids=repr,
    )
    def test_each_label_comes_back_alone(self, store: PageStore, change: dict[str, Any]) -> None:
        labels = PageLabels(**change)
        store.append("p", "s", labelled(labels))
        found = next(store.scan("p", "s")).labels
        assert found == labels
        assert type(found.scope) is PageScope
        assert all(type(part) is PagePart and type(part.kind) is BlockKind for part in found.parts)

    @pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
    def test_any_text_may_be_a_label(self, store: PageStore, text: str) -> None:
        labels = PageLabels(path=text, acl=(text, text), tool=text, call_id=text)
        store.append("p", "s", labelled(labels))
        assert next(store.scan("p", "s")).labels == labels

    @pytest.mark.parametrize(
        "change",
        [
            *({name: value} for name in ("owner", "path", "content_hash") for value in (None, 7, b"x")),
            {"acl": ["ann"]},
            {"acl": "ann"},
            {"acl": ("ann", None)},
            {"goal_ids": (7,)},
            {"scope": "private"},
            {"provenance": "user"},
            *({"supersedes": value} for value in (0, -1, 2**63, "1", True, 1.5)),
            {"parts": [PagePart(BlockKind.TEXT, 0, 1)]},
            {"parts": ((BlockKind.TEXT, 0, 1, "", "", 0),)},
            {"parts": (PagePart(BlockKind.TEXT, 0, 7),)},
            {"parts": (PagePart(BlockKind.TEXT, 2, 1),)},
            {"parts": (PagePart(BlockKind.TEXT, -1, 1),)},
            {"parts": (PagePart(BlockKind.TEXT, 0, 3), PagePart(BlockKind.TEXT, 2, 4))},
            {"parts": (PagePart("text", 0, 1),)},  # type: ignore[arg-type]
            {"parts": (PagePart(BlockKind.TEXT, 0, True),)},
            {"parts": (PagePart(BlockKind.TEXT, 0, 1, None),)},  # type: ignore[arg-type]
            {"parts": (PagePart(BlockKind.TEXT, 0, 1, "", "", -1),)},
            {"parts": (PagePart(BlockKind.TEXT, 0, 1, "", "", True),)},
            {"origin": None},
            {"is_error": 1},
            {"deleted": True},
            {"deleted": None},
        ],
        ids=repr,
    )
    def test_a_label_that_is_not_what_it_should_be_is_refused(self, store: PageStore, change: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match="user page of turn 0") as refusal:
            store.append("p", "s", labelled(replace(ALL_LABELS, **{"parts": (), **change})))
        assert next(iter(change)) in str(refusal.value)
        assert store.sessions("p") == ()

    def test_what_are_no_labels_is_refused(self, store: PageStore) -> None:
        labels: Any = {"path": "x"}
        with pytest.raises(ConfigError, match="labels are a dict"):
            store.append("p", "s", labelled(labels))


class TestLongTexts:
    @pytest.mark.parametrize("size", [999, 1000, 1001, 1002, 100_000])
    def test_texts_about_the_bound_of_short_ones_come_back(self, store: PageStore, size: int) -> None:
        texts = ["x" * size, "\u00e9" * (size // 2), "\ud83d" + "缓" * (size // 3), "ab\0" * (size // 3)]
        pages = [page for number, text in enumerate(texts) for page in store.append("p", "s", turn(number, text, text))]
        assert list(store.scan("p", "s")) == pages
        assert [page.text for page in pages[::2]] == texts
        assert pages[0].sha256 == sha256(b"x" * size).hexdigest()

    def test_equal_long_texts_keep_their_places(self, store: PageStore) -> None:
        output = "(the same output)\n" * 200
        transcript = [output if number % 12 < 5 else f"line {number}" for number in range(60)]
        for _ in range(10):
            for number, text in enumerate(transcript):
                role = Role.ASSISTANT if number % 2 else Role.USER
                store.append("p", "s", [PageDraft(number // 2, role, text)], idempotency_key=f"message {number}")
            assert [page.text for page in store.scan("p", "s")] == transcript
        store.append("q", "s", turn(0, output, output))
        assert [page.text for page in store.scan("q", "s")] == [output, output]
