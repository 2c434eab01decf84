"""The wire forms of the three APIs: requests read without loss, and written so that only what is edited differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from context_gatekeeper.wire.anthropic_messages import MESSAGES_FORM, decode_messages
from context_gatekeeper.wire.editing import ApiForm, apply_edits
from context_gatekeeper.wire.models import binds_whole_prefix, min_cached_tokens
from context_gatekeeper.wire.openai_chat import CHAT_FORM, decode_chat
from context_gatekeeper.wire.openai_responses import RESPONSES_FORM, decode_responses
from context_gatekeeper.wire.records import RequestEdits, WireApi, WireRequest

__all__ = ["binds_whole_prefix", "decode_request", "encode_request", "min_cached_tokens"]

_DECODERS: Mapping[WireApi, Callable[[bytes, WireRequest | None], WireRequest]] = {
    WireApi.MESSAGES: decode_messages,
    WireApi.CHAT: decode_chat,
    WireApi.RESPONSES: decode_responses,
}
_FORMS: Mapping[WireApi, ApiForm] = {
    WireApi.MESSAGES: MESSAGES_FORM,
    WireApi.CHAT: CHAT_FORM,
    WireApi.RESPONSES: RESPONSES_FORM,
}


def decode_request(api: WireApi, body: bytes, known: WireRequest | None = None) -> WireRequest:
    """A request as the planner sees it.

    Args:
        api: whose form the body has.
        body: as received, not compressed.
        known: an earlier request of the same conversation: messages that stand in both with the same text are taken
            from it. The result is the same without it.

    Raises:
        WireFormatError: the body cannot be understood; it can only be sent on as it came.
    """
    return _DECODERS[api](body, known)


def encode_request(request: WireRequest, edits: RequestEdits) -> bytes:
    """The bytes of a request with the planner's edits; without edits those that came in.

    What is not edited keeps its bytes. The same request and edits give the same bytes.

    Raises:
        WireFormatError: an edit names what is not there or cannot be changed, or no message would be left.
    """
    text = apply_edits(request, edits, _FORMS[request.api]) if edits else request.source
    return text.encode("utf-8", "surrogatepass")
