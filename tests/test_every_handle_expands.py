"""Every handle of a session leads to the original bytes, whatever happened to the pool since (E7)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.transcripts.agent_sessions import read_sessions
from context_gatekeeper.types import AgentSession, BlockKind, ContentBlock
from tests.engine.agents import FIXING, SAMPLES, answered, blocks_of, said, session

SESSIONS = [one for file in sorted(SAMPLES.iterdir()) for one in read_sessions(file)] + [FIXING]
"""All samples: Claude Code with rewinds, compactions and sub-agents, Codex rollouts, lists of messages."""


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def shown(block: ContentBlock) -> str:
    """What a block's handle gives: an image as its data address, sealed thinking as it stands."""
    if block.kind is BlockKind.IMAGE and block.data:
        return f"data:{block.media_type};base64,{block.data}"
    return block.text or block.data


def pool_at(folder: Path) -> AgentPool:
    return AgentPool(folder / "pages.db", sealed_folder=folder / "sealed")


def expanded(pool: AgentPool, name: str, one: AgentSession) -> int:
    """Check every short and every page handle of a session; how many there are."""
    blocks = blocks_of(one)
    for number, block in enumerate(blocks):
        assert digest(pool.expand(f"p{number}", session=name).text) == digest(shown(block))
    pages = pool.pages(name)
    for page in pages:
        text = pool.expand(page.handle).text
        if page.blocks:
            first, _, last = page.blocks.removeprefix("p").partition("-p")
            numbers = range(int(first), int(last or first) + 1)
            texts = [blocks[number].text for number in numbers if blocks[number].text]
            assert text == "\n\n".join(texts or [shown(blocks[number]) for number in numbers])
        half = len(text) // 2
        assert (
            pool.expand(page.handle, characters=(0, half)).text + pool.expand(f"{page.handle}#C{half}-999999999").text
            == text
        )
    return len(blocks) + len(pages)


@pytest.mark.parametrize("number", range(len(SESSIONS)), ids=lambda number: SESSIONS[number].session_id)
def test_every_handle_expands_exactly_after_all_that_can_happen(
    tmp_path: Path, number: int, record_property: Callable[[str, object], None]
) -> None:
    one = SESSIONS[number]
    with pool_at(tmp_path) as pool:
        name = pool.import_session(one).session
        count = expanded(pool, name, one)
        handles = [page.handle for page in pool.pages(name)]
    with pool_at(tmp_path) as pool:  # opened again
        assert expanded(pool, name, one) == count
        # a fork: the same beginning under another name, and gone on differently
        middle = len(one.messages) // 2
        fork = replace(one, session_id="fork", messages=(*one.messages[:middle], said("another way"), answered("fine")))
        expanded(pool, pool.import_session(fork).session, fork)
        # an undo: the same name, rewound and gone on differently
        undone = replace(one, messages=(*one.messages[:middle], said("rewound"), answered("fine")))
        result = pool.import_session(undone)
        assert result.session == name + "~2" or not middle
        expanded(pool, result.session, undone)
        # again, and grown
        assert pool.import_session(one).added_pages == 0
        whole = replace(one, messages=(*one.messages, said("thanks"), answered("welcome")))
        pool.import_session(whole)
        expanded(pool, name, whole)
        assert [page.handle for page in pool.pages(name)][: len(handles)] == handles
    record_property("handles expanded exactly", f"{count} of {count}")


def test_handles_are_the_same_for_every_import_of_one_store_and_told_to_nobody_else(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    handles = []
    for folder in (first, second):
        with pool_at(folder) as pool:
            pool.import_session(FIXING)
            handles.append([page.handle for page in pool.pages("shop/fixing")])
    assert not set(handles[0]) & set(handles[1])


def test_a_log_full_of_oddities_is_taken_in_whole_and_its_handles_expand(tmp_path: Path) -> None:
    """Orphan results, calls never answered, null arguments, empty lists, ids used twice, half pairs, a cut line."""

    def call(call_id: object, arguments: object) -> dict[str, object]:
        return {"id": call_id, "type": "function", "function": {"name": "read", "arguments": arguments}}

    lines: list[object] = [
        {"role": "system", "content": "You are careful."},
        {"role": "tool", "tool_call_id": "orphan", "content": "x"},
        {"role": "user", "content": []},
        {"role": "user", "content": None},
        {"role": "assistant", "content": None, "tool_calls": [call("c1", None), call("c1", {}), call(7, "")]},
        {"role": "tool", "tool_call_id": "c1", "content": []},
        {"role": "tool", "tool_call_id": "c1", "content": None},
        {"role": "assistant", "content": [{"type": "text", "text": ""}], "tool_calls": [call("never", '{"path": "/a')]},
        {"role": "user", "content": "half \ud83d of a pair, NUL \0"},
        {"role": "wizard", "content": "abracadabra"},
        7,
        {"role": "assistant", "content": "The very last words."},
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join([*map(json.dumps, lines), json.dumps({"role": "user", "content": "cut"})[:-8]]))
    with pool_at(tmp_path) as pool:
        (one,) = read_sessions(log)
        assert len(one.warnings) > 8
        result = pool.import_session(one)
        assert expanded(pool, result.session, one) > 12
        assert pool.import_session(one).added_pages == 0
        assert pool.recall("abracadabra").pages
        assert pool.cards(result.session)
        assert pool.swap_group(result.session, "c1")


# -- killed in the middle -----------------------------------------------------------------------

LONG = session(
    *(message for turn in range(150) for message in (said(f"ask {turn} " * 20), answered(f"answer {turn} " * 30))),
    name="long",
)
IMPORT = """
import sys
from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.stores.sqlite import SqliteStore
from tests.test_every_handle_expands import LONG

class Telling(SqliteStore):
    def append(self, pool, session, drafts, **options):
        pages = super().append(pool, session, drafts, **options)
        print(len(pages), flush=True)
        return pages

AgentPool(Telling(sys.argv[1]), sealed_folder=sys.argv[2]).import_session(LONG)
"""


def killed_after(folder: Path, appends: int) -> int:
    """Import in a process of its own and kill -9 it behind so many batches; pages that it said were stored."""
    process = subprocess.Popen(
        [sys.executable, "-c", IMPORT, str(folder / "pages.db"), str(folder / "sealed")],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(appends)]
    process.kill()
    with process.stdout:
        told += map(int, process.stdout.read().split())
    process.wait(60)
    return sum(told)


def test_an_import_that_was_killed_is_made_whole_by_the_next(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    acknowledged = 0
    for appends in (1, 1, 2):
        acknowledged += killed_after(tmp_path, appends)
        with pool_at(tmp_path) as pool:
            (held,) = [info.pages for info in pool.sessions()]
            assert acknowledged <= held
            assert held % 2 == 0
            acknowledged = held
    with pool_at(tmp_path) as pool:
        result = pool.import_session(LONG)
        assert (result.session, result.added_pages) == ("long", 300 - acknowledged)
        assert [info.name for info in pool.sessions()] == ["long"]
        assert pool.session("long").messages == LONG.messages
        expanded(pool, "long", LONG)
        assert pool.import_session(LONG).added_pages == 0
    record_property("pages held when the import was killed the last time", f"{acknowledged} of 300")
