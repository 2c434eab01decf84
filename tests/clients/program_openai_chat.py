"""An agent on the openai SDK, by Chat Completions."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI
from program_tools import MODEL, SCHEMAS, SYSTEM, TOOLS, base_url, talk

client = OpenAI(base_url=f"{base_url()}/v1", api_key="test-key")
tools: Any = [
    {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}
    for name, text, schema in SCHEMAS
]
messages: list[Any] = [{"role": "system", "content": SYSTEM}]


def ask(prompt: str) -> str:
    messages.append({"role": "user", "content": prompt})
    while True:
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
            message = stream.get_final_completion().choices[0].message
        # `parsed` is the SDK's own; the rest goes back as it came.
        messages.append(message.model_dump(exclude_none=True, exclude={"parsed", "reasoning_content"}))
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            result = TOOLS[call.function.name](**arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


talk(ask)
