"""R10: whatever the history and the numbers, an edited request is valid and says nothing but what the client said."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from context_gatekeeper.core.economics import PRICES
from context_gatekeeper.engine.pager_params import OURS, PagerParams
from context_gatekeeper.gateway.live_session import LiveSession
from context_gatekeeper.gateway.rendering import left_out_note
from context_gatekeeper.wire import decode_request, encode_request
from context_gatekeeper.wire.records import WireApi
from tests.architecture.tree import ROOT
from tests.gateway.histories import Growth, Size, grow
from tests.gateway.request_checks import faults_of, sent_blocks

SMALL, LONG = Size((2, 4), (40, 100)), Size((15, 40), (200, 6000))
MOST_LONG = 20
"""Of a thousand histories so many are as long as real ones."""
SOME = 60
EAGER = replace(
    OURS,
    kept_exchanges=1,
    short_user_tokens=0,
    short_call_tokens=0,
    tail_tokens=0,
    overdraft=1.0,
    patience=0.0,
    fault_price_factor=0.01,
    fault_target=None,
    reserve_faults=0.0,
    every_calls=1,
)
"""Leaves out all that may leave."""


def drawn_params(chance: random.Random, api: WireApi) -> PagerParams:
    return replace(
        EAGER,
        kept_exchanges=chance.choice((0, 1, 2)),
        short_user_tokens=chance.choice((0, 150)),
        short_call_tokens=chance.choice((0, 100)),
        tail_tokens=chance.choice((0, 1000)),
        fault_price_factor=chance.choice((0.01, 0.1, 0.5)),
        fault_target=chance.choice((None, 0.035)),
        every_calls=chance.choice((1, 2)),
        whole_blocks=api is WireApi.MESSAGES,
    )


def drawn_session(chance: random.Random, api: WireApi) -> LiveSession:
    return LiveSession(
        "s",
        PRICES[chance.choice(sorted(PRICES))],
        resident_tokens=100,
        secret=b"x" * 16,
        params=drawn_params(chance, api),
        window_tokens=chance.choice((None, 200, 600, 2000, 30_000)),
        expand_command=chance.choice(("", "cgk expand --session s")),
    )


def walk(growth: Growth, chance: random.Random) -> Iterator[tuple[int, Any, bool, int]]:
    """(number, edited body, whether it is a rewrite, epochs) of some requests of a conversation, its last one too."""
    session, known = drawn_session(chance, growth.api), None
    last = len(growth.requests) - 1
    numbers = {last, *chance.sample(range(last + 1), min(last, chance.choice((0, 0, 1, 1, 2))))}
    for number in sorted(numbers):
        request = known = decode_request(growth.api, growth.raw(number), known)
        planned = session.plan(request, now=1000.0 + 20 * number)
        yield number, json.loads(encode_request(request, planned.edits)), planned.is_rewrite, planned.plan.epoch
        if chance.random() < 0.5:
            session.look_ahead()


def check_histories(api: WireApi, count: int) -> int:
    """Walk so many generated histories; how many of their requests were edited."""
    edited = 0
    for seed in range(count):
        chance = random.Random(seed)
        growth = grow(api, seed, LONG if seed % 1000 < MOST_LONG and seed % 10 == 0 else SMALL)
        before: list[str] | None = None
        epochs = 0
        for number, body, is_rewrite, epoch in walk(growth, chance):
            assert faults_of(api, growth.requests[number], body) == [], (seed, number)
            now = sent_blocks(api, body)
            if before is not None:
                is_broken = now[: len(before)] != before
                assert is_broken == is_rewrite, (seed, number)
                assert not is_broken or epoch > epochs, (seed, number)
            before, epochs = now, epoch
            edited += body != growth.requests[number]
    return edited


@pytest.mark.parametrize("api", list(WireApi))
def test_generated_histories_stay_valid_and_the_clients_own(api: WireApi, pytestconfig: pytest.Config) -> None:
    """In a process of its own: a measurement of coverage makes it five times slower and sees nothing new."""
    count = pytestconfig.getoption("--histories")
    program = f"from {__name__} import *\nprint(check_histories(WireApi({api.value!r}), {count}))"
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > count / 4


@pytest.mark.parametrize("api", list(WireApi))
def test_some_of_the_same_histories(api: WireApi) -> None:
    assert check_histories(api, SOME) > SOME / 4


def planned_body(api: WireApi, seed: int, **options: Any) -> tuple[Any, Any]:
    """(last request, its edited form) of an eager session that meets it first."""
    growth = grow(api, seed, LONG, **options)
    session = LiveSession("s", PRICES["anthropic-5m"], resident_tokens=100, secret=b"x" * 16, params=EAGER)
    request = decode_request(api, growth.raw(len(growth.requests) - 1))
    body = encode_request(request, session.plan(request, now=0.0).edits)
    return growth.requests[-1], json.loads(body)


def test_what_the_marks_mean_is_told_once_and_on_the_users_side() -> None:
    _, body = planned_body(WireApi.MESSAGES, 3, model="claude-opus-4-8")
    holders = [message["role"] for message in body["messages"] if left_out_note() in json.dumps(message)]
    assert holders == ["user"]


def test_a_request_gets_far_smaller() -> None:
    for api in WireApi:
        original, body = planned_body(api, 3)
        assert len(json.dumps(body)) < 0.5 * len(json.dumps(original))


def test_the_note_names_the_command_that_gives_a_page_back() -> None:
    assert "or run `cgk expand --session s` with it" in left_out_note("cgk expand --session s")
    assert "run" not in left_out_note()
