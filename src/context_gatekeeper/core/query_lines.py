"""A query that is itself a piece of talk: several lines, each headed by who says it.

Carriers ask with the last lines of a dialogue (``Ann: ...``, ``Assistant: ...``). What the one
who asks said himself tells better what he is after than what he was told.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from context_gatekeeper.core.anchor import AnchorScan

__all__ = ["asked_shares"]

_HEAD = re.compile(r"^[ \t]*<?[ \t]*([^\W\d_][^<>:\n]{0,29})>?[ \t]*:(?![\d/])", re.MULTILINE)
"""The head of a line: at most 30 characters that begin with a letter, angle brackets around them or not, a
colon that is not one of a time or an address. Wide colons are plain ones in a scan."""


def asked_shares(scan: AnchorScan, other_share: float) -> Mapping[str, float]:
    """Term -> weight share in (0, 1] of a query, by who says it.

    Args:
        scan: the query.
        other_share: what is left of a term that only others than the last speaker say, in (0, 1].

    Returns:
        ``scan.shares``, unless the last speaker spoke before and another one between: then the terms
        that stand in the others' lines only shrink. A line without a head belongs to the speaker
        before it. O(length of the query).
    """
    heads = list(_HEAD.finditer(scan.text))
    names = [head.group(1).strip().casefold() for head in heads]
    if len(set(names)) < 2 or names[-1] not in names[:-1]:
        return scan.shares
    starts = [head.start() for head in heads]
    asked = {term for term, start, _ in scan.spans if _speaker(names, starts, start) == names[-1]}
    return {term: share * (1.0 if term in asked else other_share) for term, share in scan.shares.items()}


def _speaker(names: Sequence[str], starts: Sequence[int], place: int) -> str:
    """Who says what stands at ``place``; text before the first head is the asker's."""
    return names[bisect_right(starts, place) - 1]
