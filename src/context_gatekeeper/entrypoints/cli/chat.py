"""``cgk chat``: a conversation in the terminal whose every prompt the gatekeeper builds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from logging import getLogger

from context_gatekeeper.config import Config
from context_gatekeeper.core.tokens import MESSAGE_TOKENS
from context_gatekeeper.entrypoints.cli.decisions import block_lines, decision_lines, verdict_line
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.terminal import Tint, one_line, printable, say
from context_gatekeeper.entrypoints.endpoints import endpoint_of
from context_gatekeeper.entrypoints.thinking import ReplyPiece
from context_gatekeeper.entrypoints.upstream import ChatClient, Reply
from context_gatekeeper.errors import ConfigError, GatekeeperError
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.types import Decision

__all__ = ["run_chat"]

_LOGGER = getLogger("context_gatekeeper.chat")
_FINE, _SOME_FAILED = 0, 2
_HELP = (
    "/explain [QUERY]      the decision for the last query, or for QUERY",
    "/constraint KEY=VALUE keep a wish in every prompt; KEY= removes it, no argument lists them",
    "/help                 this list",
    "/quit                 end (so does Ctrl-D)",
)


def run_chat(face: Face, config: Config) -> int:
    """Read queries until the input ends.

    A turn whose answer failed, was broken off or interrupted is not stored, so that it can be asked
    again; the chat goes on.

    Returns:
        0, or 2 when the input is no terminal and a turn or command of it failed.

    Raises:
        ConfigError: no key, unknown provider, httpx missing.
        StoreError: the store cannot be opened.
    """
    endpoint = endpoint_of(config)
    with (
        ChatClient(endpoint, timeout_seconds=config.timeout, max_tokens=config.max_tokens) as client,
        ContextGatekeeper(
            config.budget, profile=config.profile, store=config.store, session=config.session
        ) as gatekeeper,
    ):
        chat = _Chat(face, gatekeeper, client)
        if chat.is_interactive and not face.as_json:
            turns = gatekeeper.turn_count
            say(
                face.paint(f"{endpoint.name}, {endpoint.model}, {turns} turns so far; /help lists commands", Tint.DEBUG)
            )
        chat.run()
    return _FINE if chat.is_interactive or not chat.failures else _SOME_FAILED


@dataclass(slots=True)
class _Chat:
    """One run of the chat."""

    face: Face
    gatekeeper: ContextGatekeeper
    client: ChatClient
    last_decision: Decision | None = None
    failures: int = 0

    @property
    def is_interactive(self) -> bool:
        return sys.stdin.isatty()

    def run(self) -> None:
        for line in self._lines():
            try:
                if line == "/quit":
                    return
                if line.startswith("/"):
                    self._obey(line)
                else:
                    self._ask(line)
            except GatekeeperError as error:
                self.failures += 1
                self.face.note(f"error: {error}", Tint.ERROR)

    def _lines(self) -> Iterator[str]:
        """Stripped lines that hold something, until end of input or Ctrl-C at the prompt."""
        while True:
            try:
                line = input("> ") if self.is_interactive else next(sys.stdin, None)
            except (EOFError, KeyboardInterrupt):
                line = None
            if line is None:
                if self.is_interactive:
                    say()
                return
            if line.strip():
                yield line.strip()

    # -- a turn ---------------------------------------------------------------------------

    def _ask(self, query: str) -> None:
        gatekeeper = self.gatekeeper
        self.last_decision = decision = gatekeeper.explain(query)
        messages = gatekeeper.build_messages(query)
        printer = _Printer(self.face)
        try:
            reply = self.client.ask(messages, on_piece=printer.show)
        except KeyboardInterrupt:
            self.failures += 1
            printer.end()
            self.face.note("interrupted: the turn is not stored")
            return
        except GatekeeperError:
            printer.end()
            raise
        printer.end()
        turn_id = gatekeeper.add_turn(query, reply.text)
        estimated = sum(gatekeeper.count_tokens(message["content"]) + MESSAGE_TOKENS for message in messages)
        gatekeeper.calibration = gatekeeper.calibration.updated(reply.usage.prompt_tokens, estimated)
        self._report(turn_id, decision, reply, estimated)

    def _report(self, turn_id: int, decision: Decision, reply: Reply, estimated: int) -> None:
        usage, factor = reply.usage, self.gatekeeper.calibration.factor
        _LOGGER.info(
            "%s; %d blocks, prompt %d tokens estimated, %d counted by the service (factor %.2f), answer %d",
            verdict_line(decision, type(self.face.painter)()),
            len(decision.blocks),
            estimated,
            usage.prompt_tokens,
            factor,
            usage.completion_tokens,
            extra={"turn": turn_id},
        )
        if self.face.as_json:
            self.face.print_json(
                {
                    "turn_id": turn_id,
                    "query": decision.query,
                    "assistant": reply.text,
                    "move": decision.verdict.move.value,
                    "topic": decision.topic,
                    "block_turn_ids": [block["turn_id"] for block in decision.blocks],
                    "estimated_prompt_tokens": estimated,
                    "prompt_tokens": usage.prompt_tokens,
                    "completion_tokens": usage.completion_tokens,
                }
            )

    # -- commands -------------------------------------------------------------------------

    def _obey(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        if name == "/explain":
            self._explain(rest.strip())
        elif name == "/constraint":
            self._constrain(rest.strip())
        elif name == "/help":
            self._say_lines(_HELP)
        else:
            raise ConfigError(name, "there is no such command", "/help lists them")

    def _explain(self, query: str) -> None:
        decision = self.gatekeeper.explain(query) if query else self.last_decision
        if decision is None:
            raise ConfigError("/explain", "nothing was asked yet", "ask something, or add a query")
        if self.face.as_json:
            self.face.print_json(decision.to_dict())
            return
        painter = self.face.painter
        self.face.print_lines([*decision_lines(decision, painter), "", *block_lines(decision, painter)])

    def _constrain(self, wish: str) -> None:
        key, mark, value = (part.strip() for part in wish.partition("="))
        if wish and not mark:
            raise ConfigError(f"/constraint {wish}", "it is not KEY=VALUE", "write it like language=English")
        if mark and value:
            self.gatekeeper.set_constraint(key, value)
        elif mark:
            self.gatekeeper.remove_constraint(key)
        kept = self.gatekeeper.get_constraints()
        self._say_lines([one_line(f"{name}: {value}") for name, value in kept.items()] or ["no constraint"])

    def _say_lines(self, lines: tuple[str, ...] | list[str]) -> None:
        if not self.face.as_json:
            self.face.print_lines(lines)


class _Printer:
    """Prints a reply as it arrives; thinking is shown dim where there are colours, else not at all."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._is_mid_line = False

    def show(self, piece: ReplyPiece) -> None:
        if self._face.as_json or (piece.is_thinking and not self._face.painter.is_on):
            return
        text = printable(piece.text)
        say(self._face.paint(text, Tint.DEBUG) if piece.is_thinking else text, is_piece=True)
        self._is_mid_line = True

    def end(self) -> None:
        if self._is_mid_line:
            say()
        self._is_mid_line = False
