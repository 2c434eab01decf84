"""Stretches of sessions for the tests of memory cards, in our own words."""

from __future__ import annotations

import json

from context_gatekeeper.core.card_records import CardSource
from context_gatekeeper.types import BlockKind, MessageRole


class Stretch:
    """Builds the blocks of a stretch; every block is a page of its own."""

    def __init__(self) -> None:
        self.sources: list[CardSource] = []

    def _add(self, role: MessageRole, kind: BlockKind, text: str, **extra: object) -> Stretch:
        place = len(self.sources) + 1
        self.sources.append(CardSource(place, place, role, kind, text, **extra))  # type: ignore[arg-type]
        return self

    def user(self, text: str, origin: str = "") -> Stretch:
        return self._add(MessageRole.USER, BlockKind.TEXT, text, origin=origin)

    def agent(self, text: str) -> Stretch:
        return self._add(MessageRole.ASSISTANT, BlockKind.TEXT, text)

    def call(
        self, name: str, arguments: dict[str, object] | str, call_id: str = "", time: float | None = None
    ) -> Stretch:
        logged = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return self._add(MessageRole.ASSISTANT, BlockKind.TOOL_CALL, logged, name=name, call_id=call_id, time=time)

    def result(
        self, text: str, call_id: str = "", name: str = "", *, is_error: bool = False, time: float | None = None
    ) -> Stretch:
        return self._add(
            MessageRole.TOOL, BlockKind.TOOL_RESULT, text, name=name, call_id=call_id, is_error=is_error, time=time
        )

    def run(self, command: str, output: str, *, is_error: bool = False, tool: str = "Bash") -> Stretch:
        """A shell call and its result."""
        call_id = f"call{len(self.sources)}"
        self.call(tool, {"command": command}, call_id)
        return self.result(output, call_id, tool, is_error=is_error)

    def use(self, tool: str, arguments: dict[str, object], output: str = "done", *, is_error: bool = False) -> Stretch:
        """Any other call and its result."""
        call_id = f"call{len(self.sources)}"
        self.call(tool, arguments, call_id)
        return self.result(output, call_id, tool, is_error=is_error)

    @property
    def texts(self) -> dict[int, str]:
        return {source.page_id: source.text for source in self.sources}
