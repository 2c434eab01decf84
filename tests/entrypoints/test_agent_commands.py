"""The commands about agents' sessions, as processes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.agent_pool import AgentPool
from context_gatekeeper.entrypoints.cli.app import run as run_command
from tests.core.secret_samples import secret_samples
from tests.engine.agents import FIXING, SAMPLES
from tests.entrypoints.running import COMMAND, OnTerminal, Result, environment, error_line

LOGS = [SAMPLES / name for name in ("agents.jsonl", "claude_code.jsonl", "codex_bare.jsonl", "codex_rollout.jsonl")]
CLAUDE = "7d3e9a10-52b4-4f6c-9a01-c0ffee000001"
SECRET = next(sample.secret for sample in secret_samples() if sample.name == "github ghp")


class Runner:
    """``cgk`` in this process: the same code as the command, without starting Python anew each time."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capfd = capfd

    def __call__(self, *arguments: object) -> Result:
        self._capfd.readouterr()
        given = [str(argument) for argument in arguments]
        code = run_command(given)
        printed = self._capfd.readouterr()
        return subprocess.CompletedProcess(given, code, printed.out, printed.err)

    def json(self, *arguments: object) -> Any:
        """The one JSON object that is printed."""
        result = self(*arguments, "--json")
        assert result.returncode == 0, result.stderr
        (line,) = result.stdout.splitlines()
        return json.loads(line)


def places(folder: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Runner:
    """``cgk`` in a folder of its own, away from anybody's settings."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CGK_")]:
        monkeypatch.delenv(name)
    for name, value in places(tmp_path).items():
        monkeypatch.setenv(name, value)
    return Runner(tmp_path, capfd)


@pytest.fixture
def cgk(empty: Runner) -> Runner:
    """The same beside a pool that holds one session of our own."""
    folder = empty.folder
    with AgentPool(folder / "pages.db", sealed_folder=folder / "sealed") as pool:
        pool.import_session(FIXING)
    (folder / ".env").write_text(f"CGK_STORE={folder / 'pages.db'}\nCGK_SEALED_FOLDER={folder / 'sealed'}\n")
    return empty


# -- import -------------------------------------------------------------------------------------


def test_sessions_come_in_once_by_default_into_the_users_data_folder(empty: Runner) -> None:
    dry = empty("import", *LOGS, "--dry-run")
    assert "6 sessions: 70 pages would be added" in dry.stdout
    assert not (empty.folder / "data").exists()
    first = empty("import", *LOGS)
    assert (first.returncode, first.stdout.splitlines()[-1]) == (0, "6 sessions: 70 pages added")
    assert f"| {CLAUDE}         | claude-code |     0 |    24 |     23 | new   |" in first.stdout
    assert (empty.folder / "data" / "context-gatekeeper" / "pages.db").is_file()
    assert "claude_code.jsonl: records of unknown types are skipped: 'hologram' 2" in first.stderr
    again = empty.json("import", *LOGS)
    assert (again["added_pages"], again["known_pages"], again["dry_run"]) == (0, 70, False)
    assert "unchanged" in empty("import", *LOGS, "--dry-run").stdout


def test_a_session_that_went_on_and_one_that_differs_are_told(empty: Runner) -> None:
    log = empty.folder / "log.json"
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    for messages, state in (
        (talk, "new"),
        ([*talk, {"role": "user", "content": "more"}], "grown"),
        ([*talk, {"role": "user", "content": "less"}], "differs from 1 from p2 on"),
    ):
        log.write_text(json.dumps(messages))
        assert state in empty("import", log, "--store", "p.db").stdout
    empty("forget", "1~2", "--yes", "--store", "p.db")
    assert "unchanged, 4 deleted" in empty("import", log, "--store", "p.db").stdout


def test_a_broken_line_is_reported_with_its_number_and_skipped(empty: Runner) -> None:
    log = empty.folder / "log.jsonl"
    lines = [
        json.dumps({"role": "user", "content": "hi"}),
        "{broken",
        json.dumps({"role": "assistant", "content": "yo"}),
    ]
    log.write_text("\n".join([*lines, *["{}", "[]", "7", "8"], json.dumps({"role": "user", "content": "x"})[:-9]]))
    result = empty("import", log, "--store", "p.db")
    assert "1 session: 2 pages added" in result.stdout
    assert "line 2" in result.stderr
    assert "more warnings; --verbose shows all" in result.stderr
    assert len(empty("import", log, "--store", "p.db", "--verbose").stderr.splitlines()) > 4


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("import", "nothing.jsonl"), "there is no such file"),
        (("import",), "Missing argument 'FILES...'"),
        (("import", LOGS[0], "--redaction", "maybe"), "use one of keep, drop, off"),
        (("import", LOGS[0], "--store", "postgres://x"), "no such kind of store"),
        (("pages", "x"), "take sessions in: cgk import FILE"),
        (("stats", "--store", "absent.db"), "there is no such file"),
        (("expand", "p1"), "there is no such file"),
    ],
)
def test_a_bad_argument_is_one_line_and_makes_nothing(empty: Runner, arguments: tuple[object, ...], part: str) -> None:
    result = empty(*arguments)
    assert part in error_line(result)
    assert list(empty.folder.rglob("*.db")) == []


def test_what_came_in_before_a_bad_file_stays_and_is_told(empty: Runner) -> None:
    result = empty("import", LOGS[0], empty.folder / "nothing", "--store", "p.db")
    assert result.returncode == 2
    assert "2 sessions: 16 pages added" in result.stdout
    assert result.stderr.startswith("error: ")
    assert empty.json("stats", "--store", "p.db")["sessions"] == 2


def test_secrets_are_told_sealed_and_given_back_to_the_owner(empty: Runner) -> None:
    log = empty.folder / "log.json"
    log.write_text(json.dumps([{"role": "user", "content": f"use {SECRET}"}]))
    assert "1 session: 2 pages added, secrets taken out of 1" in empty("import", log).stdout
    stored = b"".join(path.read_bytes() for path in (empty.folder / "data").rglob("pages.db*"))
    assert SECRET.encode() not in stored
    assert empty("expand", "p0").stdout == f"use {SECRET}"
    assert SECRET not in empty("pages", "1").stdout + empty("recall", "use").stdout
    assert list((empty.folder / "config").rglob("*.sealed"))


# -- what there is ------------------------------------------------------------------------------


def test_pages_shows_a_row_for_each_page_with_its_handle(cgk: Runner) -> None:
    shown = cgk("pages", "fixing").stdout.splitlines()
    assert shown[0] == "shop/fixing"
    assert [cell.strip() for cell in shown[2].strip("|").split("|")] == [
        *("blocks", "kind", "from", "tool or file", "tokens", "handle", "marks", "begins with"),
    ]
    assert len(shown) == 4 + 14
    assert "superseded" in next(line for line in shown if "| p6 " in line)
    assert "| error " in next(line for line in shown if "| p11 " in line)
    files = cgk.json("pages", "shop/fixing", "--kind", "file")
    assert [page["path"] for page in files["pages"]] == ["/srv/shop/export.py"] * 2


def test_cards_quote_and_cite(cgk: Runner) -> None:
    shown = cgk("cards", "shop/fixing").stdout
    told = cgk.json("cards", "shop/fixing")
    (card,) = told["cards"]
    assert (card["stretch"], card["unverifiable"], told["session_card"]) == ("p0-p16", 0, None)
    assert f"=== t1 The order export is too slow, please fix it. (p0-p16 {card['handle']}) ===" in shown
    assert "- Never touch the schema. [p13]" in shown
    assert "- Never touch the schema. [p13]" in cgk("expand", card["handle"]).stdout
    assert [page["handle"] for page in cgk.json("pages", "fixing", "--kind", "card")["pages"]] == [card["handle"]]
    assert "give 40 or more" in error_line(cgk("cards", "fixing", "--tokens", "5"))


def test_inspect_lists_sessions_and_adds_up_one(cgk: Runner) -> None:
    assert "| shop/fixing | test   |    16 | /srv/shop |" in cgk("inspect").stdout
    assert cgk.json("inspect")["sessions"][0]["name"] == "shop/fixing"
    shown = cgk("inspect", "fixing").stdout
    assert "14 with 17 blocks" in shown
    assert "| /srv/shop/export.py |        2 | p15 " in shown
    values = cgk.json("inspect", "shop/fixing")
    assert values["totals"]["superseded"] == 1
    assert [task["task_id"] for task in values["tasks"]] == ["t1"]
    assert values["plan"]["resident_tokens"] == 8000


def test_the_plan_of_inspect_is_made_for_prices_and_a_resident_part(cgk: Runner) -> None:
    cgk("goal", "set", "The order export is quick.")
    plan = cgk.json("inspect", "fixing", "--prices", "none", "--resident-tokens", "123")["plan"]
    assert plan["resident_tokens"] == 123
    assert plan["entries"][0]["reason"] == "pinned: always sent"
    assert plan["expected_units"] != cgk.json("inspect", "fixing", "--resident-tokens", "123")["plan"]["expected_units"]
    assert "(123 resident)" in cgk("inspect", "fixing", "--resident-tokens", "123").stdout
    assert "use one of" in error_line(cgk("inspect", "fixing", "--prices", "gold"))
    assert "resident_tokens" in error_line(cgk("inspect", "fixing", "--resident-tokens", "-1"))


def test_several_tasks_have_a_card_each_and_one_over_all(cgk: Runner) -> None:
    log = cgk.folder / "two.json"
    asks = (
        "Fix the order export of the bookshop, it drops the last row.",
        "换个任务：给猫咪诊所写一份疫苗提醒邮件的模板。",
    )
    log.write_text(json.dumps([{"role": "user", "content": ask} for ask in asks]))
    cgk("import", log)
    told = cgk.json("cards", "1")
    assert [card["task_id"] for card in (*told["cards"], told["session_card"])] == ["t1", "t2", ""]
    assert "=== all tasks (p0-p1) ===" in cgk("cards", "1").stdout


def test_stats_add_up_the_pool(cgk: Runner) -> None:
    shown = cgk("stats").stdout
    assert "sessions     1" in shown
    assert "always sent  0 goals, 0 pins, 0 tokens" in shown
    stats = cgk.json("stats")
    assert stats["totals"]["pages"] == 14
    assert isinstance(stats["store_bytes"], int)


def test_a_part_of_a_name_is_enough_where_it_names_one_session(cgk: Runner) -> None:
    cgk("import", LOGS[1])
    assert "2 sessions have it in their names; take one of 7d3e9a10" in error_line(cgk("pages", "c0ffee"))
    assert cgk("pages", CLAUDE).returncode == 0
    assert "no such agent session" in error_line(cgk("pages", "zebra"))
    assert "no such agent session" in error_line(cgk("pages", ""))


# -- out ----------------------------------------------------------------------------------------


def raw(folder: Path, *arguments: object) -> bytes:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        env=environment(folder, places(folder)),
        capture_output=True,
        check=True,
    )
    return done.stdout


def test_a_handle_gives_the_original_bytes_and_nothing_else(cgk: Runner) -> None:
    odd = "half \ud83d of a pair, NUL \0, CR LF\r\n缓存 without a line end"
    log = cgk.folder / "odd.json"
    log.write_text(json.dumps([{"role": "user", "content": odd}]))
    cgk("import", log)
    handle = cgk.json("pages", "1")["pages"][0]["handle"]
    expected = odd.encode("utf-8", "surrogatepass")
    assert raw(cgk.folder, "expand", handle) == expected
    assert raw(cgk.folder, "expand", "p0", "--session", "1") == expected
    assert raw(cgk.folder, "expand", handle, "--chars", "5-6") == "\ud83d".encode("utf-8", "surrogatepass")
    assert raw(cgk.folder, "expand", handle, "--lines", "2") == "缓存 without a line end".encode()
    assert raw(cgk.folder, "expand", handle, "--lines", "1-") == expected
    assert raw(cgk.folder, "expand", f"{handle}#L1-1") == expected.split(b"\n")[0] + b"\n"
    printed = cgk.json("expand", handle)
    assert printed["text"] == odd
    assert (
        hashlib.sha256(str(printed["text"]).encode("utf-8", "surrogatepass")).digest()
        == hashlib.sha256(expected).digest()
    )


def test_a_pattern_gives_the_lines_around_it(cgk: Runner) -> None:
    shown = cgk("expand", "p11", "--pattern", "TypeError").stdout
    assert shown.splitlines()[0] == "[lines 1-3]"
    assert "[line 1]" in cgk("expand", "p0", "--pattern", "sh.ps", "--regex").stdout
    nothing = cgk("expand", "p11", "--pattern", "zebra")
    assert (nothing.stdout, nothing.stderr) == ("", "note: the pattern occurs nowhere in it\n")
    assert cgk.json("expand", "p11", "--pattern", "TypeError")["slices"][0]["first_line"] == 1


def test_an_expansion_may_be_a_private_file(cgk: Runner) -> None:
    path = Path(cgk("expand", "p0", "--file").stdout.strip())
    assert path.read_text() == "You mend shops."
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()


def test_on_a_terminal_an_expansion_steers_nothing(cgk: Runner) -> None:
    log = cgk.folder / "odd.json"
    log.write_text(json.dumps([{"role": "user", "content": "\x1b[2Jclear\n"}]))
    cgk("import", log)
    with OnTerminal(cgk.folder, "expand", "p0", "--session", "1", env=places(cgk.folder)) as terminal:
        assert terminal.end() == 0
        assert terminal.shown == "\\x1b[2Jclear\n"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("page:aaaaaaaaaaaaaaaa",), "there is no such page here"),
        (("p99",), "there is no such page here"),
        (("../../etc/passwd",), "it is none"),
        (("p0", "--lines", "x-y"), "it is no range"),
        (("p0", "--lines", "9" * 30), "it is no range"),
        (("p11", "--lines", "3-2"), "it is before line 3"),
        (("p0", "--lines", "1", "--chars", "1-2"), "more than one of them"),
        (("p0", "--pattern", "("), "no lines"),
        (("p0", "--pattern", "(", "--regex"), "pattern"),
        (("p0", "--session", "zebra"), "no such agent session"),
    ],
)
def test_what_cannot_be_expanded_is_one_line(cgk: Runner, arguments: tuple[str, ...], part: str) -> None:
    result = cgk("expand", *arguments)
    if part == "no lines":
        assert (result.returncode, result.stdout) == (0, "")
    else:
        assert part in error_line(result)


def test_recall_prints_one_fenced_block(cgk: Runner) -> None:
    shown = cgk("recall", "generator subscriptable").stdout.splitlines()
    assert shown[0].startswith("<recalled-")
    assert shown[-1] == shown[0].replace("<", "</")
    result = cgk.json("recall", "generator subscriptable", "--limit", "1", "--session", "fixing")
    assert [page["session"] for page in result["pages"]] == ["shop/fixing"]
    assert cgk("recall", "generator subscriptable").stderr == ""
    nothing = cgk("recall", "zzzunknown")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "note: nothing was found\n")
    assert "limit" in error_line(cgk("recall", "x", "--limit", "0"))


def test_pages_beyond_the_fifth_are_listed_apart_from_the_block(cgk: Runner) -> None:
    query = ("recall", "export generator schema test shop", "--limit", "50")
    found = cgk.json(*query)
    assert len(found["pages"]) > 5
    shown = cgk(*query)
    lines = shown.stdout.splitlines()
    assert (lines[0][:10], lines[-1]) == ("<recalled-", lines[0].replace("<", "</"))
    for text in (shown.stdout, found["text"]):
        assert [page["handle"] in text for page in found["pages"]] == [
            place < 5 for place in range(len(found["pages"]))
        ]
    listed = [line.split()[1] for line in shown.stderr.splitlines()]
    assert listed == [f"{page['handle']}," for page in found["pages"][5:]]


# -- goals, pins, forgetting --------------------------------------------------------------------


def test_goals_are_set_listed_and_done(cgk: Runner) -> None:
    assert "g1 set" in cgk("goal", "set", "Ship the export.").stdout
    assert cgk.json("goal", "set", "修好登录")["goal_id"] == "g2"
    assert "g1 is done" in cgk("goal", "done", "g1").stdout
    assert cgk.json("goal", "done", "g1")["is_done"] is True
    shown = cgk("goal").stdout
    assert "| g1   | done   |" in shown
    assert cgk("goal", "list").stdout == shown
    assert [goal["is_done"] for goal in cgk.json("goal", "list")["goals"]] == [True, False]
    assert "there is no such goal" in error_line(cgk("goal", "done", "g9"))
    assert "it is blank" in error_line(cgk("goal", "set", " "))


def test_a_store_may_be_named_before_or_behind_the_command_of_goal(empty: Runner) -> None:
    assert empty("goal", "--store", "one.db", "set", "first").returncode == 0
    assert empty("goal", "set", "second", "--store", "one.db").returncode == 0
    assert len(empty.json("goal", "--store", "one.db")["goals"]) == 2
    assert empty.json("goal", "--store", "absent.db")["goals"] == []
    assert not (empty.folder / "absent.db").exists()


def test_pins_are_set_listed_removed_and_bounded(cgk: Runner) -> None:
    assert "shop/fixing p0 pinned" in cgk("pin", "p0").stdout
    assert cgk.json("pin", "p6#L1", "--session", "fixing")["handle"] == "shop/fixing p6#L1"
    assert "| shop/fixing p0    |" in cgk("pin").stdout
    assert len(cgk.json("pin")["pins"]) == 2
    assert "p0 is not pinned any more" in cgk("pin", "p0", "--remove").stdout
    assert cgk.json("pin", "shop/fixing p6#L1", "--remove")["resident_tokens"] == 0
    assert "nothing is pinned" in error_line(cgk("pin", "p0", "--remove"))
    log = cgk.folder / "long.json"
    log.write_text(json.dumps([{"role": "user", "content": "line\n" * 30_000}]))
    cgk("import", log)
    assert "it alone has" in error_line(cgk("pin", "p0", "--session", "1"))


def test_forgetting_asks_and_deletes_for_good(cgk: Runner) -> None:
    assert "add --yes" in error_line(cgk("forget", "shop/fixing"))
    handle = cgk.json("pages", "fixing")["pages"][0]["handle"]
    assert "no such page" in error_line(cgk("forget", "page:aaaaaaaaaaaaaaaa", "--yes"))
    assert f"1 page deleted for good: {handle}" in cgk("forget", handle, "--yes").stdout
    with OnTerminal(cgk.folder, "forget", "shop/fixing", env=places(cgk.folder)) as terminal:
        terminal.read_until("Delete 13 pages for good (shop/fixing)? [y/N]: ")
        terminal.write("n\n")
        assert terminal.end() == 2
        assert "nothing was deleted" in terminal.shown
    with OnTerminal(cgk.folder, "forget", "shop/fixing", env=places(cgk.folder)) as terminal:
        terminal.read_until("[y/N]: ")
        terminal.write("y\n")
        assert terminal.end() == 0
    assert cgk.json("inspect")["sessions"] == []
    assert b"too slow" not in (cgk.folder / "pages.db").read_bytes()


@pytest.mark.parametrize("part", ["fixing", "shop", "shop/fix", "hop/fixing", "o"])
def test_a_part_of_a_name_deletes_nothing(cgk: Runner, part: str) -> None:
    told = error_line(cgk("forget", part, "--yes"))
    assert "it is a part of a name alone; give the whole one: shop/fixing" in told
    assert [one["name"] for one in cgk.json("inspect")["sessions"]] == ["shop/fixing"]
    assert "the pool has no such agent session" in error_line(cgk("forget", "nobody", "--yes"))


def test_what_came_in_before_an_error_is_told_in_json_with_the_error(cgk: Runner) -> None:
    log = cgk.folder / "other.json"
    log.write_text(json.dumps([{"role": "user", "content": "hello"}]))
    done = cgk("import", log, cgk.folder / "absent.json", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, [one["added_pages"] for one in told["sessions"]]) == (2, [2])
    assert "there is no such file" in told["error"]
    assert "there is no such file" in done.stderr
    assert "error" not in cgk.json("import", log)


def test_forgetting_tells_what_is_gone_in_json(cgk: Runner) -> None:
    assert cgk.json("forget", "shop/fixing", "--yes") == {
        "deleted_pages": 14,
        "deleted_files": 0,
        "sessions": ["shop/fixing"],
        "handles": [],
    }


def test_a_progress_bar_is_shown_on_a_terminal_and_leaves_nothing(cgk: Runner) -> None:
    with OnTerminal(cgk.folder, "import", LOGS[0], env=places(cgk.folder)) as terminal:
        assert terminal.end() == 0
    assert "2 sessions: 16 pages added" in terminal.shown


def test_a_reader_that_has_seen_enough_ends_it(cgk: Runner) -> None:
    command = f"{' '.join(COMMAND)} expand p0 | true"
    done = subprocess.run(
        command,
        shell=True,
        cwd=cgk.folder,
        env=environment(cgk.folder, places(cgk.folder)),
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""


def test_a_full_disk_is_told(cgk: Runner) -> None:
    command = f"{' '.join(COMMAND)} expand p0 > /dev/full"
    options = {"cwd": cgk.folder, "env": environment(cgk.folder, places(cgk.folder)), "capture_output": True}
    done = subprocess.run(command, shell=True, text=True, check=False, **options)
    assert done.returncode == 2
    assert "standard output: it cannot be written to" in done.stderr


def test_a_long_path_is_shown_by_its_end(empty: Runner) -> None:
    path = f"/srv/{'deep/' * 20}export.py"
    read = {"id": "c", "type": "function", "function": {"name": "Read", "arguments": json.dumps({"file_path": path})}}
    (empty.folder / "log.json").write_text(
        json.dumps(
            [
                {"role": "assistant", "content": None, "tool_calls": [read]},
                {"role": "tool", "tool_call_id": "c", "content": "x = 1"},
            ]
        )
    )
    empty("import", "log.json")
    assert "/deep/deep/deep/export.py |" in empty("pages", "1").stdout
    assert path not in empty("pages", "1").stdout
