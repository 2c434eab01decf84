"""A conversation with a model's service, end to end (SPEC.md section 5).

Four checks on what is really sent: a follow-up on the same topic gets the turns before it, a new
topic gets nothing of the old one, a query that points back gets the last one or two turns, and the
token budget is kept. Every run talks to `FakeProvider` over HTTP on both of MiniMax's routes, in
Chinese and English; with ``MINIMAX_API_KEY`` in the environment or in ``.env`` the same
conversation is also held with the real service.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from context_gatekeeper.config import load_config
from context_gatekeeper.core.tokens import estimate_tokens
from context_gatekeeper.entrypoints.endpoints import Endpoint, Route, endpoint_of
from context_gatekeeper.entrypoints.upstream import ChatClient
from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.testing import FakeProvider, FakeReply

ROOT = Path(__file__).parents[1]
ROOMY, TIGHT = 4000, 50
"""Budgets: one that everything fits into, and one that two turns do not."""
THINKING = "THOUGHT: recall the context."
Messages = Sequence[dict[str, str]]


@dataclass(frozen=True)
class Dialogue:
    """Seven rounds: three on a lock, a switch, a follow-up, one that points back, and the way back."""

    queries: tuple[str, ...]
    answers: tuple[str, ...]
    """What the stand-in answers; the real service answers for itself."""
    lock_words: tuple[str, ...]
    """Words that only the rounds about the lock hold."""
    other_words: tuple[str, ...]
    """Words that only the rounds about the other topic hold."""


CHINESE = Dialogue(
    (
        "Redis 分布式锁的过期时间应该设多长？",
        "Redis 锁的看门狗多久续期一次？",
        "Redis 锁在主从切换时会丢失吗？",
        "我家小猫第一针疫苗什么时候打？",
        "小猫打完疫苗没精神正常吗？",
        "那它还要注意什么？",
        "回到 Redis 锁，看门狗多久续期一次？",
    ),
    (
        "先量出任务耗时的 P99，再把 Redis 锁的过期时间设成它的三倍，一般是 10 秒。",
        "看门狗每 3 秒续期一次，把 Redis 锁的过期时间重新设成 10 秒。",
        "会丢失：从节点还没有收到锁就被提升，所以写库存时要带 fencing token。",
        "小猫满两个月打第一针猫三联疫苗，之后每隔四周一针，一共三针。",
        "小猫打完疫苗一两天没精神是常见反应，体温超过 39.5 度再去医院。",
        "一周内不要洗澡，也不要换猫粮。",
        "每 3 秒续期一次。",
    ),
    ("Redis", "看门狗"),
    ("疫苗", "小猫"),
)
ENGLISH = Dialogue(
    (
        "How long should the expiry of a Redis lock be?",
        "How often does the watchdog renew the Redis lock?",
        "Can a Redis lock get lost during a failover?",
        "By the way, how do I feed a sourdough starter?",
        "Which flour is best for the sourdough starter?",
        "Why is that?",
        "Back to the Redis lock: how often does the watchdog renew it?",
    ),
    (
        "Measure the P99 of the job and set the Redis lock to three times that, usually 10 seconds.",
        "The watchdog renews the Redis lock every 3 seconds and sets its expiry back to 10 seconds.",
        "Yes: a replica that never saw the lock may be promoted, so send a fencing token with every write.",
        "Feed the sourdough starter with equal parts of rye flour and water twice a day.",
        "Whole rye flour: it feeds the wild yeast of the sourdough starter better than white flour.",
        "Rye brings more minerals and enzymes.",
        "Every 3 seconds.",
    ),
    ("Redis", "watchdog"),
    ("sourdough", "flour"),
)
DIALOGUES = {"zh": CHINESE, "en": ENGLISH}


def hold(endpoint: Endpoint, dialogue: Dialogue, budget: int) -> list[Messages]:
    """Hold the dialogue; the messages of each round as they were sent."""
    sent = []
    with ContextGatekeeper(budget) as gatekeeper, ChatClient(endpoint) as client:
        for query in dialogue.queries:
            messages = gatekeeper.build_messages(query)
            reply = client.ask(messages, on_piece=lambda _: None)
            gatekeeper.add_turn(query, reply.text)
            sent.append(messages)
        stored = [block.assistant_text for block in gatekeeper.blocks()]
    assert not any("<think>" in text or THINKING in text for text in stored)
    return sent


def context_of(messages: Messages) -> str:
    """Everything before the query."""
    return "\n".join(message["content"] for message in messages[:-1])


def holds_any(text: str, words: Sequence[str]) -> bool:
    return any(word.casefold() in text.casefold() for word in words)


def check_relevance(dialogue: Dialogue, sent: Sequence[Messages]) -> None:
    queries = dialogue.queries
    contexts = [context_of(messages) for messages in sent]
    assert [messages[-1]["content"] for messages in sent] == list(queries)
    # 1. the same topic: what was asked before is there
    assert contexts[0] == ""
    assert queries[0] in contexts[1]
    assert holds_any(contexts[2], dialogue.lock_words)
    assert queries[3] in contexts[4]
    # 2. a new topic: nothing of the old one, then or in its follow-ups
    assert contexts[3] == ""
    assert not any(holds_any(context, dialogue.lock_words) for context in contexts[3:6])
    # 3. a query that points back: the last turn, and at most the last two
    assert queries[4] in contexts[5]
    assert set(queries) & {message["content"] for message in sent[5][:-1]} <= {queries[3], queries[4]}
    # ... and back to the first topic: its turn, nothing of the other
    assert queries[1] in contexts[6]
    assert not holds_any(contexts[6], dialogue.other_words)


def check_budget(dialogue: Dialogue, sent: Sequence[Messages], budget: int) -> None:
    for query, messages in zip(dialogue.queries, sent, strict=True):
        assert messages[-1]["content"] == query
        assert sum(estimate_tokens(message["content"]) for message in messages) <= budget


@pytest.fixture(params=DIALOGUES)
def dialogue(request: pytest.FixtureRequest) -> Dialogue:
    return DIALOGUES[request.param]


@pytest.fixture(params=list(Route), ids=["chat completions", "messages"])
def route(request: pytest.FixtureRequest) -> Route:
    chosen: Route = request.param
    return chosen


def received(dialogue: Dialogue, route: Route, budget: int, folder: Path) -> list[Messages]:
    """Hold the dialogue with the stand-in; the messages as the server received them."""
    replies = [FakeReply(answer, thinking=THINKING) for answer in dialogue.answers]
    with FakeProvider(replies) as provider:
        base = provider.openai_url if route is Route.CHAT_COMPLETIONS else provider.anthropic_url
        environ = {"MINIMAX_API_KEY": provider.api_key, "MINIMAX_BASE_URL": base}
        endpoint = endpoint_of(load_config({"provider": "minimax"}, environ=environ, folder=folder))
        assert endpoint.route is route
        sent = hold(endpoint, dialogue, budget)
    assert provider.refusals == []
    bodies: list[Messages] = [[{"role": r, "content": t} for r, t in one.messages] for one in provider.requests]
    assert bodies == sent
    return bodies


def test_what_the_server_receives_is_relevant(dialogue: Dialogue, route: Route, tmp_path: Path) -> None:
    bodies = received(dialogue, route, ROOMY, tmp_path)
    check_relevance(dialogue, bodies)
    check_budget(dialogue, bodies, ROOMY)


def test_what_the_server_receives_keeps_a_tight_budget(dialogue: Dialogue, route: Route, tmp_path: Path) -> None:
    bodies = received(dialogue, route, TIGHT, tmp_path)
    check_budget(dialogue, bodies, TIGHT)
    roomy = received(dialogue, route, ROOMY, tmp_path)
    assert context_of(bodies[1])
    # The budget was felt: where two turns were sent, less is sent now.
    assert len(context_of(bodies[5])) < len(context_of(roomy[5]))


def test_the_same_conversations_with_the_real_service(capsys: pytest.CaptureFixture[str]) -> None:
    config = load_config({"provider": "minimax"}, folder=ROOT)
    if not config.secrets.get("MINIMAX_API_KEY"):
        reason = "the real service is not asked: MINIMAX_API_KEY is neither in the environment nor in .env"
        with capsys.disabled():
            print(f"\nskipped: {reason}")  # noqa: T201
        pytest.skip(reason)
    for dialogue in DIALOGUES.values():
        sent = hold(endpoint_of(config), dialogue, ROOMY)
        check_relevance(dialogue, sent)
        check_budget(dialogue, sent, ROOMY)
