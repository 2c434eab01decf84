"""The memory tool of Anthropic's SDK, with a pool behind it (the extra ``anthropic``).

``client.beta.messages.tool_runner(..., tools=[sdk_memory_tool(PoolMemory(pool))])``: the SDK declares the tool and
calls it; what the pool's own commands say goes back as they say it, errors marked as errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from context_gatekeeper.errors import ConfigError, GatekeeperError, MemoryCommandError
from context_gatekeeper.memory_tool import PoolMemory

if TYPE_CHECKING:
    from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

__all__ = ["sdk_async_memory_tool", "sdk_memory_tool"]

_Run = Callable[[Iterable[tuple[str, Any]]], str]


def sdk_memory_tool(memory: PoolMemory) -> BetaAbstractMemoryTool:
    """A memory tool for the SDK's client. Raises ConfigError when the SDK is not installed."""
    _check_installed()
    from anthropic.tools import BetaAbstractMemoryTool

    run = _runner(memory)

    class PoolMemoryTool(BetaAbstractMemoryTool):
        """Every command goes to the pool."""

        def execute(self, command: Any) -> str:
            return run(command)

        view = create = str_replace = insert = delete = rename = execute

        def clear_all_memory(self) -> str:
            """For the program, never for the model: delete all, older versions too, for good."""
            return _cleared(memory)

    return PoolMemoryTool()


def sdk_async_memory_tool(memory: PoolMemory) -> BetaAsyncAbstractMemoryTool:
    """The same for the SDK's asynchronous client: commands run in a thread, so that no other task waits for a disk."""
    _check_installed()
    from anthropic.tools import BetaAsyncAbstractMemoryTool

    run = _runner(memory)

    class AsyncPoolMemoryTool(BetaAsyncAbstractMemoryTool):
        """Every command goes to the pool."""

        async def execute(self, command: Any) -> str:
            return await asyncio.to_thread(run, command)

        view = create = str_replace = insert = delete = rename = execute

        async def clear_all_memory(self) -> str:
            """See `sdk_memory_tool`."""
            return await asyncio.to_thread(_cleared, memory)

    return AsyncPoolMemoryTool()


def _check_installed() -> None:
    try:
        import anthropic  # noqa: F401
    except ModuleNotFoundError as missing:
        if missing.name != "anthropic":
            raise
        raise ConfigError(
            "anthropic", "it is not installed", 'run: pip install "context-gatekeeper[anthropic]"'
        ) from missing


def _runner(memory: PoolMemory) -> _Run:
    """Runs a command as the SDK reads it, a record of its own, and gives errors as it wants them."""
    from anthropic.tools import ToolError

    def run(command: Iterable[tuple[str, Any]]) -> str:
        try:
            return memory.run(dict(command))
        except MemoryCommandError as error:
            raise ToolError(error.text) from error
        except GatekeeperError as error:
            # Its words are for whoever runs the program: they may name files of his.
            raise ToolError("The memory cannot be reached at the moment.") from error

    return run


def _cleared(memory: PoolMemory) -> str:
    memory.forget()
    return "All memory cleared"
