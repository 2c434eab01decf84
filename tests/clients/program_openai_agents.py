"""An agent of the OpenAI Agents SDK with its session store; the first word is the API: ``chat``, ``responses``."""

from __future__ import annotations

import asyncio
import sys

from agents import (
    Agent,
    OpenAIProvider,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from program_tools import MODEL, SYSTEM, base_url, read_file, shell, talk

MOST_TURNS = 1000
api = sys.argv.pop(2)
set_tracing_disabled(True)
agent = Agent(name="worker", instructions=SYSTEM, model=MODEL, tools=[function_tool(shell), function_tool(read_file)])
provider = OpenAIProvider(base_url=f"{base_url()}/v1", api_key="test-key", use_responses=api == "responses")


async def answer(prompt: str) -> str:
    # The store is opened again for every prompt, as a user's next start does.
    session = SQLiteSession("one", "session.db")
    config = RunConfig(model_provider=provider)
    run = Runner.run_streamed(agent, prompt, run_config=config, session=session, max_turns=MOST_TURNS)
    async for _ in run.stream_events():
        pass
    return str(run.final_output)


with asyncio.Runner() as loop:
    talk(lambda prompt: loop.run(answer(prompt)))
