"""The strict fake provider takes the requests that go on, and keeps their prefix in its cache."""

from __future__ import annotations

import json

import httpx
import pytest

from context_gatekeeper.testing import FakeProvider
from context_gatekeeper.testing.records import FakeReply
from context_gatekeeper.wire.hidden_calls import HiddenCalls
from context_gatekeeper.wire.own_tool import continued, with_own_tool
from context_gatekeeper.wire.records import WireApi
from tests.wire.hidden_exchanges import (
    CHAT,
    MESSAGES,
    RESPONSES,
    blocks_of,
    expand,
    read,
    read_file,
    request_text,
    said,
)

ROUTES = {MESSAGES: "/v1/messages", CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses"}
LONG = "All that was said before. " * 600
ASKS = FakeReply("Let me look.", "I need it.", calls=(expand("p1"), expand("p2")))
ACTS = FakeReply("Now I act.", "Clear.", calls=(read_file(),))


@pytest.mark.parametrize("api", list(WireApi))
@pytest.mark.parametrize("is_stream", [True, False])
def test_the_provider_takes_every_request_that_goes_on(api: WireApi, is_stream: bool) -> None:
    source = request_text(api, stream=is_stream, cache_control={"type": "ephemeral"}, store=False)
    text = with_own_tool(api, source.replace("What does", LONG))
    hidden = HiddenCalls(api, is_stream=is_stream)
    given = b""
    with FakeProvider([ASKS, ASKS, ACTS]) as provider, httpx.Client(trust_env=False) as client:
        headers = {"x-api-key": provider.api_key, "authorization": f"Bearer {provider.api_key}"}
        headers |= {"content-type": "application/json", "anthropic-version": "2023-06-01"}
        for rounds in range(3):
            if rounds:
                hidden.next_answer()
            answer = client.post(provider.url + ROUTES[api], content=text.encode(), headers=headers)
            assert answer.status_code == 200, answer.text
            given += b"".join(hidden.feed(piece) for piece in (answer.content[:99], answer.content[99:]))
            finished = hidden.finish()
            given += finished.rest
            if finished.is_continuable:
                results = {call.id: f"page {json.loads(call.arguments)['handle']}" for call in finished.calls}
                text = continued(api, text, finished.blocks, results)
        given += hidden.released()
        assert provider.refusals == []
        assert [text for _, text in provider.requests[-1].results] == ["page p1", "page p2"] * 2
        reads = [request.usage.read for request in provider.requests]
        assert reads[0] == 0
        assert reads[2] >= reads[1] > 1000
    got = read(api, given)
    assert got.is_complete
    assert blocks_of(got) == said([ASKS, ASKS, ACTS], api)
