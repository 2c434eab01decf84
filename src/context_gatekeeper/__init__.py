"""Virtual memory for the context window of a language model.

Public names are resolved at first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from context_gatekeeper.core.anchor import extract_anchors as extract_anchors
    from context_gatekeeper.core.topic_gate import gate_topic as gate_topic
    from context_gatekeeper.errors import BudgetError as BudgetError
    from context_gatekeeper.errors import ConfigError as ConfigError
    from context_gatekeeper.errors import GatekeeperError as GatekeeperError
    from context_gatekeeper.errors import StoreError as StoreError
    from context_gatekeeper.gatekeeper import ContextGatekeeper as ContextGatekeeper
    from context_gatekeeper.stores import open_store as open_store
    from context_gatekeeper.types import Block as Block
    from context_gatekeeper.types import Decision as Decision
    from context_gatekeeper.types import RecallHit as RecallHit

_HOMES = {
    "Block": "types",
    "BudgetError": "errors",
    "ConfigError": "errors",
    "ContextGatekeeper": "gatekeeper",
    "Decision": "types",
    "GatekeeperError": "errors",
    "RecallHit": "types",
    "StoreError": "errors",
    "extract_anchors": "core.anchor",
    "gate_topic": "core.topic_gate",
    "open_store": "stores",
}

__all__ = sorted(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
