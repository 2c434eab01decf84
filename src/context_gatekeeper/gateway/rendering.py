"""From a planned window to what changes in a client's request.

Slices of one block stand in the request's own part, in order; what is left out of a part leaves its digest there.
Parts of which nothing stands leave, but never one of a call and its result without the other, and no message of the
model's is given a word that is not its own: digests of whole exchanges, recalled pages and cards go into a message on
the user's side. All decisions rest on the entries and on what was sent before them, so that a window that grew at its
tail changes nothing in front of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from typing import NamedTuple

from context_gatekeeper.core.argument_cuts import ArgumentCut, cut_arguments
from context_gatekeeper.core.cuts import cut_plain
from context_gatekeeper.core.recalled_text import RecalledItem, neutralise, render_recalled
from context_gatekeeper.engine.digest import handle_ranges, slice_text
from context_gatekeeper.engine.session_log import Segment, SessionLog, SliceKind
from context_gatekeeper.engine.window import Entry, EntryForm
from context_gatekeeper.gateway.gaps import find_gaps
from context_gatekeeper.gateway.groups import Group, find_groups
from context_gatekeeper.types import BlockKind, MessageRole, PageKind, Provenance
from context_gatekeeper.wire.own_tool import OWN_TOOL
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireMessage, WirePart, WireRequest

__all__ = ["WindowRenderer", "left_out_note"]

_NOTE = (
    "[Note of the context gateway: to keep this conversation short, earlier text that is hardly needed is not shown."
    " [out: p12-p14] stands where it was, with lines that may still matter; [= p9#L3-40] stands for lines that are the"
    " same as before. Nothing is lost: name such a handle (p12, or p9#L3-40){way} and its text comes back.]"
)
_COMMAND_WAY = ", or run `{command}` with it,"
_TOOL_WAY = f", or call the tool {OWN_TOOL} with it,"
_TOOL_TEXTS = frozenset({SliceKind.READ, SliceKind.SEARCH, SliceKind.SHELL, SliceKind.OTHER_RESULT})
_USERS_SIDE = frozenset({MessageRole.USER, MessageRole.TOOL})
_OWN_FORMS = frozenset({EntryForm.RAW, EntryForm.REFERENCE, EntryForm.HEAD})
"""Forms that stand in the place of the slice itself."""
_STUB_CHARS = 200
_MARKED_FORMS = frozenset({EntryForm.DIGEST, EntryForm.REFERENCE})
_FENCE_BYTES = 8


@dataclass(slots=True)
class _SegmentState:
    """What of one block stands in the window."""

    shown: list[tuple[int, str]] = field(default_factory=list)
    """(place of its entry, text), in order; digests that stand inside the block too."""
    pieces: set[int] = field(default_factory=set)
    """Slices that stand there, whole, by reference or in a head."""
    is_raw: bool = True
    """Whether nothing but whole slices stands there."""
    cuts: list[ArgumentCut] = field(default_factory=list)
    """Of a call, what is left out of its arguments."""


def left_out_note(expand_command: str = "", *, has_own_tool: bool = False) -> str:
    """What an agent is told of the marks that stand for what is left out.

    Args:
        expand_command: with which it gets a page itself; "" where there is none.
        has_own_tool: whether it has a tool for that, which goes before the command.
    """
    if has_own_tool:
        return _NOTE.format(way=_TOOL_WAY)
    return _NOTE.format(way=_COMMAND_WAY.format(command=expand_command) if expand_command else "")


class WindowRenderer:
    """Renders the windows of one session, request after request.

    Args:
        log: the session; only read.
        keys: part of the request that each block of the log is, by its number.
        session: its name, shown as the origin of recalled pages.
        secret: from which the fences of recalled pages are drawn: the same page in the same place, the same fence.
        expand_command: with which an agent gets a page itself; "" where there is none.
        has_own_tool: whether it has a tool for that.
    """

    def __init__(
        self,
        log: SessionLog,
        keys: Sequence[PartKey],
        *,
        session: str,
        secret: bytes,
        expand_command: str = "",
        has_own_tool: bool = False,
    ) -> None:
        self.hosts: dict[int, int] = {}
        """Entry that stands in no part of its own -> message that it is added to."""
        self.unbound: set[PartKey] = set()
        """Thinking that is left out: it is bound to a prefix that is gone."""
        self.fillers: set[int] = set()
        """Messages of which something stayed so that the roles alternate."""
        self._log = log
        self._keys = keys
        self._session = session
        self._secret = secret
        self._note_host: int | None = None
        self.note = left_out_note(expand_command, has_own_tool=has_own_tool)
        """What the marks mean: told once, where the first one stands."""

    def host_at(self, entries: Iterable[Entry], message: int) -> None:
        """Put pages and cards that were laid since the last request into its newest message on the user's side."""
        for entry in entries:
            if entry.form in (EntryForm.RECALLED, EntryForm.RESIDENT) and entry.number not in self.hosts:
                self.hosts[entry.number] = message

    def render(self, request: WireRequest, entries: Sequence[Entry]) -> RequestEdits:
        """What changes in the request so that it holds the window's entries; nothing where it holds them already."""
        return _Rendering(self, request, entries).edits()

    # -- used by a rendering ------------------------------------------------------------------

    def note_host(self, first: int | None, standing: Iterable[int]) -> int | None:
        """Message that tells what the marks mean; it moves only when it has left."""
        if first is None:
            return None
        if self._note_host is None or self._note_host not in standing:
            self._note_host = first
        return self._note_host

    def fence(self, entry: Entry) -> str:
        """A word that no page can know."""
        told = f"{self._session}\0{entry.number}".encode("utf-8", "surrogatepass")
        return blake2b(told, key=self._secret, digest_size=_FENCE_BYTES).hexdigest()

    @property
    def log(self) -> SessionLog:
        """The session."""
        return self._log

    @property
    def keys(self) -> Sequence[PartKey]:
        """Part of each block."""
        return self._keys

    @property
    def session(self) -> str:
        """Its name."""
        return self._session


class _Digest(NamedTuple):
    """A digest of the window, and where it goes."""

    place: int
    """Of its entry."""
    entry: Entry
    pieces: tuple[int, ...]
    """Of its slices those that leave here: the others left earlier, came back and leave again."""
    home: int | None
    """Block that its text stands in; None for a message that it is added to."""


class _Rendering:
    """One request's."""

    def __init__(self, owner: WindowRenderer, request: WireRequest, entries: Sequence[Entry]) -> None:
        self._owner = owner
        self._log = owner.log
        self._request = request
        self._entries = entries
        self._states: dict[int, _SegmentState] = {}
        self._hosted: dict[int, list[tuple[int, Entry]]] = {}
        self._by_key = {key: number for number, key in enumerate(owner.keys)}
        self._parts = {part.key: part for message in request.messages for part in message.parts}
        self._read_entries()
        self._groups = find_groups(self._log.segments)
        self._staying = self._find_staying()
        self._whole: set[int] = set()
        """Blocks of which nothing stands in the window, and which stay as they are."""
        self._fillers: set[int] = set()
        """Messages of which something stays for the sake of the roles alone."""
        self._standing = self._find_standing()
        self._digests = [self._settle(place, entry, pieces) for place, entry, pieces in self._find_digests()]
        self._fill_gaps()

    def edits(self) -> RequestEdits:
        for place, entry in enumerate(self._entries):
            if entry.number in self._owner.hosts and entry.form is not EntryForm.DIGEST:
                self._host(self._owner.hosts[entry.number], place, entry)
        for digest in self._digests:
            self._place_digest(digest)
        texts: dict[PartKey, str] = {}
        dropped: set[PartKey] = set()
        for number, key in enumerate(self._owner.keys):
            state = self._states.get(number)
            if state is None:
                if number not in self._staying and number not in self._whole:
                    dropped.add(key)
            elif (text := self._text_of(self._parts[key], state)) is not None:
                texts[key] = text
        self._settle_units(texts, dropped)
        return RequestEdits(texts=texts, dropped=frozenset(dropped), added=self._added())

    # -- what stands --------------------------------------------------------------------------

    def _read_entries(self) -> None:
        for place, entry in enumerate(self._entries):
            if entry.form not in _OWN_FORMS:
                continue
            piece = self._log.slices[entry.pieces[0]]
            state = self._states.setdefault(piece.segment, _SegmentState())
            state.pieces.update(entry.pieces)
            if entry.form is EntryForm.RAW:
                block = self._log.segments[piece.segment].block
                state.shown.append((place, block.text[piece.start : piece.end]))
            else:
                state.is_raw = False
                state.shown.append((place, entry.text))
        for number, state in self._states.items():
            state.is_raw = state.is_raw and len(state.pieces) == len(self._log.segments[number].slices)

    def _find_staying(self) -> set[int]:
        """Blocks of which nothing stands, but which stay: a call with its results, and the other way about."""
        segments = self._log.segments
        told = {segments[number].message for number in self._states}
        staying: set[int] = set()
        for group in self._groups:
            if any(self._stands(number, told) for number in (*group.calls, *group.results)):
                staying |= self._framed(group, told)
        return staying

    def _stands(self, number: int, told: Container[int]) -> bool:
        """Whether something of a call stands, or of any piece of the result that a block belongs to."""
        segment = self._log.segments[number]
        is_piece = segment.block.kind is BlockKind.TOOL_RESULT and segment.role is not MessageRole.ASSISTANT
        return segment.message in told if is_piece else number in self._states

    def _framed(self, group: Group, told: Container[int]) -> set[int]:
        """Blocks of a group that stay though nothing of them does: of a result of several pieces the first."""
        framed = {number for number in group.calls if number not in self._states}
        messages: set[int] = set()
        for number in group.results:
            message = self._log.segments[number].message
            if message not in messages and not self._stands(number, told):
                framed.add(number)
            messages.add(message)
        return framed

    def _find_standing(self) -> set[int]:
        """Messages of which something stands before digests are placed; thinking does not stand for itself."""
        keys, segments = self._owner.keys, self._log.segments
        told = [n for n in self._states if segments[n].block.kind is not BlockKind.THINKING]
        standing = {keys[number].message for number in (*told, *self._staying)}
        in_turns = {key.message for key in keys}
        return standing | {m.number for m in self._request.messages if m.number not in in_turns and m.parts}

    def _hosts(self) -> set[int]:
        """Messages that something is added to, as far as that is known."""
        return {self._owner.hosts[entry.number] for entry in self._entries if entry.number in self._owner.hosts}

    # -- digests ------------------------------------------------------------------------------

    def _find_digests(self) -> Iterator[tuple[int, Entry, tuple[int, ...]]]:
        """(place, entry, slices that leave there) of each digest; where none leaves there, they came back before."""
        newest = -1
        for place, entry in enumerate(self._entries):
            if entry.form in _OWN_FORMS:
                newest = max(newest, *entry.pieces)
            elif entry.form is EntryForm.DIGEST:
                fresh = tuple(piece for piece in entry.pieces if piece > newest)
                if not fresh:
                    self._host_again(entry, newest)
                newest = max(newest, *entry.pieces)
                yield place, entry, fresh

    def _host_again(self, entry: Entry, newest: int) -> None:
        """A page that came back and leaves again leaves where it came to: nothing in front of that changes."""
        first = self._owner.keys[self._log.slices[newest].segment].message
        behind = (m.number for m in self._request.messages[first:] if m.role in _USERS_SIDE)
        self._owner.hosts.setdefault(entry.number, self._text_place(next(behind)))

    def _settle(self, place: int, entry: Entry, pieces: tuple[int, ...]) -> _Digest:
        segments = self._segments_of(pieces)
        home = self._home(segments)
        if home is None and entry.number not in self._owner.hosts:
            self._owner.hosts[entry.number] = self._text_place(self._find_host(segments))
        return _Digest(place, entry, pieces, home)

    def _segments_of(self, pieces: Iterable[int]) -> list[int]:
        return list(dict.fromkeys(self._log.slices[piece].segment for piece in pieces))

    def _home(self, segments: Sequence[int]) -> int | None:
        """The block that the digest's text stands in; None for a message of its own."""
        results = [n for n in segments if self._can_hold(n) and self._is_on_users_side(n)]
        if results:
            return results[0]
        if len(segments) == 1 and self._can_hold(segments[0]):
            return segments[0]
        return None

    def _can_hold(self, number: int) -> bool:
        return self._is_text(number) and (number in self._staying or number in self._states)

    def _is_on_users_side(self, number: int) -> bool:
        return self._role(self._owner.keys[number].message) in _USERS_SIDE

    def _is_text(self, number: int) -> bool:
        return self._parts[self._owner.keys[number]].text_span is not None

    def _find_host(self, segments: Sequence[int]) -> int:
        """Message on the user's side that a digest of whole messages is added to; the same until it is laid anew.

        The message before the first one that left, when that is on the user's side; else the first of those that
        left; else the next that stands.
        """
        standing = self._standing | self._hosts()
        own = sorted({self._owner.keys[number].message for number in segments})
        first = next((n for n in own if n not in standing), own[0])
        before = max((n for n in standing if n < first and self._role(n) is not MessageRole.SYSTEM), default=None)
        if before is not None and self._role(before) in _USERS_SIDE:
            return before
        mine = [n for n in own if n >= first and self._role(n) in _USERS_SIDE]
        behind = (m.number for m in self._request.messages[first:] if m.role in _USERS_SIDE and m.number in standing)
        return mine[0] if mine else next(behind)

    def _text_place(self, message: int) -> int:
        """Where results stand together one text comes behind all of them: the user's own message when there is one."""
        messages = self._request.messages
        behind = message
        while messages[behind].role is MessageRole.TOOL and behind + 1 < len(messages):
            if messages[behind + 1].role not in _USERS_SIDE:
                break
            behind += 1
        return behind

    def _place_digest(self, digest: _Digest) -> None:
        """Into a block of its own side that stays, else into a message on the user's side."""
        log, entry = self._log, digest.entry
        for number in self._segments_of(digest.pieces):
            pieces = [piece for piece in digest.pieces if log.slices[piece].segment == number]
            short = f"[out: {' '.join(handle_ranges(log, pieces))}]"
            told = entry.text if number == digest.home else short
            if log.segments[number].block.kind is BlockKind.TOOL_CALL:
                self._cut_call(number, pieces, told, short)
            elif number not in self._whole and self._can_hold(number):
                state = self._states.setdefault(number, _SegmentState(is_raw=False))
                state.is_raw = False
                state.shown.append((digest.place, told))
        if digest.home is None:
            self._host(self._owner.hosts[entry.number], digest.place, entry)

    def _cut_call(self, number: int, pieces: Sequence[int], told: str, short: str) -> None:
        if number not in self._staying and number not in self._states:
            return
        state = self._states.setdefault(number, _SegmentState(is_raw=False))
        state.is_raw = False
        log = self._log
        runs: list[list[int]] = []
        for piece in pieces:
            if runs and piece == runs[-1][-1] + 1:
                runs[-1].append(piece)
            else:
                runs.append([piece])
        for run in runs:
            state.cuts.append(ArgumentCut(log.slices[run[0]].start, log.slices[run[-1]].end, told, short))
            told = short

    def _role(self, message: int) -> MessageRole:
        return self._request.messages[message].role

    # -- roles --------------------------------------------------------------------------------

    def _fill_gaps(self) -> None:
        """Let something stay where messages of one role would become neighbours."""
        passed: set[tuple[int, int]] = set()
        while True:
            gaps = find_gaps(self._request, self._standing, self._hosts())
            gap = next((one for one in gaps if one[:2] not in passed), None)
            if gap is None:
                return
            passed.add(gap[:2])
            known = self._owner.fillers
            between = sorted(gap.between, key=lambda number: number not in known)  # stable: what stayed stays
            if any(self._stub_text(number) for number in between) or any(map(self._keep_frame, between)):
                continue
            for part in self._request.messages[between[0]].parts:
                self._whole.add(self._by_key[part.key])
            self._fill(between[0])

    def _stub_text(self, message: int) -> bool:
        """Let the first line of a text stay, a short text whole; whether there is one."""
        for part in self._request.messages[message].parts:
            text = part.block.text
            if part.block.kind is BlockKind.TEXT and part.text_span is not None and text.strip():
                number = self._by_key[part.key]
                first = cut_plain(text.strip().split("\n", 1)[0].rstrip(), _STUB_CHARS)
                if len(text) <= _STUB_CHARS:
                    self._whole.add(number)
                else:
                    self._states[number] = _SegmentState(shown=[(-1, first)], is_raw=False)
                self._fill(message)
                return True
        return False

    def _keep_frame(self, message: int) -> bool:
        """Let the frame of a call and its results stay; whether there is one."""
        numbers = {self._by_key[part.key] for part in self._request.messages[message].parts}
        for group in self._groups:
            if not numbers.isdisjoint((*group.calls, *group.results)):
                told = {self._log.segments[number].message for number in self._states}
                self._staying |= self._framed(group, told)
                for number in (*group.calls, *group.results):
                    self._standing.add(self._owner.keys[number].message)
                self._fill(message)
                return True
        return False

    def _fill(self, message: int) -> None:
        self._standing.add(message)
        self._fillers.add(message)
        self._owner.fillers.add(message)

    # -- texts --------------------------------------------------------------------------------

    def _text_of(self, part: WirePart, state: _SegmentState) -> str | None:
        """The part's new text; None where it stays as it is."""
        if state.is_raw or part.text_span is None:
            return None
        if part.block.kind is BlockKind.TOOL_CALL:
            text = cut_arguments(part.block.text, sorted(state.cuts))
            return None if text == part.block.text else text
        written: list[str] = []
        last_end = ""
        for _, text in sorted(state.shown):
            if written and last_end and last_end != "\n" and text:
                written.append("\n")
            written.append(text)
            last_end = text[-1:] or last_end
        return "".join(written)

    def _settle_units(self, texts: dict[PartKey, str], dropped: set[PartKey]) -> None:
        """Parts that only stay or leave together: what we cannot read, and thinking with what it led to."""
        messages = self._request.messages
        for message, behind in zip(messages, (*messages[1:], None), strict=True):
            if message.role is not MessageRole.ASSISTANT:
                continue
            sealed = {part.key for part in message.parts if part.block.kind is BlockKind.OTHER}
            if not sealed <= dropped:
                dropped -= sealed
            for key in sealed:
                texts.pop(key, None)
            self._settle_thinking(message, behind, dropped)

    def _settle_thinking(self, message: WireMessage, behind: WireMessage | None, dropped: set[PartKey]) -> None:
        thinking = {part.key for part in message.parts if part.block.kind is BlockKind.THINKING}
        rest = {part.key for part in message.parts} - thinking
        if not rest and behind is not None and behind.role is MessageRole.ASSISTANT:
            rest = {part.key for part in behind.parts}  # an item of its own belongs to the one behind it
        if message.number in self._fillers or (rest and rest <= dropped):
            dropped |= thinking
        elif rest and thinking:
            dropped -= thinking  # a message's thinking leaves whole or not at all
        dropped |= thinking & self._owner.unbound

    # -- what is added ------------------------------------------------------------------------

    def _host(self, message: int, place: int, entry: Entry) -> None:
        self._hosted.setdefault(message, []).append((place, entry))

    def _added(self) -> Mapping[int, tuple[str, ...]]:
        added: dict[int, list[str]] = {}
        for message, hosted in self._hosted.items():
            texts = added.setdefault(message, [])
            recalled: list[Entry] = []
            for _, entry in sorted(hosted, key=lambda item: item[0]):
                if entry.form is EntryForm.RECALLED:
                    recalled.append(entry)
                    continue
                texts += self._recalled(recalled)
                recalled = []
                # Lines of a page stand in the user's place here: none of them may look like a role's.
                texts.append(neutralise(entry.text) if entry.form is EntryForm.DIGEST else entry.text)
            texts += self._recalled(recalled)
        host = self._owner.note_host(self._first_mark(), self._standing | self._hosts())
        if host is not None:
            added[host] = [self._owner.note, *added.get(host, [])]
        return {message: tuple(texts) for message, texts in sorted(added.items())}

    def _recalled(self, entries: Sequence[Entry]) -> list[str]:
        """Pages that came back, as one fenced block of data."""
        if not entries:
            return []
        pieces = [piece for entry in entries for piece in entry.pieces]
        # Slices of one block that follow each other are one page.
        of_blocks = groupby(pieces, key=lambda piece: self._log.slices[piece].segment)
        items = [self._item(number, list(found)) for number, found in of_blocks]
        return [render_recalled(items, self._owner.fence(entries[0]))]

    def _item(self, number: int, pieces: Sequence[int]) -> RecalledItem:
        log = self._log
        segment = log.segments[number]
        is_result = segment.kind in _TOOL_TEXTS
        return RecalledItem(
            handle=" ".join(handle_ranges(log, pieces)),
            kind=PageKind.TOOL if is_result else PageKind.TURN,
            provenance=_provenance(segment),
            session=self._owner.session,
            text="".join(slice_text(log, log.slices[piece]) for piece in pieces),
            tool=segment.block.name,
            path=segment.path,
        )

    def _first_mark(self) -> int | None:
        """Message on the user's side in which, or behind which, the first mark of ours stands; None where none does."""
        standing = sorted(self._standing | self._hosts())
        for entry in self._entries:
            if entry.form not in _MARKED_FORMS:
                continue
            first = self._owner.hosts.get(entry.number)
            if first is None:
                first = self._owner.keys[self._log.slices[entry.pieces[0]].segment].message
            return next((self._text_place(n) for n in standing if n >= first and self._role(n) in _USERS_SIDE), None)
        return None


def _provenance(segment: Segment) -> Provenance:
    if segment.kind in _TOOL_TEXTS:
        return Provenance.TOOL
    return Provenance.USER if segment.kind is SliceKind.USER else Provenance.ASSISTANT
