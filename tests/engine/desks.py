"""A small agent session with its window, whose pages the tests put out by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable

from context_gatekeeper.engine.page_faults import FAULT_PARAMS, FaultParams, PageFault, PageFaults
from context_gatekeeper.engine.session_log import SessionLog
from context_gatekeeper.engine.window import EntryForm, Window
from context_gatekeeper.types import AgentMessage, BlockKind, ContentBlock, MessageRole

FILLERS = (
    "The weather report says rain for the coast and sun inland.",
    "Tomatoes want six hours of light and water in the morning.",
    "The choir meets on Thursdays in the old fire station.",
    "A marathon has a little more than forty-two kilometres.",
    "Paint the fence before the frost, after sanding it twice.",
    "The library closes early when the council is in session.",
)


class Desk:
    """Takes messages in, shows all of them, and swaps blocks out on demand."""

    def __init__(self, params: FaultParams = FAULT_PARAMS) -> None:
        self.log = SessionLog()
        self.window = Window(self.log)
        self.faults = PageFaults(self.log, self.window, params)
        self.turn = 0
        self._calls = 0

    def take(self, message: AgentMessage) -> int:
        """Put a message into log and window; number of its last block."""
        for piece in self.log.add_message(message):
            self.window.append(self.window.make(EntryForm.RAW, piece.tokens, [piece.number]))
        return len(self.log.segments) - 1

    def say(self, text: str) -> int:
        """A text that a person typed."""
        return self.take(AgentMessage(MessageRole.USER, (ContentBlock(BlockKind.TEXT, text),)))

    def answer(self, text: str) -> int:
        """A text of the agent, without calls."""
        block = ContentBlock(BlockKind.TEXT, text)
        return self.take(AgentMessage(MessageRole.ASSISTANT, (block,), is_call=True))

    def call(self, tool: str, arguments: dict[str, str], result: str, call_id: str = "") -> int:
        """A call of a tool and its result; number of the result's block, the call has the one before."""
        self._calls += 1
        name = call_id or f"toolu_01{self._calls:022d}"
        self.take(AgentMessage(MessageRole.ASSISTANT, (call_block(tool, arguments, name),), is_call=True))
        return self.take(AgentMessage(MessageRole.TOOL, (ContentBlock(BlockKind.TOOL_RESULT, result, name, tool),)))

    def fill(self, count: int = 6) -> None:
        """Texts about other things, which stay in the window."""
        for number in range(count):
            self.answer(FILLERS[number % len(FILLERS)])

    def put_out(self, *blocks: int, digest: str | None = "") -> None:
        """Swap blocks out. A digest with this text stays; None leaves nothing."""
        pieces = self.pieces(*blocks)
        kept = [entry for entry in self.window.entries if set(entry.pieces).isdisjoint(pieces)]
        self.window.replace_all(kept)
        if digest is not None:
            handles = " ".join(f"p{block}" for block in blocks)
            text = f"[out: {handles}]\n{digest}"
            self.window.append(self.window.make(EntryForm.DIGEST, 20, pieces, text=text))

    def bring_back(self, faults: Iterable[PageFault]) -> None:
        """Serve faults as the planner does."""
        for fault in faults:
            for piece in fault.pieces:
                self.window.append(self.window.make(EntryForm.RECALLED, self.log.slices[piece].tokens, [piece]))

    def pieces(self, *blocks: int) -> tuple[int, ...]:
        """Slices of blocks."""
        return tuple(piece for block in blocks for piece in self.log.segments[block].slices)

    def find(self, text: str, *, by_user: bool = True, goals: tuple[str, ...] = ()) -> tuple[PageFault, ...]:
        """Faults of a text of the next turn."""
        self.turn += 1
        return self.faults.find(text, turn=self.turn, by_user=by_user, goals=goals)

    def blocks_found(self, text: str, *, by_user: bool = True, goals: tuple[str, ...] = ()) -> list[int]:
        """Numbers of the blocks of which slices are found, each once, in order of the session."""
        found = self.find(text, by_user=by_user, goals=goals)
        return list(dict.fromkeys(self.log.slices[piece].segment for fault in found for piece in fault.pieces))


def call_block(tool: str, arguments: dict[str, str], call_id: str = "c") -> ContentBlock:
    """A call as an agent writes it."""
    return ContentBlock(BlockKind.TOOL_CALL, json.dumps(arguments, ensure_ascii=False), call_id, tool)


def agent_message(text: str = "", *calls: ContentBlock) -> AgentMessage:
    """A message of the agent that is in no log yet."""
    blocks = (ContentBlock(BlockKind.TEXT, text),) if text else ()
    return AgentMessage(MessageRole.ASSISTANT, (*blocks, *calls), is_call=True)
