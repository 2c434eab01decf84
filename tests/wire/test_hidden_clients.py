"""The providers' own libraries read what the client gets as one message."""

from __future__ import annotations

from collections.abc import Iterator

import anthropic
import httpx2
import openai
import pytest

from context_gatekeeper.testing.records import FakeReply
from tests.wire.hidden_exchanges import CHAT, MESSAGES, RESPONSES, expand, play, read_file

ASKS = FakeReply("Let me look. ", "I need it.", calls=(expand("p1"), expand("p2")))
ACTS = FakeReply("Now I act.", "Clear.", calls=(read_file(), read_file("b.py")))
MIXED = FakeReply("All.", "Hm.", calls=(expand(), read_file(), expand(), read_file("b.py")))
EACH = pytest.mark.parametrize(
    ("replies", "calls"), [([ASKS, ASKS, ACTS], 2), ([ASKS], 0), ([MIXED], 2), ([ASKS, MIXED], 2)]
)
ASKED = {"role": "user", "content": "?"}


@pytest.fixture
def answers() -> Iterator[tuple[list[bytes], httpx2.Client]]:
    """Bytes that a client gets, and the client."""
    waiting: list[bytes] = []

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=waiting.pop())

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as client:
        yield waiting, client


@EACH
def test_anthropics_library(answers: tuple[list[bytes], httpx2.Client], replies: list[FakeReply], calls: int) -> None:
    waiting, http = answers
    waiting.append(play(MESSAGES, replies).given)
    client = anthropic.Anthropic(api_key="x", http_client=http)
    with client.messages.stream(model="claude-opus-5", max_tokens=9, messages=[ASKED]) as stream:
        message = stream.get_final_message()
    kinds = [block.type for block in message.content]
    assert kinds == ["thinking", "text"] * len(replies) + ["tool_use"] * calls
    assert message.stop_reason == ("tool_use" if calls else "end_turn")
    assert message.usage.input_tokens == 900 + 100 * len(replies)
    assert [block.input for block in message.content if block.type == "tool_use"] in (
        [],
        [{"path": "a.py"}, {"path": "b.py"}],
    )


@EACH
def test_openais_library_with_chat_completions(
    answers: tuple[list[bytes], httpx2.Client], replies: list[FakeReply], calls: int
) -> None:
    waiting, http = answers
    waiting.append(play(CHAT, replies).given)
    client = openai.OpenAI(api_key="x", http_client=http)
    with client.chat.completions.stream(model="m", messages=[ASKED]) as stream:
        choice = stream.get_final_completion().choices[0]
    assert choice.message.role == "assistant"
    assert choice.message.content == "".join(reply.text for reply in replies)
    assert [call.function.name for call in choice.message.tool_calls or ()] == ["Read"] * calls
    assert choice.finish_reason == ("tool_calls" if calls else "stop")


@EACH
def test_openais_library_with_responses(
    answers: tuple[list[bytes], httpx2.Client], replies: list[FakeReply], calls: int
) -> None:
    waiting, http = answers
    waiting.append(play(RESPONSES, replies).given)
    client = openai.OpenAI(api_key="x", http_client=http)
    with client.responses.stream(model="m", input="?") as stream:
        response = stream.get_final_response()
    kinds = [item.type for item in response.output]
    assert kinds == ["reasoning", "message"] * len(replies) + ["function_call"] * calls
    assert response.status == "completed"
