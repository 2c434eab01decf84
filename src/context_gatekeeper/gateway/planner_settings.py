"""What the gateway tells its planner at the start."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from context_gatekeeper.engine.pager_params import OURS, OURS_CAREFUL, OURS_FRUGAL, PagerParams
from context_gatekeeper.errors import ConfigError
from context_gatekeeper.types import NativeMode

__all__ = ["POLICIES", "PlannerSettings"]

POLICIES: Mapping[str, PagerParams] = {"ours": OURS, "frugal": OURS_FRUGAL, "careful": OURS_CAREFUL}
"""Settings of the planner by the name in the configuration."""
_TEXTS = frozenset({"pool", "owner", "redaction", "sealed_folder"})
_WANTED: Mapping[type, str] = {str: "text", bool: "true or false", int: "whole number"}
_NOT_FOR_FILES = frozenset({"secret", "params"})


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """Every setting of the gateway's planner."""

    secret: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)
    """From which fences are drawn; another one for each start by default."""
    policy: str = "ours"
    """A name of `POLICIES`."""
    params: PagerParams | None = None
    """The planner's numbers in place of the policy's."""
    cards: bool = True
    """Whether agents get the running task's card once something has left their window."""
    most_sessions: int = 256
    """Kept in memory, the newest used; one that comes back later is planned from its request alone."""
    most_chars: int = 16_000_000
    """Of all their newest requests together: each character takes some 30 bytes."""
    most_branches: int = 8
    """Conversations with one key that are kept apart: sub-agents, rewinds, side questions."""
    most_open_calls: int = 4096
    """Requests whose answers have not come; of more the oldest are forgotten."""
    most_unread_chars: int = 100_000
    """New text that is read while its request waits. A request that brings more goes on as it came, and is read while
    nobody waits."""
    most_block_chars: int = 5_000_000
    """Of one text. A conversation that holds a longer one goes on as it came: more than a second would be spent on
    reading it."""
    edits_bound_thinking: bool = True
    """Whether conversations are edited whose model binds its thinking to everything before it. At each rewrite the
    thinking behind it leaves."""
    native: NativeMode = NativeMode.OFF
    """What is left to the provider's own means."""
    own_tool: bool = False
    """Whether the gateway declares its own tool: agents are told of it."""
    tells_standing: bool = True
    """Whether goals and pins of the pool are told: they are its owner's, as is whoever asks on the loopback address."""
    store: str = ""
    """Path of the pool's file; "" keeps no pages."""
    expand_command: str = ""
    """With which an agent on this machine gets a page of a session, the session's name put behind it."""
    pool: str | None = None
    owner: str | None = None
    redaction: str | None = None
    sealed_folder: str | None = None
    """These four as `AgentPool` takes them; None for its own."""

    @property
    def numbers(self) -> PagerParams:
        """The planner's numbers."""
        return self.params or POLICIES[self.policy]

    @classmethod
    def from_json(cls, settings: Mapping[str, Any]) -> PlannerSettings:
        """Of the first frame; names of no field are another reader's.

        Raises:
            ConfigError: a value of the wrong kind, an unknown policy or mode.
        """
        known = {one.name for one in fields(cls)} - _NOT_FOR_FILES
        given = {name: value for name, value in settings.items() if name in known and value is not None}
        usual = cls()
        for name, value in given.items():
            wanted = str if name in _TEXTS else type(getattr(usual, name))
            if name != "native" and (type(value) is not wanted):
                raise ConfigError(f"{name} {value!a}", f"it is no {_WANTED[wanted]}", "correct it in planner_settings")
        policy = given.get("policy", "ours")
        if policy not in POLICIES:
            raise ConfigError(f"policy {policy!a}", "there is none of that name", f"use one of {', '.join(POLICIES)}")
        if (native := given.get("native", "off")) not in tuple(NativeMode):
            raise ConfigError(f"native {native!a}", "there is no such mode", f"use one of {', '.join(NativeMode)}")
        return cls(**given | {"native": NativeMode(native)})
