"""What is asked of the providers themselves under the setting ``native``, and what their answers tell of it.

Decision 0010 says what is asked when. Fields as in the packages anthropic 2.14 and openai 3.57; models as in the
provider's pages on context editing and on compaction (2026-11).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.core.economics import PriceProfile, rewrite_price
from context_gatekeeper.types import BlockKind, NativeMode
from context_gatekeeper.wire.answer_draft import as_object, as_objects, first_count, loaded_object
from context_gatekeeper.wire.json_source import Node, read_document
from context_gatekeeper.wire.models import binds_whole_prefix, claude_version
from context_gatekeeper.wire.records import WireApi, WireRequest
from context_gatekeeper.wire.sse import EventReader

__all__ = [
    "CLEAR_TOOLS",
    "COMPACT",
    "COMPACT_BETA",
    "CONTEXT_BETA",
    "KEEP_THINKING",
    "NativeApplied",
    "NativePlan",
    "holds_compaction",
    "is_about_native",
    "native_applied",
    "native_edits",
    "paying_clearance",
    "with_betas",
]

CONTEXT_BETA, COMPACT_BETA = "context-management-2025-06-27", "compact-2026-01-12"
"""Names for the header ``anthropic-beta``: for clearing, for compaction (SDK types; the latter's page asks for it
alone)."""
CLEAR_TOOLS, KEEP_THINKING, COMPACT = "clear_tools", "keep_thinking", "compact"
"""Words for what is asked."""
_TRIGGER_TOKENS = 100_000
"""Prompt above which tool results are cleared: Anthropic's default, and ``mask-100k`` of the replays."""
_KEPT_TOOL_USES = 12
"""Newest tool uses that stay. The provider's 3 are fewer than one turn of parallel calls brings, and results would go
before they were read: of 8,936 recorded turns with calls all but one made at most 11."""
_GROWTH_TOKENS = 1_300
"""By which a prompt grows from call to call: mean of 8,773 recorded calls of Claude Code."""
_STEP_TOKENS = 1_000
"""Numbers are rounded to this, so that they do not move with an estimate."""
_WINDOW_SHARE = (4, 5)
"""Of the window at which history is compacted as the last resort: 160,000 of 200,000, as ``auto-compact-160k`` of the
replays; the rest is room for the answer."""
_DEFAULT_COMPACTION_TOKENS = 150_000
"""Where compaction is preferred: Anthropic's default (SDK types). OpenAI's types name none; the same is taken."""
_LEAST_COMPACTION_TOKENS = 50_000
"""Anthropic refuses less (its page)."""
_EDITS_SINCE, _COMPACTS_SINCE = (4, 5), (4, 6)
"""Claude's first versions, of every family, that clear and that compact. Later ones than those listed are taken to."""
_GPT_COMPACTS_SINCE = (5, 2)
"""First version for which a client library shows compaction by threshold; OpenAI's page lists no models."""
_GPT = re.compile(r"\bgpt-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)")
_ABOUT_NATIVE = re.compile(
    r"context_management|anthropic-beta|compact_threshold|\b(?:clear|compact)_\w*20\d{6}", re.IGNORECASE
)
_FIELD, _SUMMARIZE = "context_management", "compaction"
_MARKS = ("applied_edits", '"compaction"')
"""One of them stands in every answer that tells of native edits."""


@dataclass(frozen=True, slots=True)
class NativePlan:
    """What one request asks of its provider. The same for every request of a conversation whose settings stay."""

    asked: tuple[str, ...] = ()
    """`CLEAR_TOOLS`, `KEEP_THINKING`, `COMPACT`; for the plan's record."""
    betas: tuple[str, ...] = ()
    """Names that ``anthropic-beta`` must hold, without which the request is refused."""
    delegates: bool = False
    """Whether leaving out is the provider's, so that our own rewriting has to rest."""
    member: str = ""
    """What is added to the request, as JSON of one member; "" for nothing."""

    def added_to(self, body: bytes) -> bytes:
        """The request with what is asked, everything else byte for byte.

        Args:
            body: of the client, or as we edited it: a JSON object that is not empty.
        """
        if not self.member:
            return body
        end = body.rindex(b"}")
        return b"%b,%b%b" % (body[:end], self.member.encode(), body[end:])


_NOTHING = NativePlan()


def native_edits(
    request: WireRequest,
    mode: NativeMode,
    *,
    is_own_api: bool,
    clear_at_least: int,
    window_tokens: int | None,
    takes_compaction: bool,
) -> NativePlan:
    """What a request should ask of its provider. Nothing where the client asks for something of the kind itself.

    Args:
        request: of any API.
        mode: the setting.
        is_own_api: whether it goes to Anthropic's or OpenAI's own service: others refuse fields that they do not know.
        clear_at_least: tokens that one clearing must free, such as `paying_clearance`; rounded up to thousands. It
            has to stay the same for a conversation.
        window_tokens: the model's; None where it is not known, and then the limit is nobody's.
        takes_compaction: whether the client sends a compaction block back that it did not ask for. One that drops it
            would pay for a new summary with each call.
    """
    if mode is NativeMode.OFF or not is_own_api or request.api is WireApi.CHAT:
        return _NOTHING
    members = _beside_conversation(request)
    if _FIELD in members or _SUMMARIZE in members:
        return _NOTHING
    threshold = _compaction_tokens(mode, window_tokens) if takes_compaction else 0
    if request.api is WireApi.RESPONSES:
        return _responses_plan(request, mode, threshold)
    return _messages_plan(request, mode, members, clear_at_least, threshold)


def _messages_plan(
    request: WireRequest, mode: NativeMode, members: Mapping[str, Node], clear_at_least: int, threshold: int
) -> NativePlan:
    version = claude_version(request.model)
    edits: dict[str, Mapping[str, Any]] = {}
    if version >= _EDITS_SINCE:
        if _thinks(members):  # without thinking the edit is refused
            edits[KEEP_THINKING] = {"type": "clear_thinking_20251015", "keep": "all"}
        if request.tools_text and (mode is NativeMode.PREFER or binds_whole_prefix(request.model)):
            edits[CLEAR_TOOLS] = {
                "type": "clear_tool_uses_20250919",
                "trigger": _tokens(_TRIGGER_TOKENS),
                "keep": {"type": "tool_uses", "value": _KEPT_TOOL_USES},
                "clear_at_least": _tokens(_rounded_up(clear_at_least)),
            }
    betas = (CONTEXT_BETA,) if edits else ()
    if threshold and version >= _COMPACTS_SINCE:
        edits[COMPACT] = {"type": "compact_20260112", "trigger": _tokens(threshold)}
        betas = (*betas, COMPACT_BETA)
    if not edits:
        return _NOTHING
    # The order is the API's: thinking first.
    return NativePlan(tuple(edits), betas, _delegates(mode, edits), _member({"edits": list(edits.values())}))


def _responses_plan(request: WireRequest, mode: NativeMode, threshold: int) -> NativePlan:
    if not threshold or _gpt_version(request.model) < _GPT_COMPACTS_SINCE:
        return _NOTHING
    entry = {"type": "compaction", "compact_threshold": threshold}
    return NativePlan((COMPACT,), (), _delegates(mode, (COMPACT,)), _member([entry]))


def _delegates(mode: NativeMode, asked: Iterable[str]) -> bool:
    """A summary at the window's limit is the last resort only, beside which ours goes on."""
    return CLEAR_TOOLS in asked or (mode is NativeMode.PREFER and COMPACT in asked)


def _beside_conversation(request: WireRequest) -> Mapping[str, Node]:
    """Members of the request without reading its messages again."""
    source = request.source
    if request.messages:
        source = f"{source[: request.messages[0].span.start]}null{source[request.messages[-1].span.end :]}"
    _, members = read_document(source.encode(), {})
    return members


def _thinks(members: Mapping[str, Node]) -> bool:
    thinking = members.get("thinking")
    return thinking is not None and as_object(thinking.value).get("type") in ("enabled", "adaptive")


def _compaction_tokens(mode: NativeMode, window_tokens: int | None) -> int:
    """Prompt at which history is compacted; 0 for never."""
    share, whole = _WINDOW_SHARE
    limit = 0 if window_tokens is None else window_tokens * share // whole // _STEP_TOKENS * _STEP_TOKENS
    if mode is NativeMode.PREFER:
        limit = min(limit or _DEFAULT_COMPACTION_TOKENS, _DEFAULT_COMPACTION_TOKENS)
    return limit if limit >= _LEAST_COMPACTION_TOKENS else 0


def _gpt_version(model: str) -> tuple[int, int]:
    """Major and minor version of a GPT model; (0, 0) for every other."""
    found = _GPT.search(model.lower())
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _tokens(value: int) -> Mapping[str, Any]:
    return {"type": "input_tokens", "value": value}


def _rounded_up(tokens: int) -> int:
    return max(_STEP_TOKENS, math.ceil(tokens / _STEP_TOKENS) * _STEP_TOKENS)


def _member(value: object) -> str:
    return f'"{_FIELD}":{json.dumps(value, separators=(",", ":"))}'


def paying_clearance(prices: PriceProfile) -> int:
    """Tokens that a clearing must free to cost no more than it saves until the next one is due, in thousands.

    With C of T tokens freed, T - C are written again instead of read, once; each of the C / growth calls until the
    prompt is back at T reads C tokens less. Of a clearing that frees all it is taken that it breaks at the beginning.
    """
    extra = rewrite_price(prices, 1)
    if extra <= 0:
        return _STEP_TOKENS
    root = math.sqrt(extra**2 + 4 * extra * _TRIGGER_TOKENS * prices.read / _GROWTH_TOKENS)
    return _rounded_up(math.ceil(2 * extra * _TRIGGER_TOKENS / (extra + root)))


def with_betas(value: str, names: Iterable[str]) -> str:
    """The value of an ``anthropic-beta`` header with names that it lacks behind the client's, which stay as they are.

    Args:
        value: "" where the client sent none.
        names: such as `NativePlan.betas`.
    """
    present = {name.strip() for name in value.split(",")}
    missing = [name for name in dict.fromkeys(names) if name not in present]
    return ",".join([value, *missing] if value.strip() else missing) if missing else value


def is_about_native(refusal: str) -> bool:
    """Whether an error of the provider's is about what was asked of it: then it has to be asked for no more.

    Args:
        refusal: the error's text. It may name thinking, too (`is_about_thinking`): this goes first.
    """
    return _ABOUT_NATIVE.search(refusal) is not None


@dataclass(frozen=True, slots=True)
class NativeApplied:
    """What the provider did to the context of one call. Its usage then does not fit the text that was sent."""

    cleared_tokens: int = 0
    """By its own count, of tool results and thinking."""
    cleared_tool_uses: int = 0
    compacted: bool = False
    """Whether it wrote a summary, or tried to; what that cost is in no usage but in ``usage.iterations``."""

    def __bool__(self) -> bool:
        """Whether it did anything."""
        return bool(self.cleared_tokens or self.cleared_tool_uses or self.compacted)


def native_applied(content: bytes) -> NativeApplied:
    """What an answer of any API tells of native edits: a whole body, or a stream wherever it broke off. Never raises.

    Args:
        content: decoded (no gzip).
    """
    edits: list[Mapping[str, Any]] = []
    compacted = False
    for told in _telling_objects(content):
        for holder in (told, as_object(told.get("message")), as_object(told.get("response"))):
            edits = as_objects(as_object(holder.get(_FIELD)).get("applied_edits")) or edits
            compacted = compacted or any(one.get("type") == _SUMMARIZE for one in _parts(holder))
    return NativeApplied(
        sum(first_count(edit.get("cleared_input_tokens")) for edit in edits),
        sum(first_count(edit.get("cleared_tool_uses")) for edit in edits),
        compacted,
    )


def _telling_objects(content: bytes) -> Iterator[Mapping[str, Any]]:
    """JSON objects of an answer, or of its events, in which native edits may be told."""
    if not any(mark.encode() in content for mark in _MARKS):
        return
    if content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        texts = [content.decode("utf-8-sig", "replace")]
    else:
        texts = [event.data for event in EventReader().feed(content)]
    for text in texts:
        value = loaded_object(text) if any(mark in text for mark in _MARKS) else None
        if value is not None:
            yield value


def _parts(holder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What has a type in an answer: blocks, items, rounds of sampling."""
    yield from as_objects(holder.get("content"))
    yield from as_objects(holder.get("output"))
    yield from as_objects(as_object(holder.get("usage")).get("iterations"))
    yield as_object(holder.get("content_block"))
    yield as_object(holder.get("item"))


def holds_compaction(request: WireRequest) -> bool:
    """Whether a history holds a summary of the provider's.

    The provider then reads nothing that stands before it: usage does not fit the text of this request either, though
    its answer tells of no edit.
    """
    return any(
        part.block.kind is BlockKind.OTHER and part.block.name == _SUMMARIZE
        for message in request.messages
        for part in message.parts
    )
