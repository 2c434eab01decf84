"""A page's bytes: its text, and behind it what its parts hold beside the text.

Signatures and data of images are no text: nobody searches, counts or redacts them. They are bytes of the page all
the same, so that they are stored, told apart and deleted with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from context_gatekeeper.types import PagePart

__all__ = ["bytes_beside", "page_digest", "text_bytes"]


def text_bytes(text: str) -> bytes:
    """UTF-8 with surrogates passed through, so that any ``str`` survives."""
    return text.encode("utf-8", "surrogatepass")


def bytes_beside(parts: Iterable[PagePart]) -> bytes:
    """Signature and data of each part, one behind the other."""
    return b"".join(text_bytes(one) for part in parts for one in (part.signature, part.data) if one)


def page_digest(text: str, parts: Iterable[PagePart]) -> str:
    """Hex sha256 of a page: of its text in UTF-8, and behind it of what its parts hold beside."""
    return sha256(text_bytes(text) + bytes_beside(parts)).hexdigest()
