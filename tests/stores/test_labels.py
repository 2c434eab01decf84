"""The packed form of labels."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.page_bytes import bytes_beside, text_bytes
from context_gatekeeper.stores.labels import DELETED, pack_labels, unpack_labels
from context_gatekeeper.types import NO_LABELS, BlockKind, PageId, PageLabels, PagePart, PageScope, Provenance

TEXTS = st.text(st.characters(exclude_categories=()), max_size=9)
TUPLES = st.lists(TEXTS, max_size=3).map(tuple)
PARTS = st.builds(
    PagePart,
    kind=st.sampled_from(BlockKind),
    start=st.integers(0, 9),
    end=st.integers(0, 9),
    name=TEXTS,
    call_id=TEXTS,
    hidden_chars=st.integers(0, 9),
    signature=TEXTS,
    data=TEXTS,
    media_type=TEXTS,
)
LABELS = st.builds(
    PageLabels,
    namespace=TEXTS,
    scope=st.sampled_from(PageScope),
    owner=TEXTS,
    acl=TUPLES,
    task_id=TEXTS,
    goal_ids=TUPLES,
    call_id=TEXTS,
    tool=TEXTS,
    path=TEXTS,
    content_hash=TEXTS,
    supersedes=st.none() | st.integers(1, 2**63 - 1).map(PageId),
    provenance=st.none() | st.sampled_from(Provenance),
    parts=st.lists(PARTS, max_size=3).map(tuple),
    origin=TEXTS,
    is_error=st.booleans(),
    deleted=st.booleans(),
)


@given(LABELS)
def test_unpacking_is_the_inverse(labels: PageLabels) -> None:
    packed = pack_labels(labels)
    assert packed.isascii()
    assert unpack_labels(packed, bytes_beside(labels.parts)) == labels
    assert unpack_labels(packed, text_bytes("any text \ud800") + bytes_beside(labels.parts)) == labels


def test_labels_of_earlier_versions_read_as_holding_nothing_beside() -> None:
    packed = b'{"parts":[["thinking",0,2,"","",3],["tool_call",2,4,"Read","c1",0]]}'
    parts = (PagePart(BlockKind.THINKING, 0, 2, hidden_chars=3), PagePart(BlockKind.TOOL_CALL, 2, 4, "Read", "c1"))
    assert unpack_labels(packed, b"abcd") == PageLabels(parts=parts)
    assert pack_labels(PageLabels(parts=parts)) == packed


def test_of_what_stands_beside_labels_tell_the_length_alone() -> None:
    part = PagePart(BlockKind.IMAGE, 0, 0, data="AAAA" * 1000, media_type="image/png")
    assert json.loads(pack_labels(PageLabels(parts=(part,))))["parts"] == [
        ["image", 0, 0, "", "", 0, 0, 4000, "image/png"]
    ]


def test_defaults_are_left_out() -> None:
    assert pack_labels(NO_LABELS) == pack_labels(PageLabels()) == b""
    assert unpack_labels(b"") is NO_LABELS
    assert json.loads(pack_labels(PageLabels(tool="Bash", namespace="session"))) == {"tool": "Bash"}
    assert json.loads(pack_labels(DELETED)) == {"deleted": True}
