"""What a provider answered, whole or as a stream of events, as one neutral message with what it cost.

Shapes as in the packages anthropic 2.14 and openai 3.57; additions of DeepSeek, MiniMax, Gemini's OpenAI route and
programs in front of others are read where they are told. Unknown events, types and fields are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from context_gatekeeper.types import AgentMessage, MessageRole
from context_gatekeeper.wire.answer_anthropic import MessagesDraft
from context_gatekeeper.wire.answer_chat import ChatDraft
from context_gatekeeper.wire.answer_draft import AnswerDraft, as_text, loaded_object
from context_gatekeeper.wire.answer_responses import ResponsesDraft
from context_gatekeeper.wire.records import WireApi
from context_gatekeeper.wire.sse import EventReader

__all__ = ["WireAnswer", "read_answer"]
_END_MARK = "[DONE]"


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """One answer of a model, as far as it came."""

    message: AgentMessage
    """The assistant's, ``is_call``. A call's text is the JSON text of its arguments as it was assembled, however
    broken; of an ``OTHER`` block it is the block's JSON. ``usage`` is None where the provider told none, its
    ``output_tokens`` where the answer is not complete."""
    is_complete: bool
    """Whether it ended the way its API ends an answer; an error is no end, but of the Responses API a failure is."""
    stop_reason: str = ""
    """In the API's own words; of the Responses API the status, or why it is incomplete."""
    response_id: str = ""
    model: str = ""
    error: str = ""
    """What went wrong, in the provider's words on one line, at most 500 characters: nothing for a log, a provider
    may quote the caller's key."""
    applied_edits: tuple[str, ...] = ()
    """Types of edits that the provider made to the context (Anthropic's ``context_management``)."""
    input_transformations: tuple[str, ...] = ()
    """Types of changes that it made to the request, one for each block: dropped thinking (Anthropic)."""
    written_1h_tokens: int = 0
    """Of ``usage.written_tokens`` those that the cache keeps for an hour (Anthropic)."""
    broken_events: int = 0
    """Events, or whole answers, that are no JSON object or too large: passed over."""


def read_answer(api: WireApi, content_type: str, content: bytes) -> WireAnswer:
    """The answer in the body of a response, whatever it holds: never raises. O(length).

    Args:
        api: whose form the request had.
        content_type: of the response; a body that begins with ``{`` is no stream, whatever it says.
        content: the body, decoded (no gzip); it may break off anywhere.
    """
    draft = _DRAFTS[api]()
    if _is_stream(content_type, content):
        _read_stream(draft, content, has_end_mark=api is WireApi.CHAT)
    else:
        body = loaded_object(content.decode("utf-8-sig", "replace"))
        if body is None:
            draft.broken_events += 1
        else:
            draft.take_body(body)
    return _finished(draft)


def _read_stream(draft: AnswerDraft, content: bytes, *, has_end_mark: bool) -> None:
    reader = EventReader()
    for event in reader.feed(content):
        if event.data.strip() == _END_MARK:
            draft.is_complete = draft.is_complete or has_end_mark
            continue
        value = loaded_object(event.data)
        if value is None:
            draft.broken_events += 1
        else:
            draft.take_event(as_text(value.get("type")) or event.name, value)
    reader.close()
    draft.broken_events += reader.dropped_events


def _finished(draft: AnswerDraft) -> WireAnswer:
    usage = draft.usage()
    if usage is not None and not draft.is_complete:
        usage = replace(usage, output_tokens=None)
    return WireAnswer(
        AgentMessage(MessageRole.ASSISTANT, tuple(draft.blocks()), usage=usage, is_call=True),
        draft.is_complete,
        draft.stop_reason,
        draft.response_id,
        draft.model,
        draft.error,
        draft.applied_edits,
        draft.input_transformations,
        draft.written_1h_tokens,
        draft.broken_events,
    )


def _is_stream(content_type: str, content: bytes) -> bool:
    if content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return False
    return "json" not in content_type.lower()


_DRAFTS: Mapping[WireApi, Callable[[], AnswerDraft]] = {
    WireApi.MESSAGES: MessagesDraft,
    WireApi.CHAT: ChatDraft,
    WireApi.RESPONSES: ResponsesDraft,
}
