"""The files that a command takes agents' sessions from; of several, those without a session are passed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from context_gatekeeper.entrypoints.cli.face import Face
from context_gatekeeper.entrypoints.cli.terminal import one_line
from context_gatekeeper.errors import NoSessionError
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession

__all__ = ["SessionFiles"]


class SessionFiles:
    """Reads the files one after another, each when it is asked for.

    Args:
        face: tells on standard error what is passed over.
        files: their names; one or more.
    """

    def __init__(self, face: Face, files: Sequence[str]) -> None:
        self._face = face
        self._files = files
        self.skipped: list[str] = []
        """Files without a session, as far as they were read."""

    def __iter__(self) -> Iterator[tuple[str, list[AgentSession]]]:
        """Each file that holds a session, with its sessions.

        Raises:
            NoSessionError: no file holds one.
            ConfigError: a file is not there or cannot be read.
        """
        for file in self._files:
            try:
                sessions = _sessions_of(file)
            except NoSessionError:
                if len(self._files) == 1:
                    raise
                self.skipped.append(file)
                self._face.note(f"{one_line(file)}: skipped: it holds no session")
            else:
                yield file, sessions
        if len(self.skipped) == len(self._files):
            raise NoSessionError(f"{len(self._files)} files", "none of them holds a session", "pass other files")


def _sessions_of(file: str) -> list[AgentSession]:
    """The sessions of a file that say something. Raises NoSessionError where none does, ConfigError."""
    sessions = read_sessions(file)
    if not any(session.messages for session in sessions):
        raise NoSessionError(file, "it holds no session: nothing was said in it", "pass another file")
    return sessions
