"""Bringing a conversation into a gatekeeper: from a file, from a store, or both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from context_gatekeeper.config import Config
from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.stores import open_store
from context_gatekeeper.transcripts import Conversation, read_conversations

__all__ = ["History", "open_history"]

_SHOWN_IDS = 5


@dataclass(frozen=True, slots=True)
class History:
    """A gatekeeper that holds a conversation."""

    gatekeeper: ContextGatekeeper
    name: str
    """Id of the conversation, or the session's name when it comes from a store alone."""
    tokens: int
    """Tokens of the whole history."""


@contextmanager
def open_history(face: Face, config: Config, file: str | None, conversation_id: str | None) -> Iterator[History]:
    """Read the conversation, then open the gatekeeper; the file is whole before anything is stored.

    Raises:
        TranscriptError: the file cannot be read.
        ConfigError: no such conversation, neither file nor store, a store without the session, or a session that
            holds another conversation.
        StoreError: the store cannot be opened.
    """
    if file is None:
        _check_session(config)
    conversation, ids = (None, []) if file is None else _chosen(file, conversation_id)
    session = config.session
    if session is None and config.store is not None and conversation is not None:
        session = conversation.conversation_id
    with ContextGatekeeper(config.budget, profile=config.profile, store=config.store, session=session) as gatekeeper:
        if conversation is not None:
            _add_missing(gatekeeper, conversation)
        if conversation_id is None and len(ids) > 1:
            face.note(f"note: {file} holds {len(ids)} conversations; this is {ids[0]}, --conversation ID takes another")
        tokens = sum(block.tokens_user + block.tokens_assistant for block in gatekeeper.blocks())
        yield History(gatekeeper, conversation.conversation_id if conversation else gatekeeper.session, tokens)


def _check_session(config: Config) -> None:
    """Raise ConfigError unless the store holds the session: asking makes no store and is never silently empty."""
    if config.store is None:
        raise ConfigError("FILE", "neither a file nor --store is given", "name a conversation file or a store")
    if not Path(config.store.removeprefix("sqlite:")).exists():
        raise ConfigError(
            f"store {config.store}", "there is no such file", "check the path, or name a conversation FILE too"
        )
    with closing(open_store(config.store)) as store:
        sessions = store.sessions("default")
    session = "default" if config.session is None else config.session
    if session not in sessions:
        cause = f"{config.store} does not hold it" if sessions else f"{config.store} holds no conversation"
        raise ConfigError(
            f"session {session!r}", cause, f"add --session with one of {_some(sessions)}" if sessions else "name a FILE"
        )


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:_SHOWN_IDS]) + (f" and {len(names) - _SHOWN_IDS} more" if len(names) > _SHOWN_IDS else "")


def _chosen(file: str, conversation_id: str | None) -> tuple[Conversation, list[str]]:
    """The conversation asked for, the first by default, and the ids of all."""
    conversations = read_conversations(file)
    ids = [conversation.conversation_id for conversation in conversations]
    if conversation_id is None:
        return conversations[0], ids
    if conversation_id not in ids:
        raise ConfigError(f"conversation {conversation_id!r}", f"{file} does not hold it", f"take one of {_some(ids)}")
    return conversations[ids.index(conversation_id)], ids


def _add_missing(gatekeeper: ContextGatekeeper, conversation: Conversation) -> None:
    """Add the turns that the session does not hold yet; what it holds must be the conversation's beginning.

    Another process may bring the same conversation in at the same time: each turn is stored once.
    """
    place = _turns_in_common(gatekeeper, conversation)
    while place < len(conversation.turns):
        turn = conversation.turns[place]
        try:
            gatekeeper.add_turn(
                turn.user_text, turn.assistant_text, time=turn.time, speakers=turn.speakers, turn_id=place
            )
            place += 1
        except ConfigError:
            if gatekeeper.turn_count == place:
                raise
            place = _turns_in_common(gatekeeper, conversation)


def _turns_in_common(gatekeeper: ContextGatekeeper, conversation: Conversation) -> int:
    """Turns that the session holds of the conversation. Raises ConfigError when it holds others."""
    turns_in_common = 0
    for block, turn in zip(gatekeeper.blocks(), conversation.turns, strict=False):
        if (block.user_text, block.assistant_text) != (turn.user_text, turn.assistant_text):
            raise ConfigError(
                f"session {gatekeeper.session!r}",
                f"its turn {block.turn_id} is not that of conversation {conversation.conversation_id!r}",
                "name another --session for this conversation",
            )
        turns_in_common += 1
    return turns_in_common
