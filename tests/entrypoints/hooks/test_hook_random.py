"""R9 for ``cgk hook``: whatever comes in, the client can go on, and nothing that it had is lost."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.entrypoints.hooks.clients import LARGE, bash, environ_of, tool_event, write_claude_log
from tests.entrypoints.running import DEADLINE_SECONDS, run_cgk

RULE = "We must never set lock_timeout_ms in src/billing/invoice_store.py below 4500."
PROMPT = "Why does invoice_store.py wait so long for its lock_timeout_ms?"
COUNT = 100
"""Inputs of one seed."""
EVENTS = ("PostToolUse", "UserPromptSubmit", "SessionStart", "PreCompact", "SessionEnd", "Stop", "PreToolUse", "", "X")
TOOLS = ("Bash", "Grep", "WebFetch", "Read", "mcp__db__query", "mcp__cgk__cgk_expand", "", "系统", "../x", "\x00")
WORDS = (
    "",
    "few",
    PROMPT,
    LARGE,
    f"\ud83d{LARGE}",
    "\x00\x1b[2J",
    f"行{LARGE}",
    f"\u202e{LARGE}",
    "a" * 70_000,
    "/help",
)
FORKING = """
import base64, json, os, sys
from context_gatekeeper.entrypoints.hook import run_hook

def answered(content):
    # A process of its own for each input, with files for its streams.
    with open("in", "wb") as file:
        file.write(content)
    child = os.fork()
    if not child:
        for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC))):
            os.dup2(os.open(name, flags, 0o600), number)
        sys.stdin = open(0, encoding="utf-8", closefd=False)
        os._exit(run_hook())
    _, status = os.waitpid(child, 0)
    with open("out", "rb") as file:
        return [os.waitstatus_to_exitcode(status), base64.b64encode(file.read()).decode()]

print(json.dumps([answered(base64.b64decode(one)) for one in json.load(sys.stdin)]))
"""


class Answered(NamedTuple):
    given: bytes
    exit_code: int
    told: bytes


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's, with a pool that has something to tell."""
    folder = tmp_path_factory.mktemp("home")
    log = write_claude_log(folder, "before", folder, [("user", RULE), ("assistant", "Understood.")])
    env = {name: value for name, value in environ_of(folder).items() if name.startswith("XDG_")}
    assert run_cgk(folder, "import", log, env=env).returncode == 0
    return folder


def answers_of(home: Path, inputs: Sequence[bytes]) -> list[Answered]:
    """What the hook says to each, in a process of its own each."""
    done = subprocess.run(
        [sys.executable, "-c", FORKING],
        input=json.dumps([base64.b64encode(one).decode() for one in inputs]),
        cwd=home,
        env=environ_of(home),
        capture_output=True,
        text=True,
        timeout=10 * DEADLINE_SECONDS,
        check=True,
    )
    assert done.stderr == ""
    told = json.loads(done.stdout)
    return [Answered(one, code, base64.b64decode(out)) for one, (code, out) in zip(inputs, told, strict=True)]


# -- inputs ---------------------------------------------------------------------------------------


def any_value(chance: random.Random, depth: int = 0) -> object:
    """Any JSON value, large texts among them."""
    kind = chance.randrange(8 if depth < 3 else 6)
    if kind < 2:
        return chance.choice(WORDS)
    if kind < 6:
        return (None, True, chance.choice((0, -1, 1e308, 2**70)), chance.random())[kind - 2]
    inner = [any_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    names = ("text", "type", "content", "stdout", "stderr", "result", "mode", "isImage", "structuredContent")
    return inner if kind == 6 else {chance.choice(names): one for one in inner}


def a_response(chance: random.Random) -> object:
    """A tool's result, in a known shape or in none."""
    text = chance.choice(WORDS)
    blocks = [{"type": "text", "text": chance.choice(WORDS)} for _ in range(chance.randrange(4))]
    return chance.choice(
        (
            bash(text),
            bash(text) | {"stderr": chance.choice(WORDS)},
            {"mode": "content", "content": text, "numLines": 3},
            {"code": 200, "result": text},
            blocks,
            {"content": blocks, "isError": False},
            text,
            any_value(chance),
        )
    )


def fitting(tool: str, chance: random.Random) -> object:
    """A result in the tool's own shape."""
    text = chance.choice(WORDS)
    shapes = {
        "Bash": bash(text, noOutputExpected=False),
        "Grep": {"mode": "content", "content": text, "numLines": 3},
        "WebFetch": {"code": 200, "result": text},
    }
    return shapes.get(tool, [{"type": "text", "text": text}, {"type": "image", "data": text}])


def an_event(chance: random.Random, home: Path) -> dict[str, Any]:
    tool = chance.choice(TOOLS)
    event = tool_event(tool, fitting(tool, chance) if chance.random() < 0.6 else a_response(chance))
    event |= {
        "hook_event_name": chance.choice(EVENTS) if chance.random() < 0.5 else "PostToolUse",
        "cwd": str(home),
        "session_id": chance.choice(("now", "../../etc", "", "s" * 300, "\x00", "before")),
        "tool_use_id": chance.choice(("toolu_01", "../x", "", "c" * 300, f"toolu_{chance.randrange(1000)}")),
        "prompt": chance.choice(WORDS),
        "source": chance.choice(("startup", "resume", "compact", "?")),
    }
    for name in chance.sample(sorted(event), chance.randrange(3)):
        event[name] = any_value(chance)
    for name in chance.sample(sorted(event), chance.randrange(2)):
        del event[name]
    if chance.random() < 0.2:
        event["agent_id"] = chance.choice(("a1", "../x", "", 3))
    return event


def an_input(chance: random.Random, home: Path) -> bytes:
    """An event, one with damage, or bytes of no sense at all."""
    whole = json.dumps(an_event(chance, home), ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    kind = chance.randrange(8)
    if kind == 0:
        return chance.randbytes(chance.randrange(400))
    if kind == 1:
        return whole[: chance.randrange(len(whole))]
    if kind == 2:
        place = chance.randrange(len(whole))
        return whole[:place] + chance.randbytes(3) + whole[place + 3 :]
    if kind == 3:
        return chance.choice((b"", b"[]", b"null", b"{" * 5000, b'"x"', b"[" * 100_000, b"{}{}", whole + whole, b"NaN"))
    return whole


# -- what must hold ---------------------------------------------------------------------------------


def check(answer: Answered, home: Path) -> str:
    """What the answer is: "nothing", "empty", "context" or "view"."""
    assert answer.exit_code == 0
    if not answer.told:
        return "nothing"
    told = json.loads(answer.told)
    assert answer.told.endswith(b"\n")
    if told == {}:
        return "empty"
    event = json.loads(answer.given)
    assert list(told) == ["hookSpecificOutput"]
    output = told["hookSpecificOutput"]
    assert output["hookEventName"] == event["hook_event_name"]
    if "additionalContext" in output:
        assert event["hook_event_name"] in ("UserPromptSubmit", "SessionStart")
        assert output["additionalContext"].startswith("<recalled-")
        return "context"
    assert list(output) == ["hookEventName", "updatedToolOutput"]
    assert event["hook_event_name"] == "PostToolUse"
    assert same_but_views(event["tool_response"], output["updatedToolOutput"], home) > 0
    return "view"


def same_but_views(before: Any, now: Any, home: Path) -> int:
    """How many texts have a view in their place, each of which names the file of the whole text; all else is equal."""
    if before == now:
        return 0
    assert type(before) is type(now)
    if isinstance(now, dict):
        assert list(before) == list(now)
        return sum(same_but_views(before[key], now[key], home) for key in now)
    if isinstance(now, list):
        assert len(before) == len(now)
        return sum(same_but_views(one, other, home) for one, other in zip(before, now, strict=True))
    assert isinstance(now, str)
    assert len(now) < len(before)
    page = Path(now.rpartition("whole text: ")[2].removesuffix("]"))
    assert page.is_relative_to(home / "data" / "context-gatekeeper" / "pages")
    assert page.read_bytes() == before.encode("utf-8", "surrogatepass")
    return 1


@pytest.mark.parametrize("seed", range(2))
def test_two_hundred_inputs_of_any_kind_end_well_and_lose_nothing(home: Path, seed: int) -> None:
    chance = random.Random(seed)
    inputs = [an_input(chance, home) for _ in range(COUNT)]

    kinds = [check(answer, home) for answer in answers_of(home, inputs)]

    assert {"nothing", "empty", "view"} <= set(kinds), "each kind of answer was seen"
    outside = [path for path in home.rglob("*.txt") if not path.is_relative_to(home / "data")]
    assert outside == [], "no name of the client's became a path"


def test_the_same_inputs_get_the_same_answers_whatever_came_between(home: Path) -> None:
    chance = random.Random(99)
    inputs = [json.dumps(an_event(chance, home)).encode() for _ in range(30)]
    inputs += [json.dumps(tool_event("Bash", bash(LARGE))).encode()]

    first, second = (answers_of(home, given)[-1] for given in (inputs, inputs[::-1] + inputs[-1:]))

    assert check(first, home) == "view"
    assert first.told == second.told
