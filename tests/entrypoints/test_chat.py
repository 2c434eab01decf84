"""``cgk chat`` as a process, talking to a real server."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.gatekeeper import ContextGatekeeper
from context_gatekeeper.testing import FakeProvider, FakeReply, ReceivedRequest
from tests.entrypoints.running import OnTerminal, Result, error_line, run_cgk

DEBUG = "\x1b[38;2;107;114;128m"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider([f"Answer {number} about the Redis lock." for number in range(9)]) as running:
        yield running


def env_of(provider: FakeProvider, **more: str) -> dict[str, str]:
    return {"MINIMAX_API_KEY": "test-key", "MINIMAX_BASE_URL": provider.openai_url, **more}


def chat(folder: Path, provider: FakeProvider, typed: str, *arguments: str, **env: str) -> Result:
    return run_cgk(folder, "chat", *arguments, env=env_of(provider, **env), stdin=typed)


def stored(path: Path, session: str = "default") -> list[tuple[str, str]]:
    with ContextGatekeeper(store=path, session=session) as gatekeeper:
        return [(block.user_text, block.assistant_text) for block in gatekeeper.blocks()]


def test_answers_are_printed_and_the_second_prompt_holds_the_first_turn(tmp_path: Path, provider: FakeProvider) -> None:
    result = chat(tmp_path, provider, "How long does the Redis lock live?\n\nAnd who renews the Redis lock?\n")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "Answer 0 about the Redis lock.\nAnswer 1 about the Redis lock.\n"
    assert provider.requests[1].messages == [
        ("user", "How long does the Redis lock live?"),
        ("assistant", "Answer 0 about the Redis lock."),
        ("user", "And who renews the Redis lock?"),
    ]


@pytest.mark.parametrize("name", ["minimax", "openai", "anthropic", "url"])
def test_every_kind_of_provider_can_be_talked_to(tmp_path: Path, provider: FakeProvider, name: str) -> None:
    url = provider.anthropic_url if name == "anthropic" else provider.openai_url
    env = {f"{name.upper()}_API_KEY": "test-key", f"{name.upper()}_BASE_URL": url}
    arguments = ["--provider", name]
    if name == "url":
        env, arguments = {"CGK_API_KEY": "test-key"}, ["--provider", url, "--model", "any"]
    result = run_cgk(tmp_path, "chat", *arguments, env=env, stdin="hi\n")
    assert (result.returncode, result.stdout) == (0, "Answer 0 about the Redis lock.\n")
    assert provider.requests[0].path.startswith("/anthropic" if name == "anthropic" else "/v1")


def test_the_key_is_read_from_an_env_file(tmp_path: Path, provider: FakeProvider) -> None:
    (tmp_path / ".env").write_text(
        f"MINIMAX_API_KEY=test-key\nMINIMAX_BASE_URL={provider.openai_url}\nMINIMAX_MODEL=Mine\n"
    )
    assert run_cgk(tmp_path, "chat", stdin="hi\n").returncode == 0
    assert provider.requests[0].body["model"] == "Mine"


def test_thinking_is_neither_shown_nor_stored(tmp_path: Path) -> None:
    with FakeProvider([FakeReply("Ten seconds.", thinking="SECRET THOUGHT")]) as provider:
        result = chat(tmp_path, provider, "How long?\n", "--store", "pool.db", "--verbose")
    assert "SECRET THOUGHT" not in result.stdout + result.stderr
    assert stored(tmp_path / "pool.db") == [("How long?", "Ten seconds.")]


def test_a_stored_conversation_goes_on_in_another_run(tmp_path: Path, provider: FakeProvider) -> None:
    for typed in ("How long does the Redis lock live?\n", "Who renews the Redis lock?\n"):
        assert chat(tmp_path, provider, typed, "--store", "pool.db", "--session", "work").returncode == 0
    assert "How long does the Redis lock live?" in provider.requests[1].context
    assert len(stored(tmp_path / "pool.db", "work")) == 2


def test_a_failed_turn_is_one_error_line_is_not_stored_and_the_chat_goes_on(tmp_path: Path) -> None:
    script = [FakeReply("overloaded", status=529), FakeReply("x" * 80, breaks_off=True), "Fine now."]
    with FakeProvider(script) as provider:
        result = chat(tmp_path, provider, "one\ntwo\nthree\n", "--store", "pool.db")
    assert result.returncode == 2
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["error", "error"]
    assert "529 (overloaded)" in result.stderr
    assert result.stdout.endswith("Fine now.\n")
    assert stored(tmp_path / "pool.db") == [("three", "Fine now.")]


def test_constraints_reach_every_prompt_until_they_are_removed(tmp_path: Path, provider: FakeProvider) -> None:
    typed = "/constraint language=中文\none\n/constraint tone = dry\n/constraint\n/constraint language=\ntwo\n"
    result = chat(tmp_path, provider, typed)
    assert result.returncode == 0, result.stderr
    assert provider.requests[0].system == "language: 中文"
    assert provider.requests[1].system == "tone: dry"
    assert "language: 中文\ntone: dry\n" in result.stdout


def test_explain_shows_the_last_decision_or_that_for_a_query(tmp_path: Path, provider: FakeProvider) -> None:
    typed = "How long does the Redis lock live?\nWho renews it?\n/explain\n/explain Redis lock\n"
    shown = chat(tmp_path, provider, typed).stdout
    assert "query     Who renews it?" in shown
    assert "query     Redis lock" in shown
    assert "| stage" in shown
    assert len(provider.requests) == 2


@pytest.mark.parametrize(
    ("typed", "part"),
    [
        ("/dance\n", "/dance: there is no such command; /help lists them"),
        ("/explain\n", "nothing was asked yet"),
        ("/constraint language\n", "it is not KEY=VALUE"),
        ("/constraint =x\n", "it is blank"),
    ],
)
def test_a_bad_command_is_one_error_line(tmp_path: Path, provider: FakeProvider, typed: str, part: str) -> None:
    assert part in error_line(chat(tmp_path, provider, typed))
    assert provider.requests == []


def test_quit_ends_the_chat_and_help_lists_commands(tmp_path: Path, provider: FakeProvider) -> None:
    result = chat(tmp_path, provider, "/help\n/quit\nnever sent\n")
    assert result.returncode == 0
    assert "/constraint KEY=VALUE" in result.stdout
    assert provider.requests == []


def test_json_gives_one_object_a_turn(tmp_path: Path, provider: FakeProvider) -> None:
    result = chat(tmp_path, provider, "How long does the Redis lock live?\nWho renews the Redis lock?\n", "--json")
    first, second = (json.loads(line) for line in result.stdout.splitlines())
    assert (first["turn_id"], first["block_turn_ids"], first["assistant"]) == (0, [], "Answer 0 about the Redis lock.")
    assert (second["turn_id"], second["block_turn_ids"]) == (1, [0])
    assert second["prompt_tokens"] == provider.requests[1].prompt_tokens


def test_every_prompt_keeps_the_budget(tmp_path: Path) -> None:
    with FakeProvider(["The Redis lock lives long. " * 20] * 6) as provider:
        typed = "".join(f"What about the Redis lock, part {number}?\n" for number in range(6))
        assert chat(tmp_path, provider, typed, "--budget", "90").returncode == 0
    # The provider's figure counts the framing of messages as well, 4 tokens each.
    assert all(r.prompt_tokens - 4 * len(r.messages) <= 90 for r in provider.requests)
    assert any(r.context for r in provider.requests)


def test_verbose_logs_turn_number_and_both_token_counts(tmp_path: Path, provider: FakeProvider) -> None:
    (line,) = chat(tmp_path, provider, "hi\n", "--verbose").stderr.splitlines()
    assert " turn 0 info: " in line
    assert f"{provider.requests[0].prompt_tokens} counted by the service" in line


@pytest.mark.parametrize(
    ("env", "part"), [({"MINIMAX_API_KEY": ""}, "MINIMAX_API_KEY"), ({"CGK_PROVIDER": "bing"}, "'bing'")]
)
def test_a_chat_that_cannot_begin_is_one_line(tmp_path: Path, env: dict[str, str], part: str) -> None:
    assert part in error_line(run_cgk(tmp_path, "chat", env=env))


def test_end_of_input_ends_a_terminal_chat_cleanly(tmp_path: Path, provider: FakeProvider) -> None:
    with OnTerminal(tmp_path, "chat", env=env_of(provider)) as terminal:
        terminal.read_until("> ")
        terminal.write("hi\n")
        terminal.read_until("Answer 0 about the Redis lock.\n> ")
        terminal.write("\x04")
        assert terminal.end() == 0
    assert "Traceback" not in terminal.shown


def test_ctrl_c_at_the_prompt_ends_a_terminal_chat_cleanly(tmp_path: Path, provider: FakeProvider) -> None:
    with OnTerminal(tmp_path, "chat", env=env_of(provider)) as terminal:
        terminal.read_until("> ")
        terminal.interrupt()
        assert terminal.end() == 0
    assert "Traceback" not in terminal.shown


def test_ctrl_c_in_an_answer_drops_the_turn_and_the_chat_goes_on(tmp_path: Path) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def answer(request: ReceivedRequest) -> str:
        if request.query == "slow":
            asked.set()
            may_answer.wait(60)
        return f"Answer to {request.query}."

    with FakeProvider(answer) as provider:
        try:
            with OnTerminal(tmp_path, "chat", "--store", "pool.db", env=env_of(provider)) as terminal:
                terminal.read_until("> ")
                terminal.write("slow\n")
                assert asked.wait(60)
                terminal.interrupt()
                terminal.read_until("interrupted: the turn is not stored\n> ")
                terminal.write("quick\n")
                terminal.read_until("Answer to quick.\n> ")
                terminal.write("/quit\n")
                assert terminal.end() == 0
        finally:
            may_answer.set()
    assert stored(tmp_path / "pool.db") == [("quick", "Answer to quick.")]


def test_thinking_is_shown_dim_on_a_terminal_with_colours(tmp_path: Path) -> None:
    with (
        FakeProvider([FakeReply("Ten seconds.", thinking="hmm")]) as provider,
        OnTerminal(tmp_path, "chat", "--color", env=env_of(provider)) as terminal,
    ):
        terminal.read_until("> ")
        terminal.write("hi\n")
        terminal.read_until("Ten sec")
        terminal.write("/quit\n")
        assert terminal.end() == 0
    assert f"{DEBUG}hmm" in terminal.shown.replace("\n", "")


def test_a_missing_http_package_is_one_line_with_the_install_command(tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text("raise ImportError('not here')\n")
    env = {"MINIMAX_API_KEY": "k", "PYTHONPATH": str(tmp_path)}
    line = error_line(run_cgk(tmp_path, "chat", env=env))
    assert 'pip install "context-gatekeeper[chat]"' in line
    assert sys.executable not in line
