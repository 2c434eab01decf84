"""Messages of agents as pages, and pages as messages again, every block byte for byte.

What the model wrote in one call is one page of the assistant's side: text, thinking and calls one behind the other,
`PageLabels.parts` telling where each block stands. Each input is a page of the user's side: a person's text, a
system text, the result of one tool call. Blocks are numbered through the session from 0, as the planner
numbers its segments; the first number of each page is kept beside it (``PageDraft.derived``), so that a
deleted page moves no other block's number.

Source: the scheduling design, section 1.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from context_gatekeeper.core.anchor import scan_anchors
from context_gatekeeper.core.evidence import argument_texts
from context_gatekeeper.core.page_bytes import page_digest
from context_gatekeeper.core.tokens import estimate_tokens, image_tokens
from context_gatekeeper.core.tool_shapes import ToolKind, read_command, tool_kind
from context_gatekeeper.engine.context_terms import context_terms
from context_gatekeeper.engine.session_log import THINKING_TOKENS_A_CHAR
from context_gatekeeper.types import (
    NO_LABELS,
    AgentMessage,
    BlockKind,
    ContentBlock,
    MessageRole,
    Page,
    PageDraft,
    PageId,
    PageKind,
    PageLabels,
    PagePart,
    Provenance,
    Role,
)

__all__ = [
    "BlockPlace",
    "block_places",
    "called_tools",
    "continued_page",
    "draft_page",
    "empty_page",
    "finish_draft",
    "first_number",
    "is_empty_side",
    "joined_page",
    "page_blocks",
    "page_message",
    "page_terms",
    "page_tokens",
    "result_provenance",
    "run_end",
    "side_of",
    "swap_group",
]

SYSTEM_ORIGIN = "system"
"""Origin of the page of a system message."""
_SUMMARY_ORIGIN = "compact_summary"
_BETWEEN = "\n\n"
"""Between two blocks of a page that both hold text; no block's own."""
_MOST_SCANNED_CHARS = 1 << 18
"""Of a longer text only so many characters at its beginning, and as many at its end, give terms."""
_MOST_TERM_COUNT = 255
_NUMBER, _TOKENS, _CONTINUES = "block", "tokens", "continues"
"""Notes beside a page."""
_WEB_TOOL = re.compile(r"web|fetch|brows|https?|url|crawl|scrape", re.IGNORECASE)
_WEB_PROGRAMS = frozenset(("curl", "wget", "http", "https", "lynx", "w3m"))
_UNREAD = frozenset((BlockKind.THINKING, BlockKind.IMAGE))
"""Kinds that give no terms: thinking is nobody's statement, and may be sealed by the provider."""


# -- from messages to pages ---------------------------------------------------------------------


def side_of(message: AgentMessage) -> Role:
    """On which side of a turn the message stands."""
    return Role.ASSISTANT if message.role is MessageRole.ASSISTANT else Role.USER


def run_end(message: AgentMessage, start: int) -> int:
    """Past the last block on the page of block ``start``: all of the assistant's; of inputs each result is alone."""
    blocks = message.blocks
    if message.role is MessageRole.ASSISTANT:
        return len(blocks)
    first, end = blocks[start], start + 1
    while end < len(blocks) and _is_same_input(message.role, first, blocks[end]):
        end += 1
    return end


def _is_same_input(role: MessageRole, first: ContentBlock, other: ContentBlock) -> bool:
    if other.kind is BlockKind.TOOL_RESULT:
        return first.kind is BlockKind.TOOL_RESULT and first.call_id == other.call_id
    return first.kind is not BlockKind.TOOL_RESULT or role is MessageRole.TOOL


def draft_page(
    message: AgentMessage, blocks: tuple[ContentBlock, ...], turn_id: int, labels: PageLabels = NO_LABELS
) -> PageDraft:
    """The page of neighbouring blocks of a message, before anything is redacted, without terms and notes.

    Args:
        message: whose they are.
        blocks: those of one page (`run_end`), or the first of them; at least one.
        turn_id: the page's turn.
        labels: what else is known: owner, and of a result provenance, file and superseded page. A path makes
            a file page.
    """
    text, parts = _laid_out(blocks)
    kind, labels = _labelled(message, blocks, labels)
    plain = PageDraft(turn_id, side_of(message), text, time=message.time, kind=kind, labels=labels)
    return plain if page_blocks(plain) == blocks else replace(plain, labels=replace(labels, parts=parts))


def empty_page(turn_id: int, role: Role, owner: str = "") -> PageDraft:
    """The page of a side on which nothing was said."""
    return PageDraft(turn_id, role, "", labels=replace(NO_LABELS, owner=owner) if owner else NO_LABELS)


def finish_draft(
    redacted: PageDraft, number: int, supersedes: PageId | None = None, *, continues: int | None = None
) -> PageDraft:
    """A redacted draft as it is stored: with its terms and notes, and the page that it supersedes.

    Args:
        redacted: the draft without secrets.
        number: of its first block in the session; of the next block when it is an empty side.
        supersedes: the older version of the same thing.
        continues: ordinal of the page whose message goes on here.
    """
    labels = redacted.labels if supersedes is None else replace(redacted.labels, supersedes=supersedes)
    notes = {_NUMBER: number, _TOKENS: sum(map(_tokens, page_blocks(redacted)))}
    derived = _noted({name: note for name, note in notes.items() if note or name == _NUMBER}, continues)
    return replace(redacted, terms=page_terms(redacted), derived=derived, labels=labels)


def _noted(notes: dict[str, int], continues: int | None = None) -> str:
    if continues is not None:
        notes[_CONTINUES] = continues
    return json.dumps(notes, separators=(",", ":"))


def joined_page(pieces: Sequence[Page], number: int) -> Page:
    """The page that pieces of one message are together, in the first one's place.

    Args:
        pieces: of one message in order, at least one.
        number: of the first block in the session.
    """
    head = pieces[0]
    notes = {_NUMBER: number, _TOKENS: sum(map(page_tokens, pieces))}
    if len(pieces) == 1:
        return replace(head, derived=_noted(notes))
    text, parts = _laid_out([block for piece in pieces for block in page_blocks(piece)])
    sha = page_digest(text, parts)
    terms = Counter(head.terms)
    for piece in pieces[1:]:
        terms |= Counter(piece.terms)
    return replace(
        head, text=text, terms=terms, derived=_noted(notes), sha256=sha, labels=replace(head.labels, parts=parts)
    )


def _laid_out(blocks: Sequence[ContentBlock]) -> tuple[str, tuple[PagePart, ...]]:
    """Texts of blocks one behind the other, and where each stands."""
    pieces: list[str] = []
    parts: list[PagePart] = []
    length = 0
    for block in blocks:
        if block.text and length:
            pieces.append(_BETWEEN)
            length += len(_BETWEEN)
        pieces.append(block.text)
        end = length + len(block.text)
        beside = (block.hidden_chars, block.signature, block.data, block.media_type)
        parts.append(PagePart(block.kind, length, end, block.name, block.call_id, *beside))
        length = end
    return "".join(pieces), tuple(parts)


def _labelled(message: AgentMessage, blocks: Sequence[ContentBlock], labels: PageLabels) -> tuple[PageKind, PageLabels]:
    result = blocks[0]
    if message.role is not MessageRole.ASSISTANT and result.kind is BlockKind.TOOL_RESULT:
        provenance = labels.provenance or Provenance.TOOL
        told = replace(
            labels, provenance=provenance, call_id=result.call_id, tool=result.name, is_error=result.is_error
        )
        return (PageKind.FILE if labels.path else PageKind.TOOL), told
    origin = SYSTEM_ORIGIN if message.role is MessageRole.SYSTEM else message.origin
    if message.role is MessageRole.ASSISTANT:
        provenance, origin = (Provenance.ASSISTANT if message.is_call else Provenance.TOOL), ""
    elif origin == _SUMMARY_ORIGIN:
        provenance = Provenance.ASSISTANT
    else:
        # What nobody typed came through the agent's program, which may pass on what its tools gave it.
        provenance = Provenance.USER if origin in ("", SYSTEM_ORIGIN) else Provenance.TOOL
    return PageKind.TURN, replace(labels, provenance=provenance, origin=origin, path="", content_hash="")


def result_provenance(call: ContentBlock | None, *, is_file: bool) -> Provenance:
    """Through which channel a result came in, told by its call and never by its text."""
    if call is None:
        return Provenance.TOOL
    if tool_kind(call.name, call.text) is ToolKind.SHELL:
        command = read_command(call.text)
        if command is not None and command.program in _WEB_PROGRAMS:
            return Provenance.WEB
    elif _WEB_TOOL.search(call.name):
        return Provenance.WEB
    return Provenance.FILE if is_file else Provenance.TOOL


def _tokens(block: ContentBlock) -> int:
    """By the estimate.

    What a block holds beside its text counts for nothing: a provider bills the thinking that it seals, which
    ``hidden_chars`` tells, and no signature.
    """
    if block.kind is BlockKind.IMAGE:
        return image_tokens()
    if block.kind is BlockKind.THINKING:
        return round((block.hidden_chars or len(block.text)) * THINKING_TOKENS_A_CHAR)
    return estimate_tokens(block.text)


# -- from pages to messages ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """One block of a page."""

    number: int
    """In the session."""
    start: int
    """First character in the page's text."""
    end: int
    block: ContentBlock


def is_empty_side(page: Page | PageDraft) -> bool:
    """Whether the page only fills a side on which nothing was said."""
    labels = page.labels
    return not page.text and labels.provenance is None and not labels.deleted and not labels.parts


def first_number(page: Page) -> int | None:
    """Number of the page's first block, of an empty one's next; None for a deleted page and one of no agent."""
    return _note(page, _NUMBER)


def page_tokens(page: Page) -> int:
    """Tokens of the page's blocks by the estimate, as told when it came in."""
    return _note(page, _TOKENS) or 0


def continued_page(page: Page) -> int | None:
    """Ordinal of the page whose message goes on here; None for a page that begins its own."""
    return _note(page, _CONTINUES)


def _note(page: Page, name: str) -> int | None:
    try:
        note = json.loads(page.derived).get(name)
    except (ValueError, AttributeError):
        return None
    return note if isinstance(note, int) else None


def page_blocks(page: Page | PageDraft) -> tuple[ContentBlock, ...]:
    """The page's blocks as they stand in its text; none for an empty side or a deleted page."""
    labels = page.labels
    if labels.deleted or is_empty_side(page):
        return ()
    if not labels.parts:
        if page.kind in (PageKind.TOOL, PageKind.FILE):
            return (ContentBlock(BlockKind.TOOL_RESULT, page.text, labels.call_id, labels.tool, labels.is_error),)
        return (ContentBlock(BlockKind.TEXT, page.text),)
    return tuple(
        ContentBlock(
            part.kind,
            page.text[part.start : part.end],
            part.call_id,
            part.name,
            labels.is_error and part.kind is BlockKind.TOOL_RESULT,
            part.hidden_chars,
            part.signature,
            part.data,
            part.media_type,
        )
        for part in labels.parts
    )


def called_tools(page: Page) -> tuple[str, ...]:
    """Names of the tools that the page calls, each once, in order."""
    return tuple(dict.fromkeys(part.name for part in page.labels.parts if part.kind is BlockKind.TOOL_CALL))


def block_places(page: Page) -> tuple[BlockPlace, ...]:
    """The page's blocks with their numbers and places; none for a page of no agent session."""
    number = first_number(page)
    if number is None:
        return ()
    spans = [(part.start, part.end) for part in page.labels.parts] or [(0, len(page.text))]
    return tuple(
        BlockPlace(number + place, *span, block)
        for place, (span, block) in enumerate(zip(spans, page_blocks(page), strict=False))
    )


def page_message(page: Page) -> AgentMessage | None:
    """The message that a page was made of; None for an empty side or a deleted page."""
    blocks = page_blocks(page)
    if not blocks:
        return None
    labels = page.labels
    if page.role is Role.ASSISTANT:
        is_call = labels.provenance is Provenance.ASSISTANT
        return AgentMessage(MessageRole.ASSISTANT, blocks, time=page.time, is_call=is_call)
    if page.kind in (PageKind.TOOL, PageKind.FILE):
        return AgentMessage(MessageRole.TOOL, blocks, time=page.time)
    if labels.origin == SYSTEM_ORIGIN:
        return AgentMessage(MessageRole.SYSTEM, blocks, time=page.time)
    return AgentMessage(MessageRole.USER, blocks, time=page.time, origin=labels.origin)


# -- what pages are found by --------------------------------------------------------------------


def page_terms(draft: PageDraft) -> dict[str, int]:
    """Terms of a redacted draft: of its blocks, its file's path and its time. O(length of the text).

    Of a call the tool's name and the texts in its arguments count, not their JSON. Thinking and images give none.
    """
    if is_empty_side(draft):
        return {}
    counts: Counter[str] = Counter()
    for text in (draft.labels.path, *_said_texts(page_blocks(draft))):
        for piece in _ends(text):
            counts.update(scan_anchors(piece).counts)
    capped = {term: min(count, _MOST_TERM_COUNT) for term, count in counts.items()}
    return {**capped, **context_terms(draft.time, None)}


def _said_texts(blocks: Iterable[ContentBlock]) -> Iterator[str]:
    for block in blocks:
        if block.kind in (BlockKind.TOOL_CALL, BlockKind.OTHER):
            yield block.name
            yield "\n".join(argument_texts(block.text))
        elif block.kind not in _UNREAD:
            yield block.text


def _ends(text: str) -> tuple[str, ...]:
    if len(text) <= 2 * _MOST_SCANNED_CHARS:
        return (text,) if text else ()
    return text[:_MOST_SCANNED_CHARS], text[-_MOST_SCANNED_CHARS:]


# -- swap groups --------------------------------------------------------------------------------


def swap_group(pages: Sequence[Page], call_id: str) -> tuple[Page, ...]:
    """The pages that enter and leave a window together with a call: its page and those of all results, in order.

    Calls that one message makes in parallel, and their results, are one group. Nothing when no page names the
    call. O(pages).
    """
    holders: dict[str, list[int]] = {}
    ids = [_call_ids(page) for page in pages]
    for place, named in enumerate(ids):
        for name in named:
            holders.setdefault(name, []).append(place)
    waiting, known = deque([call_id]), {call_id, ""}
    members: set[int] = set()
    while waiting:
        for place in holders.get(waiting.popleft(), ()):
            members.add(place)
            waiting.extend(ids[place] - known)
            known |= ids[place]
    return tuple(pages[place] for place in sorted(members))


def _call_ids(page: Page) -> frozenset[str]:
    """Calls that the page makes or answers."""
    named = {part.call_id for part in page.labels.parts} | {page.labels.call_id}
    return frozenset(named - {""})
