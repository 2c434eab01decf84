"""An agent of pydantic-ai's; the first word says by which API: ``chat``, ``responses``, ``messages``."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from program_tools import CLAUDE, MODEL, SYSTEM, base_url, read_file, shell, talk
from pydantic_ai import Agent, UsageLimits

api = sys.argv.pop(2)
model: Any
if api == "messages":
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    model = AnthropicModel(CLAUDE, provider=AnthropicProvider(base_url=base_url(), api_key="test-key"))
else:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind: Any = OpenAIResponsesModel if api == "responses" else OpenAIChatModel
    model = kind(MODEL, provider=OpenAIProvider(base_url=f"{base_url()}/v1", api_key="test-key"))
agent = Agent(model, instructions=SYSTEM, tools=[shell, read_file])
history: list[Any] = []


async def answer(prompt: str) -> str:
    limits = UsageLimits(request_limit=None)
    async with agent.iter(prompt, message_history=list(history), usage_limits=limits) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        pass
    assert run.result is not None
    history[:] = run.result.all_messages()
    return str(run.result.output)


with asyncio.Runner() as loop:
    talk(lambda prompt: loop.run(answer(prompt)))
