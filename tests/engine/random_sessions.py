"""Random coding sessions: reads, edits, quotes, long output, thinking, and texts of a person."""

from __future__ import annotations

from hypothesis import strategies as st

from context_gatekeeper.types import AgentMessage
from tests.engine.agents import answered, call, gave, returned, said, thinking
from tests.engine.coding import edit_module, module_text, read_module

MODULES = st.integers(0, 9)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), MODULES, st.integers(5, 90)),
        st.tuples(st.just("read on"), MODULES, st.integers(30, 90)),
        st.tuples(st.just("edit"), MODULES, st.integers(0, 29)),
        st.tuples(st.just("quote"), MODULES, st.integers(0, 29)),
        st.tuples(st.just("write"), MODULES, st.integers(2, 60)),
        st.tuples(st.just("run"), MODULES, st.integers(1, 60)),
        st.tuples(st.just("think"), MODULES, st.integers(10, 4000)),
        st.tuples(st.just("ask"), MODULES, st.integers(1, 200)),
    ),
    min_size=2,
    max_size=30,
)
"""What happens, to which module, and how much of it."""


def session_messages(steps: list[tuple[str, int, int]]) -> list[AgentMessage]:
    """Messages of a session in which these steps happen."""
    messages = [said("Add one to every total of the shop, module by module.")]
    for place, (kind, module, size) in enumerate(steps):
        messages += _step(f"s{place}", kind, module, size)
    return messages


def _step(call_id: str, kind: str, module: int, size: int) -> list[AgentMessage]:
    if kind == "read":
        return read_module(module, lines=size)
    if kind == "read on":
        return read_module(module, lines=size, shift=10)
    if kind == "edit":
        return edit_module(module, size)
    if kind == "quote":
        line = module_text(module, size + 1).split("\n")[-1]
        return [answered(f"The line in question is\n{line}")]
    if kind == "write":
        path = f"/srv/shop/new_{module}.py"
        content = module_text(module + 100, size)
        return [
            answered(call(call_id, "Write", file_path=path, content=content)),
            returned(gave(call_id, "ok", "Write")),
        ]
    if kind == "run":
        output = module_text(module, size)
        return [
            answered(call(call_id, "Bash", command="make")),
            returned(gave(call_id, output, "Bash", is_error=size > 50)),
        ]
    if kind == "think":
        return [answered(thinking(hidden_chars=size), f"Step {module}.")]
    return [said(f"Go on with module_{module}. " * max(1, size // 8))]
