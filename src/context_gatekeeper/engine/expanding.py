"""From a handle back to the original bytes: a page, a block of a session, or a piece of one.

What was redacted is joined again for whoever may see it; nothing else is ever changed, so that the pieces of a
whole are the whole. A handle that names nothing, a page that was deleted and one that belongs to somebody
else give one and the same error.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from context_gatekeeper.core.block_handles import parse_block_handle
from context_gatekeeper.core.expansion import TextSlice, expand_lines, expand_pattern, expand_range
from context_gatekeeper.core.handles import RangeUnit, parse_handle
from context_gatekeeper.core.redact import RedactedSpan, join
from context_gatekeeper.engine.agent_pages import block_places
from context_gatekeeper.engine.owner_view import OwnerView, no_such_page
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import BlockKind, Page, PageId, PageKind, Provenance

__all__ = ["Expander", "Expansion", "Wanted"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a page or block; all of it by default."""

    lines: tuple[int, int | None] | None = None
    """First and last, from 1, both included; None as the last for the end."""
    characters: tuple[int, int | None] | None = None
    """From 0, the last one left out."""
    pattern: str | None = None
    """The lines around each place where this text stands."""
    regex: bool = False
    """The pattern is a regular expression."""

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.lines, self.characters, self.pattern)) > 1:
            raise ConfigError(
                "lines, characters and pattern", "more than one of them is given", "ask for one piece at a time"
            )


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a handle stands for."""

    handle: str
    """As it was asked for."""
    text: str
    """The original, or the piece of it that was wanted; of several blocks one behind the other."""
    page: str
    """Handle of the page, of several the first."""
    session: str
    kind: PageKind
    provenance: Provenance | None
    tool: str = ""
    path: str = ""
    blocks: tuple[tuple[str, str], ...] = ()
    """Of neighbouring blocks: (``p12``, its text) each."""
    slices: tuple[TextSlice, ...] = ()
    """Of a pattern: the lines around each place."""
    secrets_joined: int = 0
    """Secrets of the page that stand in the text again."""
    file: str = ""
    """File that holds the text, where one was asked for."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a page."""

    page: Page
    start: int
    end: int
    tool: str


@dataclass(slots=True)
class _BlockIndex:
    """The pages of a session by the number of their first block; a deleted one was left out, or is told by its page."""

    pages: int = 0
    """Taken in so far."""
    numbers: list[int] = field(default_factory=list)
    page_ids: list[PageId] = field(default_factory=list)

    def take_in(self, pages: Iterable[Page]) -> None:
        """Learn the pages behind those that are known."""
        for page in pages:
            self.pages = page.ordinal + 1
            places = block_places(page)
            if places:
                self.numbers.append(places[0].number)
                self.page_ids.append(page.page_id)

    def from_block(self, number: int) -> Iterator[PageId]:
        """The page that holds a block, if any does, and those behind it."""
        return islice(self.page_ids, max(0, bisect_right(self.numbers, number) - 1), None)


class Expander:
    """Expands handles.

    Args:
        view: the pool as whoever asks sees it.
        spans_of: redacted text -> what its placeholders stand for (`SealedSpans.spans_of`).
    """

    def __init__(self, view: OwnerView, spans_of: Callable[[str], Sequence[RedactedSpan]]) -> None:
        self._view = view
        self._spans_of = spans_of
        self._indexes: dict[str, _BlockIndex] = {}

    def expand(
        self, handle: str, wanted: Wanted, *, session: str | None = None, joins_secrets: bool = True
    ) -> Expansion:
        """What ``handle`` stands for.

        Args:
            handle: of a page, or of blocks of ``session``, with or without a range.
            wanted: what of it, when the handle has no range.
            session: whose blocks short handles name.
            joins_secrets: put secrets back in the place of their placeholders.

        Raises:
            ConfigError: it is no handle, a short one without a session, or the piece is out of range.
            PageNotFoundError: there is nothing of this name that may be shown.
        """
        mention, blocks = parse_handle(handle), parse_block_handle(handle)
        if mention is not None:
            page = self._view.page_of(mention.handle)
            found = [_Piece(page, 0, len(page.text), page.labels.tool)]
            wanted = _narrowed(handle, wanted, mention.unit, mention.first, mention.last)
            names = [mention.handle]
        elif blocks is not None:
            if session is None:
                raise ConfigError(f"handle {handle!a}", "it names a block of a session", "say which session")
            found = list(self._blocks(handle, session, range(blocks.first_block, blocks.last_block + 1)))
            wanted = _narrowed(handle, wanted, blocks.unit, blocks.first, blocks.last)
            names = [f"p{number}" for number in range(blocks.first_block, blocks.last_block + 1)]
        else:
            raise ConfigError(
                f"handle {handle[:80]!a}",
                "it is none",
                "write page: and 16 letters or digits, or p and a block's number, and a range such as #L10-20",
            )
        return self._expansion(handle, names, found, wanted, joins_secrets=joins_secrets)

    # -- inside -----------------------------------------------------------------------------

    def _blocks(self, handle: str, session: str, numbers: range) -> Iterator[_Piece]:
        """The blocks of these numbers, in order. O(pages of the session) the first time, then O(blocks)."""
        wanted = numbers.start
        for page in self._view.live(self._index(session).from_block(wanted)):
            for place in block_places(page):
                if place.number == wanted < numbers.stop:
                    tool = place.block.name if place.block.kind is not BlockKind.OTHER else ""
                    yield _Piece(page, place.start, place.end, tool)
                    wanted += 1
            if wanted == numbers.stop:
                return
        raise no_such_page(handle)

    def _index(self, session: str) -> _BlockIndex:
        """Where the session's blocks are, as of now."""
        index = self._indexes.setdefault(session, _BlockIndex())
        if index.pages < self._view.store.page_count(self._view.pool, session):
            index.take_in(self._view.store.scan(self._view.pool, session, from_ordinal=index.pages))
        return index

    def _expansion(
        self, handle: str, names: Sequence[str], found: Sequence[_Piece], wanted: Wanted, *, joins_secrets: bool
    ) -> Expansion:
        texts, secrets = [], 0
        for piece in found:
            text, joined = self._original(piece) if joins_secrets else (piece.page.text[piece.start : piece.end], 0)
            texts.append(text)
            secrets += joined
        first = found[0]
        expansion = Expansion(
            handle.strip(),
            "\n\n".join(texts),
            self._view.handle_of(first.page),
            first.page.session,
            first.page.kind,
            first.page.labels.provenance,
            first.tool,
            first.page.labels.path,
            blocks=tuple(zip(names, texts, strict=True)) if len(found) > 1 else (),
            secrets_joined=secrets,
        )
        return _cut_out(expansion, wanted)

    def _original(self, piece: _Piece) -> tuple[str, int]:
        """The piece with its secrets joined, and how many there are."""
        spans = [span for span in self._spans_of(piece.page.text) if piece.start <= span.start < piece.end]
        moved = [replace(span, start=span.start - piece.start) for span in spans]
        return join(piece.page.text[piece.start : piece.end], moved), len(moved)


def _narrowed(handle: str, wanted: Wanted, unit: RangeUnit | None, first: int, last: int) -> Wanted:
    """What is wanted, by the handle's own range or by what was asked for beside it."""
    if unit is None:
        return wanted
    if wanted != Wanted():
        raise ConfigError(f"handle {handle!a}", "it has a range, and another piece is asked for", "give one of them")
    return Wanted(lines=(first, last)) if unit is RangeUnit.LINES else Wanted(characters=(first, last))


def _cut_out(expansion: Expansion, wanted: Wanted) -> Expansion:
    text = expansion.text
    if wanted.lines is not None:
        return replace(expansion, text=expand_lines(text, *wanted.lines))
    if wanted.characters is not None:
        return replace(expansion, text=expand_range(text, *wanted.characters))
    if wanted.pattern is not None:
        slices = expand_pattern(text, wanted.pattern, regex=wanted.regex)
        return replace(expansion, text="".join(one.text for one in slices), slices=slices)
    return expansion
