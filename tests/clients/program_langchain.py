"""An agent of LangChain's; the first word of the prompts says by which API: ``chat``, ``responses``, ``messages``."""

from __future__ import annotations

import sys
from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from program_tools import CLAUDE, MODEL, SYSTEM, base_url, read_file, shell, talk

MOST_STEPS = 1000
api = sys.argv.pop(2)
model: Any
if api == "messages":
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model_name=CLAUDE, base_url=base_url(), api_key="test-key", streaming=True)
else:
    from langchain_openai import ChatOpenAI

    is_new = api == "responses"
    model = ChatOpenAI(
        model=MODEL, base_url=f"{base_url()}/v1", api_key="test-key", use_responses_api=is_new, streaming=True
    )
agent = create_agent(model, [shell, read_file], system_prompt=SYSTEM, checkpointer=InMemorySaver())
config: Any = {"configurable": {"thread_id": "one"}, "recursion_limit": MOST_STEPS}


def ask(prompt: str) -> str:
    ended = agent.invoke({"messages": [{"role": "user", "content": prompt}]}, config)
    text: str = ended["messages"][-1].text
    return text


talk(ask)
