"""The packed form of labels."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.stores.labels import DELETED, pack_labels, unpack_labels
from context_gatekeeper.types import NO_LABELS, BlockKind, PageId, PageLabels, PagePart, PageScope, Provenance

TEXTS = st.text(st.characters(exclude_categories=()), max_size=9)
TUPLES = st.lists(TEXTS, max_size=3).map(tuple)
PARTS = st.builds(
    PagePart, st.sampled_from(BlockKind), st.integers(0, 9), st.integers(0, 9), TEXTS, TEXTS, st.integers(0, 9)
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
    assert unpack_labels(packed) == labels


def test_defaults_are_left_out() -> None:
    assert pack_labels(NO_LABELS) == pack_labels(PageLabels()) == b""
    assert unpack_labels(b"") is NO_LABELS
    assert json.loads(pack_labels(PageLabels(tool="Bash", namespace="session"))) == {"tool": "Bash"}
    assert json.loads(pack_labels(DELETED)) == {"deleted": True}
