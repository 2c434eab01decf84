"""What a planner does before its first call, so that tables are loaded and patterns compiled when somebody waits."""

from __future__ import annotations

import json
from typing import Any

from context_gatekeeper.gateway.port import Answer, GatewayCall, Planner

__all__ = ["warm_up"]

_CALLS = 6
_LINE = "{number}: def read_config(path: str) -> Config:  # 第 {number} 行, see docs/setup.md and error E{number}\n"


def warm_up(planner: Planner) -> None:
    """Plan a conversation of our own with a planner that is thrown away."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Mend the reader of src/config.py, 然后再试一次。"}]
    for number in range(_CALLS):
        body = {"model": "claude", "system": "You are an agent.", "tools": [{"name": "Read"}], "messages": messages}
        call = GatewayCall(number, "messages", "", "anthropic-5m", "", {}, float(number), json.dumps(body).encode())
        planner.plan(call)
        planner.observe(Answer(number, 200, "application/json", b"{}", is_complete=True))
        while planner.has_idle_work:
            planner.idle()
        use = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"path": f"src/part_{number}.py"}}
        text = "".join(_LINE.format(number=100 * number + line) for line in range(100))
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
        messages = [*messages, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
