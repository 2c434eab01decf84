"""Own calls hidden in answers of OpenAI Responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_gatekeeper.wire.answer_draft import as_index, as_object, as_text, json_text
from context_gatekeeper.wire.hidden_draft import HiddenDraft, OwnCall, edited
from context_gatekeeper.wire.hidden_edits import JsonEdits, Path
from context_gatekeeper.wire.hidden_frames import Frame
from context_gatekeeper.wire.json_source import Shape
from context_gatekeeper.wire.own_tool import OWN_TOOL

__all__ = ["HiddenResponses"]

_RESPONSE_SHAPE: Shape = {"output": {}, "tools": {}, "usage": {"output_tokens_details": {}}}
_EVENT_SHAPE: Shape = {"response": _RESPONSE_SHAPE}
_TOOLS_SHAPE: Shape = {"response": {"tools": {}}}
_PREFIX = "response."
_SAME_IN_ALL = ("id", "created_at")
"""What all events of an answer have in common."""
_BEGINNINGS = frozenset({"created", "queued", "in_progress"})
_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})
_RUN_BY_PROVIDER = frozenset(
    {"code_interpreter_call", "file_search_call", "image_generation_call", "mcp_call", "web_search_call"}
)


@dataclass(slots=True)
class _Item:
    """An output item."""

    text: str
    """Its JSON."""
    value: Mapping[str, Any]
    is_done: bool

    @property
    def is_own(self) -> bool:
        return self.value.get("type") == "function_call" and self.value.get("name") == OWN_TOOL

    @property
    def is_client_call(self) -> bool:
        """Whether the client has to do something for it."""
        kind = as_text(self.value.get("type"))
        if self.is_own or kind in _RUN_BY_PROVIDER or self.value.get("execution") == "server":
            return False
        return kind.endswith("_call") or kind == "mcp_approval_request"


def _is_own_tool(tool: object) -> bool:
    return as_object(tool).get("name") == OWN_TOOL


class HiddenResponses(HiddenDraft):
    """OpenAI Responses.

    Places in ``output`` and numbers of events go on from answer to answer. In a stream the last event bears the id and
    time of the first answer, since OpenAI's library refuses an end with another id than the beginning had; the
    provider goes on from the last answer's own id (`renamed_id`). A whole answer keeps the last one's.

    Responses repeat the request's tools, in a stream several times: ours is taken out there, called or not. It alone
    leaves places and numbers as they are.
    """

    output_key = "output_tokens"
    details_key = "output_tokens_details"
    going_on = frozenset({"completed"})

    def __init__(self) -> None:
        super().__init__()
        self._next_place = 0
        self._next_number = 0
        self._visible: list[str] = []
        self._common: dict[str, str] = {}
        self._client_id = ""

    def begin(self) -> None:
        """See `HiddenDraft.begin`."""
        super().begin()
        self._items: dict[int, _Item] = {}
        self._places: dict[int, int | None] = {}
        self._own_items: set[str] = set()
        self._held_numbers = 0

    def next_answer(self) -> None:
        """See `HiddenDraft.next_answer`."""
        self._visible += [item.text for _, item in sorted(self._items.items()) if not item.is_own]
        self._next_number -= self._held_numbers
        super().next_answer()

    def take_event(self, frame: Frame, event: Mapping[str, Any]) -> bytes:
        """See `HiddenDraft.take_event`."""
        kind = (as_text(event.get("type")) or frame.name).removeprefix(_PREFIX)
        if kind in _BEGINNINGS and not self.is_first:
            return b""
        response = as_object(event.get("response"))
        if self.is_first:
            self._common.update({key: json_text(response[key]) for key in _SAME_IN_ALL if key in response})
            self._client_id = as_text(response.get("id")) or self._client_id
        index = as_index(event.get("output_index"))
        if kind in ("output_item.added", "output_item.done"):
            index = self._take_item(frame, event, index, is_done=kind.endswith("done"))
        if kind in _ENDS and response:
            return self._take_end(frame, event, kind)
        if self._is_of_own(event, index):
            return b""
        changes = self._numbered(event)
        visible = self._places.get(index) if index is not None else None
        if visible is not None and visible != index and "output_index" in event:
            changes["output_index",] = str(visible)
        return edited(frame, _TOOLS_SHAPE, changes, self._cut_tools(("response",), response))

    def _take_end(self, frame: Frame, event: Mapping[str, Any], status: str) -> bytes:
        source = frame.data or ""
        edits = JsonEdits(source, _EVENT_SHAPE)
        self._take_response(edits, ("response",), event["response"], status)
        if not self.is_touched:
            return frame.raw
        changes = self._numbered(event)
        if not self.is_first:
            changes.update({("response", key): text for key, text in self._common.items()})
            own_id = as_text(event["response"].get("id"))
            self.renamed_id = (self._client_id, own_id) if own_id != self._client_id else None
        for path, value in changes.items():
            edits.set(path, value)
        self._held_numbers = int(("sequence_number",) in changes and self.is_own_only)
        text = edits.text()
        return self.hold(frame.with_data(text) if text != source else frame.raw)

    def _cut_tools(self, place: Path, response: Mapping[str, Any]) -> list[Path]:
        """Where our tool stands among the tools that the response at ``place`` repeats; it is to be taken out."""
        tools = response.get("tools")
        listed = tools if isinstance(tools, list) else []
        found = [(*place, "tools", number) for number, tool in enumerate(listed) if _is_own_tool(tool)]
        self.has_cut_tools = self.has_cut_tools or bool(found)
        return found

    def _is_of_own(self, event: Mapping[str, Any], index: int | None) -> bool:
        is_placed = index is not None and self._places.get(index, index) is None
        return is_placed or as_text(event.get("item_id")) in self._own_items

    def _numbered(self, event: Mapping[str, Any]) -> dict[Path, str]:
        number = as_index(event.get("sequence_number"))
        if number is None:
            return {}
        if not self.is_shifted:
            self._next_number = number + 1
            return {}
        self._next_number += 1
        return {("sequence_number",): str(self._next_number - 1)}

    def _take_item(self, frame: Frame, event: Mapping[str, Any], index: int | None, *, is_done: bool) -> int:
        """Take an item; its place."""
        text = JsonEdits(frame.data or "", {}).source(("item",))
        item = _Item(text, as_object(event.get("item")), is_done)
        place = max(len(self._items) - is_done, 0) if index is None else index
        self._items[place] = item
        self._note(item)
        if item.is_own:
            self._places[place] = None
            if item_id := as_text(item.value.get("id")):
                self._own_items.add(item_id)
        elif place not in self._places:
            # As long as nothing is left out the provider's own places stand, whatever they are.
            visible = self._next_place if self.is_shifted else place
            self._places[place] = visible
            self._next_place = max(self._next_place, visible + 1)
        return place

    def _note(self, item: _Item) -> None:
        self.has_own_calls = self.has_own_calls or item.is_own
        self.is_hiding = self.is_hiding or item.is_own
        self.has_client_calls = self.has_client_calls or item.is_client_call

    def _take_response(self, edits: JsonEdits, place: Path, response: Mapping[str, Any], status: str) -> None:
        """Take the response that stands at ``place`` at the end; one without output stays without."""
        usage = response.get("usage")
        self.count(usage)
        self.stop_reason = status
        self.is_complete = status in _ENDS
        output = response.get("output")
        if isinstance(output, list) and output:
            path = (*place, "output")
            self._items = {
                number: _Item(source, as_object(value), is_done=True)
                for number, (value, source) in enumerate(zip(output, edits.sources(path), strict=True))
            }
            for number, item in self._items.items():
                self._note(item)
                if item.is_own:
                    edits.remove((*path, number))
            edits.prepend(path, self._visible)
        for tool in self._cut_tools(place, response):
            edits.remove(tool)
        for changed, value in self.usage_changes((*place, "usage"), usage).items():
            edits.set(changed, value)

    def take_body(self, text: str, body: Mapping[str, Any]) -> str:
        """See `HiddenDraft.take_body`."""
        edits = JsonEdits(text, _RESPONSE_SHAPE)
        self._take_response(edits, (), body, as_text(body.get("status")))
        return edits.text()

    def calls(self) -> tuple[OwnCall, ...]:
        """See `HiddenDraft.calls`."""
        return tuple(
            OwnCall(as_text(item.value.get("call_id")), as_text(item.value.get("arguments")))
            for _, item in sorted(self._items.items())
            if item.is_own
        )

    def blocks(self) -> tuple[str, ...]:
        """See `HiddenDraft.blocks`."""
        return tuple(item.text for _, item in sorted(self._items.items()))

    def cause(self) -> str:
        """See `HiddenDraft.cause`."""
        cause = super().cause()
        return cause or ("" if all(item.is_done for item in self._items.values()) else "an item was not told whole")
