"""An agent of the claude-agent-sdk, which drives a Claude Code of its own; each prompt resumes the session."""

from __future__ import annotations

import asyncio
import os
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query
from program_tools import talk

SESSION = "00000000-0000-4000-8000-00000000000b"
asked: list[str] = []


async def answer(prompt: str) -> str:
    options = ClaudeAgentOptions(
        cwd=os.getcwd(),  # noqa: PTH109 - the SDK takes a text
        allowed_tools=["Bash", "Read"],
        setting_sources=[],
        resume=SESSION if asked else None,
        extra_args={} if asked else {"session-id": SESSION},
        env={"ANTHROPIC_BASE_URL": sys.argv[1]},
    )
    asked.append(prompt)
    shown = ""
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            shown = message.result or ""
            if message.is_error:
                raise RuntimeError(shown)
    return shown


with asyncio.Runner() as loop:
    talk(lambda prompt: loop.run(answer(prompt)))
