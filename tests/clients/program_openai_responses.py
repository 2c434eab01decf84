"""An agent on the openai SDK, by the Responses API, with nothing stored at the provider."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI
from program_tools import MODEL, SCHEMAS, SYSTEM, TOOLS, base_url, talk

client = OpenAI(base_url=f"{base_url()}/v1", api_key="test-key")
tools: Any = [
    {"type": "function", "name": name, "description": text, "parameters": schema, "strict": False}
    for name, text, schema in SCHEMAS
]
items: list[Any] = []


def ask(prompt: str) -> str:
    items.append({"role": "user", "content": prompt})
    while True:
        with client.responses.stream(
            model=MODEL,
            instructions=SYSTEM,
            input=items,
            tools=tools,
            store=False,
            include=["reasoning.encrypted_content"],
            reasoning={"effort": "low"},
        ) as stream:
            response = stream.get_final_response()
        items.extend(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output)
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        for call in calls:
            result = TOOLS[call.name](**json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


talk(ask)
