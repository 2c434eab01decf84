"""A page's bytes: its text and what its parts hold beside it."""

from __future__ import annotations

from hashlib import sha256

from context_gatekeeper.core.page_bytes import bytes_beside, page_digest, text_bytes
from context_gatekeeper.types import BlockKind, PagePart

SIGNED = PagePart(BlockKind.THINKING, 0, 2, signature="c2ln\ud800", data="")
IMAGE = PagePart(BlockKind.IMAGE, 2, 2, data="AAAA", media_type="image/png")


def test_any_text_has_bytes() -> None:
    assert text_bytes("锁\ud800\0").decode("utf-8", "surrogatepass") == "锁\ud800\0"


def test_signatures_and_data_stand_one_behind_the_other() -> None:
    assert bytes_beside((SIGNED, PagePart(BlockKind.TEXT, 2, 3), IMAGE)) == text_bytes("c2ln\ud800") + b"AAAA"
    assert bytes_beside(()) == b""


def test_the_digest_of_a_page_that_holds_nothing_beside_is_that_of_its_text() -> None:
    assert page_digest("hm", (PagePart(BlockKind.TEXT, 0, 2),)) == sha256(b"hm").hexdigest()
    assert page_digest("hm", (IMAGE,)) == sha256(b"hmAAAA").hexdigest()
