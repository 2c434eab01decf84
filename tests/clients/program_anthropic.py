"""An agent on the anthropic SDK, with a cache mark that moves on and thinking that goes back as it came."""

from __future__ import annotations

from typing import Any

from anthropic import Anthropic
from program_tools import CLAUDE, SCHEMAS, SYSTEM, TOOLS, base_url, talk

MARK: Any = {"type": "ephemeral"}
client = Anthropic(base_url=base_url(), api_key="test-key")
tools: Any = [{"name": name, "description": text, "input_schema": schema} for name, text, schema in SCHEMAS]
messages: list[Any] = []


def ask(prompt: str) -> str:
    messages.append({"role": "user", "content": [{"type": "text", "text": prompt}]})
    while True:
        last = messages[-1]["content"][-1]
        last["cache_control"] = MARK
        with client.messages.stream(
            model=CLAUDE,
            max_tokens=4000,
            system=[{"type": "text", "text": SYSTEM, "cache_control": MARK}],
            messages=messages,
            tools=tools,
            thinking={"type": "adaptive"},
        ) as stream:
            message = stream.get_final_message()
        del last["cache_control"]
        kept = [block.model_dump(exclude_none=True, exclude={"parsed_output", "caller"}) for block in message.content]
        messages.append({"role": "assistant", "content": kept})
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in message.content if block.type == "text")
        results = [(call.id, TOOLS[call.name](**call.input)) for call in calls]
        blocks = [{"type": "tool_result", "tool_use_id": call_id, "content": result} for call_id, result in results]
        messages.append({"role": "user", "content": blocks})


talk(ask)
