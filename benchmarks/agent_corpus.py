"""Seeded agent sessions of any size, with the shape of recorded ones.

A session works on two dozen made source files. A call reads a part of a file, searches, runs a command or edits
lines that were read before; what it edits it quotes. Kinds come as often, and results are as long, as in recorded
sessions of a coding agent: about a third of the calls read (1,800 tokens), a third edit, the others search
and run. Of the tokens half are files read, an eighth is output of commands, a tenth are edits.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from random import Random

from benchmarks.corpus import Corpus
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.types import AgentMessage, AgentSession, BlockKind, ContentBlock, MessageRole

__all__ = ["made_session"]

_FILES = 24
_FILE_LINES = (120, 700)
_READ_LINES = (40, 260)
_EDITED_LINES = (2, 8)
_FOUND_LINES = (5, 60)
_SHELL_LINES = (5, 90)
_CALLS_A_TURN = 13
"""Model calls that one request of the person takes."""
_ACTIONS = ("read", "edit", "search", "run")
_ACTION_SHARES = (32, 32, 15, 21)
_NEAR_SHARE = 0.75
"""Of the reads and edits, those in one of the files that were touched last."""
_NEAR_FILES = 4
_THINKING_CHARS = (100, 700)


def made_session(seed: int, least_tokens: int) -> AgentSession:
    """A session whose messages come to at least ``least_tokens`` estimated tokens; equal seeds begin alike."""
    messages: list[AgentMessage] = []
    tokens = 0
    for exchange in _Workshop(seed).exchanges():
        messages += exchange
        tokens += sum(estimate_tokens(block.text) for message in exchange for block in message.blocks)
        if tokens >= least_tokens:
            return AgentSession(f"made-{seed}", "agents", tuple(messages))
    raise AssertionError  # pragma: no cover - exchanges never end


class _Workshop:
    """Made files, and an agent at work on them."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._words = _words(seed)
        self._files = {self._path(): self._code(self._random.randint(*_FILE_LINES)) for _ in range(_FILES)}
        self._touched: list[str] = list(self._files)[:1]
        self._calls = 0

    def exchanges(self) -> Iterator[list[AgentMessage]]:
        """A call with its result, one after the other, each turn's first behind the person's request."""
        while True:
            asked: list[AgentMessage] = []
            if self._calls % _CALLS_A_TURN == 0:
                text = f"Please look into {self._prose(12)} in {self._near_file()}, {self._prose(10)}."
                asked = [AgentMessage(MessageRole.USER, (ContentBlock(BlockKind.TEXT, text),))]
            self._calls += 1
            yield [*asked, *self._act()]

    def _act(self) -> list[AgentMessage]:
        action = self._random.choices(_ACTIONS, _ACTION_SHARES)[0]
        if action == "read":
            return self._read()
        if action == "edit":
            return self._edit()
        if action == "search":
            return self._search()
        return self._run()

    def _read(self) -> list[AgentMessage]:
        path = self._near_file()
        lines = self._files[path]
        count = min(len(lines), self._random.randint(*_READ_LINES))
        first = self._random.randrange(len(lines) - count + 1)
        numbered = (f"{first + place + 1:6}→{line}" for place, line in enumerate(lines[first : first + count]))
        arguments = {"file_path": path, "offset": first + 1, "limit": count}
        return self._exchange("Read", arguments, "\n".join(numbered))

    def _edit(self) -> list[AgentMessage]:
        path = self._touched[-1]
        lines = self._files[path]
        count = self._random.randint(*_EDITED_LINES)
        first = self._random.randrange(len(lines) - count + 1)
        old = lines[first : first + count]
        new = [*old[:-1], *self._code(self._random.randint(1, 4))]
        lines[first : first + count] = new
        arguments = {"file_path": path, "old_string": "\n".join(old), "new_string": "\n".join(new)}
        shown = "\n".join(f"{first + place + 1:6}→{line}" for place, line in enumerate(new))
        return self._exchange("Edit", arguments, f"The file {path} has been updated.\n{shown}")

    def _search(self) -> list[AgentMessage]:
        name = self._word()
        found = []
        for _ in range(self._random.randint(*_FOUND_LINES)):
            path = self._random.choice(list(self._files))
            place = self._random.randrange(len(self._files[path]))
            found.append(f"{path}:{place + 1}:{self._files[path][place]}")
        return self._exchange("Grep", {"pattern": name, "output_mode": "content"}, "\n".join(found))

    def _run(self) -> list[AgentMessage]:
        name = f"test_{self._word()}_{self._word()}"
        command = f"python -m tests {self._near_file()} -k {name} 2>&1 | tail -80"
        count = self._random.randint(*_SHELL_LINES)
        lines = [f"{self._prose(2)} test_{self._word()}_{self._word()} PASSED in {number}ms" for number in range(count)]
        return self._exchange("Bash", {"command": command}, "\n".join([*lines, f"{count} passed"]))

    def _exchange(self, tool: str, arguments: Mapping[str, object], result: str) -> list[AgentMessage]:
        call_id = f"call-{self._calls}"
        thinking = ContentBlock(BlockKind.THINKING, hidden_chars=self._random.randint(*_THINKING_CHARS))
        said = ContentBlock(BlockKind.TEXT, f"{self._prose(14)} {self._near_file()}.")
        call = ContentBlock(BlockKind.TOOL_CALL, json.dumps(arguments), call_id, tool)
        blocks = (thinking, said, call) if self._random.random() < 0.5 else (said, call)
        answer = ContentBlock(BlockKind.TOOL_RESULT, result, call_id, tool)
        return [
            AgentMessage(MessageRole.ASSISTANT, blocks, is_call=True),
            AgentMessage(MessageRole.TOOL, (answer,)),
        ]

    def _near_file(self) -> str:
        if self._random.random() < _NEAR_SHARE:
            path = self._random.choice(self._touched[-_NEAR_FILES:])
        else:
            path = self._random.choice(list(self._files))
        if path in self._touched:
            self._touched.remove(path)
        self._touched.append(path)
        return path

    def _path(self) -> str:
        return f"/src/project/{self._word()}/{self._word()}_{self._word()}.py"

    def _code(self, count: int) -> list[str]:
        lines = []
        for _ in range(count):
            indent = "    " * self._random.randint(0, 3)
            form = self._random.randrange(4)
            first, second, third = self._word(), self._word(), self._word()
            if form == 0:
                lines.append(f"{indent}def {first}_{second}({third}: str, {self._word()}: int = 0) -> None:")
            elif form == 1:
                lines.append(f"{indent}{first} = self.{second}_{third}({self._word()}, {self._random.randrange(100)})")
            elif form == 2:
                lines.append(f"{indent}if {first}.{second} and not {third}:")
            else:
                lines.append(f"{indent}return {first}")
        return lines

    def _prose(self, count: int) -> str:
        return " ".join(self._word() for _ in range(count))

    def _word(self) -> str:
        return next(self._words)


def _words(seed: int) -> Iterator[str]:
    """Words of a made conversation, as rare and as common as there."""
    for turn in Corpus(seed).turns(sys.maxsize):
        yield from (word.replace(".", "_") for word in turn.assistant_text.split() if len(word) > 3)
