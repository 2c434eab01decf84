"""From a handle back to the original bytes: a page, a block of a session, or a piece of one.

What was redacted is joined again for the page's owner alone: whoever else may see the page sees the placeholders.
Nothing else is ever changed, so that the pieces of a whole are the whole. A handle that names nothing, a page that
was deleted and one that belongs to somebody else give one and the same error.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from context_gatekeeper.core.block_handles import parse_block_handle
from context_gatekeeper.core.expansion import TextSlice, expand_lines, expand_pattern, expand_range
from context_gatekeeper.core.handles import RangeUnit, parse_handle
from context_gatekeeper.core.redact import RedactedSpan, join
from context_gatekeeper.engine.agent_pages import block_places, continued_page, page_blocks
from context_gatekeeper.engine.grown_pages import numbered_pieces
from context_gatekeeper.engine.owner_view import OwnerView, no_such_page
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import BlockKind, ContentBlock, Page, PageId, PageKind, Provenance

__all__ = ["Expander", "Expansion", "Wanted"]

_BETWEEN = "\n\n"
"""Between blocks of which each is whole, as between those of one page."""


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
    beside: str = ""
    """What stands for a block without text."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A text without its secrets, and where they stood."""

    text: str
    spans: tuple[RedactedSpan, ...]

    def range_of(self, start: int, end: int) -> str:
        """The characters ``start`` to ``end`` of the original, each secret that they touch as its placeholder."""
        return self.text[self._place(start, is_end=False) : self._place(end, is_end=True)]

    def _place(self, place: int, *, is_end: bool) -> int:
        moved = 0
        for span in self.spans:
            longer = len(span.original) - len(span.placeholder)
            first = span.start + moved
            if place <= first:
                break
            if place < first + len(span.original):
                return span.end if is_end else span.start
            moved += longer
        return place - moved


@dataclass(slots=True)
class _BlockIndex:
    """The pages of a session by the number of their first block; a deleted one was left out, or is told by its page."""

    pages: int = 0
    """Taken in so far."""
    numbers: list[int] = field(default_factory=list)
    page_ids: list[PageId] = field(default_factory=list)
    pieces: dict[PageId, tuple[PageId, ...]] = field(default_factory=dict)
    """Page that begins a message -> all pages of it, where there are several."""

    def take_in(self, pages: Sequence[Page]) -> None:
        """Learn the pages behind those that are known, all of whose messages begin there."""
        self.pages = pages[-1].ordinal + 1
        for number, pieces in numbered_pieces(pages):
            first = number
            for piece in pieces:
                self.numbers.append(first)
                self.page_ids.append(piece.page_id)
                first += len(page_blocks(piece))
            if len(pieces) > 1:
                self.pieces[pieces[0].page_id] = tuple(piece.page_id for piece in pieces)

    def from_block(self, number: int) -> Iterator[tuple[int, PageId]]:
        """First block and page of the page that holds a block, if any does, and of those behind it."""
        first = max(0, bisect_right(self.numbers, number) - 1)
        return islice(zip(self.numbers, self.page_ids, strict=True), first, None)


class Expander:
    """Expands handles.

    Args:
        view: the pool as whoever asks sees it.
        spans_of: redacted text of the view's owner -> what its placeholders stand for (`SealedSpans.spans_of`).
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
            joins_secrets: put secrets back in the place of their placeholders, on the pages of whoever asks.

        Raises:
            ConfigError: it is no handle, a short one without a session, or the piece is out of range.
            PageNotFoundError: there is nothing of this name that may be shown.
        """
        mention, blocks = parse_handle(handle), parse_block_handle(handle)
        if mention is not None:
            page = self._view.page_of(mention.handle)
            pieces = self.pieces(page)
            shows_text = any(piece.text for piece in pieces)
            found = [
                _Piece(piece, 0, len(piece.text), page.labels.tool, "" if shows_text else _beside_of(piece))
                for piece in pieces
            ]
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

    def pieces(self, page: Page) -> tuple[Page, ...]:
        """The pages of the message that a page begins, as far as they are there; the page alone where it is whole."""
        page_ids = self._index(page.session).pieces.get(page.page_id, (page.page_id,))
        return tuple(self._view.live(page_ids))

    # -- inside -----------------------------------------------------------------------------

    def _blocks(self, handle: str, session: str, numbers: range) -> Iterator[_Piece]:
        """The blocks of these numbers, in order. O(pages of the session) the first time, then O(blocks)."""
        wanted = numbers.start
        for first, page_id in self._index(session).from_block(wanted):
            for page in self._view.live((page_id,)):
                for number, place in enumerate(block_places(page), first):
                    if number == wanted < numbers.stop:
                        tool = place.block.name if place.block.kind is not BlockKind.OTHER else ""
                        yield _Piece(page, place.start, place.end, tool, _beside(place.block))
                        wanted += 1
            if wanted == numbers.stop:
                return
        raise no_such_page(handle)

    def _index(self, session: str) -> _BlockIndex:
        """Where the session's blocks are, as of now."""
        index = self._indexes.setdefault(session, _BlockIndex())
        if index.pages < self._view.store.page_count(self._view.pool, session):
            new = list(self._view.store.scan(self._view.pool, session, from_ordinal=index.pages))
            if index.pages and any(continued_page(page) is not None for page in new):
                index = self._indexes[session] = _BlockIndex()
                new = list(self._view.store.scan(self._view.pool, session))
            index.take_in(new)
        return index

    def _expansion(
        self, handle: str, names: Sequence[str], found: Sequence[_Piece], wanted: Wanted, *, joins_secrets: bool
    ) -> Expansion:
        cuts = [self._cut(piece) for piece in found]
        if len(names) == 1:
            cuts = [_behind_each_other([cut for cut in cuts if cut.text] or cuts[:1])]
        whole = _behind_each_other(cuts)
        originals = [join(cut.text, cut.spans) for cut in cuts]
        texts = originals if joins_secrets else [cut.text for cut in cuts]
        first = found[0]
        expansion = Expansion(
            handle.strip(),
            _BETWEEN.join(texts),
            self._view.handle_of(first.page),
            first.page.session,
            first.page.kind,
            first.page.labels.provenance,
            first.tool,
            first.page.labels.path,
            blocks=tuple(zip(names, texts, strict=True)) if len(names) > 1 else (),
            secrets_joined=len(whole.spans) if joins_secrets else 0,
        )
        if joins_secrets or wanted.pattern is not None:
            return _cut_out(expansion, wanted)
        return replace(expansion, text=_without_secrets(whole, _BETWEEN.join(originals), wanted))

    def _cut(self, piece: _Piece) -> _Cut:
        """The piece with the secrets that stand in it, which only the page's owner may know of."""
        if piece.beside:
            return _Cut(piece.beside, ())
        if piece.page.labels.owner != self._view.owner:
            return _Cut(piece.page.text[piece.start : piece.end], ())
        spans = [span for span in self._spans_of(piece.page.text) if piece.start <= span.start < piece.end]
        moved = tuple(replace(span, start=span.start - piece.start) for span in spans)
        return _Cut(piece.page.text[piece.start : piece.end], moved)


def _beside(block: ContentBlock) -> str:
    """What a block without text holds: an image as its data address (RFC 2397), sealed thinking as it stands."""
    if block.kind is BlockKind.IMAGE and block.data:
        return f"data:{block.media_type};base64,{block.data}"
    return "" if block.text else block.data


def _beside_of(page: Page) -> str:
    return _BETWEEN.join(filter(None, map(_beside, page_blocks(page))))


def _behind_each_other(cuts: Sequence[_Cut]) -> _Cut:
    spans: list[RedactedSpan] = []
    length = 0
    for cut in cuts:
        spans += (replace(span, start=span.start + length) for span in cut.spans)
        length += len(cut.text) + len(_BETWEEN)
    return _Cut(_BETWEEN.join(cut.text for cut in cuts), tuple(spans))


def _without_secrets(whole: _Cut, original: str, wanted: Wanted) -> str:
    """What is wanted of the original, with placeholders in the place of its secrets."""
    if wanted.lines is not None:
        first, last = wanted.lines
        text = expand_lines(original, first, last)
        start = len(expand_lines(original, 1, first - 1)) if first > 1 else 0
    elif wanted.characters is not None:
        text = expand_range(original, *wanted.characters)
        start = wanted.characters[0]
    else:
        return whole.text
    return whole.range_of(start, start + len(text))


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
