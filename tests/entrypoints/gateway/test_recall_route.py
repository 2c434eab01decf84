"""``/recall`` of a running gateway: for hooks of its user alone, in time, and the same answer as theirs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.entrypoints.gateway.recall_route import PoolReader, Question
from context_gatekeeper.entrypoints.hook import answer_event
from context_gatekeeper.entrypoints.hooks.running_gateway import (
    PROOF_HEADER,
    GatewayState,
    answer_proof,
    ask_for_context,
    find_gateway,
    question_proof,
    write_state,
)
from context_gatekeeper.errors import StoreError
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from tests.entrypoints.gateway.running import RawAnswer, RunningGateway, ask, running_gateway
from tests.entrypoints.gateway.test_serve_command import serving
from tests.entrypoints.hooks.clients import environ_of, write_claude_log

RULE = "We must never set lock_timeout_ms in src/billing/invoice_store.py below 4500."
PROMPT = "Why does invoice_store.py wait so long for its lock_timeout_ms?"
NONCE = "0f" * 16


def keep(pool_file: Path, home: Path, session: str = "before", said: str = RULE, owner: str = "") -> None:
    """Take a session of ``home/project`` into a pool."""
    log = write_claude_log(home, session, home / "project", [("user", said), ("assistant", "Understood.")])
    with AgentPool(pool_file, owner=owner, sealed_folder=home / "sealed") as pool:
        for one in read_sessions(log):
            pool.import_session(one)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    keep(tmp_path / "pages.db", tmp_path)
    return tmp_path


@pytest.fixture
def gateway(home: Path) -> Iterator[RunningGateway]:
    settings = {"store": str(home / "pages.db"), "sealed_folder": str(home / "sealed")}
    with running_gateway("http://127.0.0.1:1", folder=home / "settings", planner_settings=settings) as running:
        yield running


def state_of(gateway: RunningGateway) -> GatewayState:
    return GatewayState("127.0.0.1", gateway.port, 1, gateway.gateway.recall.word)


def recalled(gateway: RunningGateway, home: Path, prompt: str = PROMPT, session: str = "now") -> str:
    """What it has for a prompt, once it has loaded what it needs."""
    for _ in range(600):  # the first answers say that it has not, or took too long
        told = ask_for_context(state_of(gateway), prompt=prompt, cwd=str(home / "project"), session=session)
        if told is not None:
            return told
    raise AssertionError("it was never ready")


def question(**fields: object) -> bytes:
    return json.dumps({"prompt": PROMPT, "cwd": "/project", "session": "now", **fields}).encode()


def post(
    gateway: RunningGateway, body: bytes, *, proof: str | None = None, method: str = "POST", **headers: str
) -> RawAnswer:
    """A question with the proof that it needs, or another."""
    word = gateway.gateway.recall.word
    proof = f"{NONCE}.{question_proof(word, NONCE, body)}" if proof is None else proof
    return ask(gateway.port, "/recall", body, {PROOF_HEADER: proof, **headers}, method)


def test_a_prompt_gets_what_was_said_in_an_earlier_session_of_its_folder(gateway: RunningGateway, home: Path) -> None:
    told = recalled(gateway, home)

    assert re.match(r"<recalled-[0-9a-f]{16}>\n", told)
    assert RULE in told
    assert recalled(gateway, home, session="before") == ""
    assert recalled(gateway, home, "Write a poem about the sea and the wind, please.") == ""
    assert recalled(gateway, home.parent) == ""


def test_what_comes_in_and_what_is_forgotten_later_counts_at_once(gateway: RunningGateway, home: Path) -> None:
    assert RULE in recalled(gateway, home)
    more = "The lock_timeout_ms of invoice_store.py is long because of the nightly export."
    keep(home / "pages.db", home, "later", more)
    assert more in recalled(gateway, home)
    with AgentPool(home / "pages.db", sealed_folder=home / "sealed") as pool:
        pool.forget_session("before")
    told = recalled(gateway, home)
    assert (RULE in told, more in told) == (False, True)


def test_pages_of_another_owner_are_not_told(gateway: RunningGateway, home: Path) -> None:
    other = "The lock_timeout_ms of invoice_store.py is what Mallory says it is."
    keep(home / "pages.db", home, "foreign", other, owner="mallory")

    told = recalled(gateway, home)

    assert (RULE in told, other in told) == (True, False)


def test_the_first_question_is_refused_and_loads_what_the_next_ones_need(gateway: RunningGateway) -> None:
    first = post(gateway, question())

    assert (first.status, json.loads(first.body), first.header(PROOF_HEADER)) == (503, {"context": ""}, None)


def test_an_answer_proves_whose_it_is(gateway: RunningGateway, home: Path) -> None:
    recalled(gateway, home)

    answer = post(gateway, question())

    assert answer.status == 200
    assert answer.header(PROOF_HEADER) == answer_proof(gateway.gateway.recall.word, NONCE, answer.body)


@pytest.mark.parametrize("proof", ["", NONCE, f"{NONCE}.", f"{NONCE}.{'0' * 64}", f"{NONCE}.é", "."])
def test_who_cannot_prove_that_he_read_the_word_gets_nothing(gateway: RunningGateway, home: Path, proof: str) -> None:
    recalled(gateway, home)

    answer = post(gateway, question(cwd=str(home / "project")), proof=proof)

    assert (answer.status, json.loads(answer.body), answer.header(PROOF_HEADER)) == (403, {"context": ""}, None)


def test_the_proof_of_one_question_is_none_of_another(gateway: RunningGateway, home: Path) -> None:
    recalled(gateway, home)
    proof = f"{NONCE}.{question_proof(gateway.gateway.recall.word, NONCE, question())}"

    assert post(gateway, question(), proof=proof).status == 200
    assert post(gateway, question(prompt="another"), proof=proof).status == 403


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, question(prompt=3), question(cwd=None), question(session=[])]
)
def test_what_is_no_question_gets_nothing(gateway: RunningGateway, body: bytes) -> None:
    assert post(gateway, body).status == 403


def test_a_question_that_is_too_large_is_not_read(gateway: RunningGateway) -> None:
    assert post(gateway, question(prompt="a" * (1024 * 1024))).status == 413


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused_and_go_nowhere(gateway: RunningGateway, method: str) -> None:
    answer = post(gateway, b"", method=method)
    assert (answer.status, answer.header("allow")) == (405, "POST")


@pytest.mark.parametrize("header", [("Origin", "https://evil.example"), ("Host", "evil.example")])
def test_web_pages_are_kept_out_as_everywhere(gateway: RunningGateway, header: tuple[str, str]) -> None:
    answer = post(gateway, question(), **dict([header]))
    assert answer.status == 403
    assert b"gatekeeper_error" in answer.body


def test_where_a_token_is_set_it_is_asked_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"store": str(home / "pages.db")}
    with running_gateway(
        "http://127.0.0.1:1", folder=home / "settings", planner_settings=settings, token="secret"
    ) as running:
        monkeypatch.delenv("CGK_GATEWAY_TOKEN", raising=False)
        assert post(running, question()).status == 401
        monkeypatch.setenv("CGK_GATEWAY_TOKEN", "secret")
        assert RULE in recalled(running, home)


@pytest.mark.parametrize("settings", [{}, {"store": "absent.db"}, {"store": 3}, {"store": ":memory:"}])
def test_without_a_pool_there_is_nothing_and_none_is_made(tmp_path: Path, settings: dict[str, object]) -> None:
    settings = {name: str(tmp_path / "absent.db") if told == "absent.db" else told for name, told in settings.items()}
    with running_gateway("http://127.0.0.1:1", folder=tmp_path / "settings", planner_settings=settings) as running:
        assert json.loads(post(running, question()).body) == {"context": ""}
        assert not (tmp_path / "absent.db").exists()


def test_a_gateway_that_is_switched_off_has_nothing(home: Path) -> None:
    settings = {"store": str(home / "pages.db")}
    with running_gateway(
        "http://127.0.0.1:1", folder=home / "settings", planner_settings=settings, off=True
    ) as running:
        assert recalled(running, home) == ""


def test_a_pool_that_cannot_be_read_has_nothing_and_is_tried_again(home: Path) -> None:
    opened: list[AgentPool] = []

    def open_pool() -> AgentPool:
        opened.append(AgentPool(home / "pages.db", sealed_folder=home / "sealed"))
        if len(opened) == 1:
            opened[0].close()
        if len(opened) == 2:
            raise StoreError("pages.db", "it is locked", "wait")
        return opened[-1]

    reader = PoolReader(open_pool)
    asked = Question(PROMPT, str(home / "project"), "now")
    told = [reader.ask(asked).result(60) for _ in range(4)]
    reader.close()

    assert told[:2] == ["", ""]
    assert RULE in told[2]
    assert RULE in told[3]
    assert len(opened) == 3


def test_without_time_only_the_newest_session_is_looked_into(home: Path) -> None:
    more = "The lock_timeout_ms of invoice_store.py is long because of the nightly export."
    keep(home / "pages.db", home, "later", more)
    reader = PoolReader(lambda: AgentPool(home / "pages.db", sealed_folder=home / "sealed"))
    asked = Question(PROMPT, str(home / "project"), "now")

    hurried, patient = reader.ask(asked, until=0.0).result(60), reader.ask(asked).result(60)
    reader.close()

    assert (RULE in hurried, more in hurried) == (False, True)
    assert (RULE in patient, more in patient) == (True, True)


def test_a_question_that_nobody_waits_for_is_passed_over(home: Path) -> None:
    reader = PoolReader(lambda: AgentPool(home / "pages.db", sealed_folder=home / "sealed"))
    asked = Question(PROMPT, str(home / "project"), "now")
    first, given_up, last = (reader.ask(asked) for _ in range(3))
    was_given_up = given_up.cancel()

    assert RULE in last.result(60)
    assert first.done()
    assert given_up.cancelled() is was_given_up
    reader.close()


# -- the command and the hook ---------------------------------------------------------------------


def test_the_command_tells_hooks_where_it_is_while_it_runs(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "context-gatekeeper"
    with serving(tmp_path, "--json") as (process, line):
        state = find_gateway(str(folder))
        assert state is not None
        assert (state.host, state.port, state.pid) == ("127.0.0.1", json.loads(line)["port"], process.pid)
        assert (folder / "gateway.run").stat().st_mode & 0o777 == 0o600
        assert ask_for_context(state, prompt=PROMPT, cwd="/project", session="now") == ""
        process.terminate()
        process.communicate(timeout=60)
        assert find_gateway(str(folder)) is None
        assert not (folder / "gateway.run").exists()


def test_the_command_serves_where_hooks_cannot_be_told(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "context-gatekeeper" / "gateway.run"
    folder.mkdir(parents=True)
    with serving(tmp_path, "--json") as (process, line):
        assert ask(json.loads(line)["port"], "/healthz", method="GET").status == 200
        process.terminate()
        _, err = process.communicate(timeout=60)
        assert (process.returncode, "hooks do not find this gateway" in err) == (0, True)


def test_a_hook_takes_the_answer_of_the_gateway_that_runs(
    gateway: RunningGateway, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ_of(home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CGK_GATEWAY_URL", raising=False)
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "now", "cwd": str(home / "project"), "prompt": PROMPT}
    assert answer_event(event) == {}  # the user's own pool is empty
    recalled(gateway, home)

    write_state(str(home / "config" / "context-gatekeeper"), state_of(gateway)._replace(pid=os.getpid()))

    told = answer_event(event)["hookSpecificOutput"]
    assert isinstance(told, dict)
    assert RULE in told["additionalContext"]


def test_the_word_is_another_for_each_gateway(home: Path) -> None:
    words = set()
    for _ in range(2):
        with running_gateway("http://127.0.0.1:1", folder=home / "settings") as running:
            words.add(running.gateway.recall.word)
    assert len(words) == 2
    assert min(map(len, words)) == 64
