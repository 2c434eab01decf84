"""Where a longer request may go on behind what was sent for the one before."""

from __future__ import annotations

import json

import pytest

from context_gatekeeper.engine.pager_params import PagerParams
from context_gatekeeper.gateway.cuts import find_cuts
from context_gatekeeper.gateway.planner_settings import PlannerSettings
from context_gatekeeper.gateway.planning import SessionPlanner
from context_gatekeeper.gateway.port import Answer, GatewayCall
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.pairing import find_violations
from context_gatekeeper.wire.records import WireApi
from tests.gateway.histories import OLDER_MODEL, Size, grow
from tests.gateway.test_rendering import EAGER

ROUTES = {WireApi.MESSAGES: "messages", WireApi.CHAT: "chat", WireApi.RESPONSES: "responses"}
PARAMS: PagerParams = EAGER


@pytest.mark.parametrize("api", list(WireApi))
@pytest.mark.parametrize("seed", range(3))
def test_what_goes_on_behind_a_cut_is_valid_and_begins_with_what_was_sent(api: WireApi, seed: int) -> None:
    options = {"model": OLDER_MODEL} if api is WireApi.MESSAGES else {}
    growth = grow(api, seed, Size((14, 15), (200, 1500)), **options)
    planner = SessionPlanner(PlannerSettings(params=PARAMS))
    tried = 0
    for number in range(len(growth.requests) - 1):
        own, later = growth.raw(number), growth.raw(number + 1)
        reply = planner.plan(GatewayCall(number, ROUTES[api], "u", "", "c", {}, 20.0 * number, own))
        planner.observe(Answer(number, 200, "application/json", b"{}", True))
        while planner.has_idle_work:
            planner.idle()
        assert bool(reply.cuts) == (reply.body is not None)
        for cut in reply.cuts:
            assert reply.body is not None
            if later.startswith(own[: cut.own]):
                tried += 1
                body = json.loads(reply.body[: cut.sent] + later[cut.own :])
                assert set(find_violations(api, body)) <= set(find_violations(api, growth.requests[number + 1]))
    assert tried


def test_the_cuts_are_behind_the_last_message_and_where_the_model_spoke_last() -> None:
    told = [
        {"role": "user", "content": "看"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "R", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
    ]
    body = json.dumps({"model": "m", "messages": told, "max_tokens": 5}, ensure_ascii=False)
    request = decode_request(WireApi.MESSAGES, body.encode())
    edited = body.replace('"看"', '"read it, 看"')
    last, before = find_cuts(request, edited)
    assert body.encode()[last.own :] == edited.encode()[last.sent :] == b'], "max_tokens": 5}'
    assert body.encode()[before.own :] == edited.encode()[before.sent :]
    assert body.encode()[before.own :].startswith(b'{"role": "assistant"')


def test_a_message_of_the_models_that_is_edited_gives_no_cut_and_neither_does_a_first_one() -> None:
    told = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    for talk, edit in ((told, ('"b"', '"bb"')), (told[:1], ('"a"', '"aa"'))):
        body = json.dumps({"messages": talk, "model": "m"})
        request = decode_request(WireApi.MESSAGES, body.encode())
        assert len(find_cuts(request, body.replace(*edit))) == 1
