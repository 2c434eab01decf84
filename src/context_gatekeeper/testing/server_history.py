"""What the Responses API keeps for its clients: the prompts behind ``previous_response_id`` and ``conversation``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from context_gatekeeper.testing.rendering import RenderedBlock, output_blocks

__all__ = ["ServerHistory", "StoredPrompt"]


@dataclass(frozen=True, slots=True)
class StoredPrompt:
    """A prompt with the answer to it."""

    blocks: tuple[RenderedBlock, ...] = ()
    open_calls: frozenset[str] = frozenset()
    """Ids of the calls that wait for their outputs."""


_NOTHING = StoredPrompt()


class ServerHistory:
    """Prompts by response and by conversation, and which items belong to which reasoning."""

    def __init__(self) -> None:
        self._prompts: dict[str, StoredPrompt] = {}
        self._reasons: dict[str, str] = {}

    def before(self, body: Mapping[str, Any]) -> StoredPrompt | None:
        """What stands in front of a request's own items; None when the response it names is not there."""
        earlier = body.get("previous_response_id")
        if isinstance(earlier, str):
            return self._prompts.get(earlier)
        return self._prompts.get(_conversation(body), _NOTHING)

    def fault(self, body: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> str | None:
        """What does not fit to what is kept, None when all does."""
        earlier = self.before(body)
        if earlier is None:
            return f"Previous response with id '{body['previous_response_id']}' not found."
        given = {str(item.get("call_id")) for item in items if str(item.get("type")).endswith("_output")}
        own = {str(item.get("call_id")) for item in items if str(item.get("type")).endswith("_call")}
        for call in sorted(earlier.open_calls - given):
            return f"No tool output found for function call {call}."
        is_kept = body.get("previous_response_id") is not None or bool(_conversation(body))
        for call in sorted(given - own - earlier.open_calls) if is_kept else ():
            return f"No tool call found for function call output with call_id {call}."
        ids = {item.get("id") for item in items}
        for item in items:
            reason = self._reasons.get(str(item.get("id")))
            if reason is not None and reason not in ids:
                head = f"Item '{item['id']}' of type '{item.get('type', 'message')}'"
                return f"{head} was provided without its required 'reasoning' item: '{reason}'."
        return None

    def keep(
        self, body: Mapping[str, Any], name: str, blocks: tuple[RenderedBlock, ...], items: Sequence[Mapping[str, Any]]
    ) -> None:
        """Keep a request's prompt and its answer's items, unless it asks not to (``store``)."""
        if body.get("store", True) is False:
            return
        open_calls = frozenset(str(item["call_id"]) for item in items if "call_id" in item)
        prompt = StoredPrompt((*blocks, *output_blocks(items)), open_calls)
        self._prompts[name] = prompt
        if _conversation(body):
            self._prompts[_conversation(body)] = prompt
        for item, following in pairwise(items):
            if item["type"] == "reasoning":
                self._reasons[str(following.get("id"))] = str(item["id"])


def _conversation(body: Mapping[str, Any]) -> str:
    named = body.get("conversation")
    name = named.get("id") if isinstance(named, dict) else named
    return name if isinstance(name, str) else ""
