"""Errors of the package.

Every error names the thing, the cause and the next step::

    GatekeeperError
    +-- ConfigError(ValueError)            an argument or setting cannot be used
    |   +-- NoSessionError                 a file that can be read holds no session of an agent
    |   +-- MemoryCommandError             a command of the memory tool cannot be carried out
    +-- BudgetError(ValueError)            a token budget cannot be met
    +-- StoreError                         the pool file or server failed
    |   +-- StoreVersionError              made by a newer release
    |   +-- StoreBusyError                 locked by another process for too long
    |   +-- StoreDamagedError              not ours, or its content is damaged
    +-- PageNotFoundError(LookupError)     no such page in this pool
    +-- AccessDeniedError(PermissionError) the page is not this owner's
    +-- TranscriptError(ValueError)        a conversation file cannot be read
    +-- WireFormatError(ValueError)        a request is not of its API's form
    +-- UpstreamError                      the model's service refused or failed
"""

from __future__ import annotations

__all__ = [
    "AccessDeniedError",
    "BudgetError",
    "ConfigError",
    "GatekeeperError",
    "MemoryCommandError",
    "NoSessionError",
    "PageNotFoundError",
    "StoreBusyError",
    "StoreDamagedError",
    "StoreError",
    "StoreVersionError",
    "TranscriptError",
    "UpstreamError",
    "WireFormatError",
]


class GatekeeperError(Exception):
    """Root of the tree.

    Args:
        thing: what the error is about: a parameter, path, page or route.
        cause: what is wrong with it.
        next_step: what the caller can do about it.
    """

    def __init__(self, thing: str, cause: str, next_step: str) -> None:
        self.thing = thing
        self.cause = cause
        self.next_step = next_step
        super().__init__(f"{thing}: {cause}; {next_step}")


class ConfigError(GatekeeperError, ValueError):
    """An argument or setting cannot be used."""


class NoSessionError(ConfigError):
    """A file that can be read holds no session of an agent: it is empty, or has other records alone."""


class MemoryCommandError(ConfigError):
    """A command of the memory tool cannot be carried out.

    Args:
        text: what the model is told, in the words that it knows from this tool.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__("memory command", text.rstrip("."), "correct it, or give another")


class BudgetError(GatekeeperError, ValueError):
    """A token budget cannot be met."""


class StoreError(GatekeeperError):
    """The page store failed; nothing that was acknowledged is lost."""


class StoreVersionError(StoreError):
    """The store was written by a newer release."""


class StoreBusyError(StoreError):
    """Another process held the store longer than the busy timeout."""


class StoreDamagedError(StoreError):
    """The file is not a page store, or its content is damaged."""


class PageNotFoundError(GatekeeperError, LookupError):
    """No such page in this pool."""


class AccessDeniedError(GatekeeperError, PermissionError):
    """The page belongs to somebody else."""


class TranscriptError(GatekeeperError, ValueError):
    """A conversation file cannot be read."""


class WireFormatError(GatekeeperError, ValueError):
    """A request is not of its API's form."""


class UpstreamError(GatekeeperError):
    """The model's service refused the call or could not be reached."""
