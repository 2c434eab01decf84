"""The commands about agents' sessions, as processes."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from context_gatekeeper.agent_pool import AgentPool
from tests.core.secret_samples import secret_samples
from tests.engine.agents import FIXING, SAMPLES
from tests.entrypoints.running import COMMAND, OnTerminal, Result, cgk_json, environment, error_line, run_cgk

LOGS = [SAMPLES / name for name in ("agents.jsonl", "claude_code.jsonl", "codex_bare.jsonl", "codex_rollout.jsonl")]
CLAUDE = "7d3e9a10-52b4-4f6c-9a01-c0ffee000001"
SECRET = next(sample.secret for sample in secret_samples() if sample.name == "github ghp")


def run(folder: Path, *arguments: object, stdin: str = "") -> Result:
    return run_cgk(folder, *arguments, env=places(folder), stdin=stdin)


def told(folder: Path, *arguments: object) -> dict[str, object]:
    return cgk_json(folder, *arguments, env=places(folder))


def places(folder: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a pool that holds the sample logs and one session of our own."""
    with AgentPool(tmp_path / "pages.db", sealed_folder=tmp_path / "sealed") as pool:
        pool.import_session(FIXING)
    (tmp_path / ".env").write_text(f"CGK_STORE={tmp_path / 'pages.db'}\nCGK_SEALED_FOLDER={tmp_path / 'sealed'}\n")
    return tmp_path


# -- import -------------------------------------------------------------------------------------


def test_sessions_come_in_once_by_default_into_the_users_data_folder(tmp_path: Path) -> None:
    dry = run(tmp_path, "import", *LOGS, "--dry-run")
    assert "6 sessions: 70 pages would be added" in dry.stdout
    assert not (tmp_path / "data").exists()
    first = run(tmp_path, "import", *LOGS)
    assert (first.returncode, first.stdout.splitlines()[-1]) == (0, "6 sessions: 70 pages added")
    assert f"| {CLAUDE}         | claude-code |     0 |    24 |     23 | new   |" in first.stdout
    assert (tmp_path / "data" / "context-gatekeeper" / "pages.db").is_file()
    assert "claude_code.jsonl: records of unknown types are skipped: 'hologram' 2" in first.stderr
    again = told(tmp_path, "import", *LOGS)
    assert (again["added_pages"], again["known_pages"], again["dry_run"]) == (0, 70, False)
    assert "unchanged" in run(tmp_path, "import", *LOGS, "--dry-run").stdout


def test_a_session_that_went_on_and_one_that_differs_are_told(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    for messages, state in (
        (talk, "new"),
        ([*talk, {"role": "user", "content": "more"}], "grown"),
        ([*talk, {"role": "user", "content": "less"}], "differs from 1 from p2 on"),
    ):
        log.write_text(json.dumps(messages))
        assert state in run(tmp_path, "import", log, "--store", "p.db").stdout
    run(tmp_path, "forget", "1~2", "--yes", "--store", "p.db")
    assert "unchanged, 4 deleted" in run(tmp_path, "import", log, "--store", "p.db").stdout


def test_a_broken_line_is_reported_with_its_number_and_skipped(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    lines = [
        json.dumps({"role": "user", "content": "hi"}),
        "{broken",
        json.dumps({"role": "assistant", "content": "yo"}),
    ]
    log.write_text("\n".join([*lines, *["{}", "[]", "7", "8"], json.dumps({"role": "user", "content": "x"})[:-9]]))
    result = run(tmp_path, "import", log, "--store", "p.db")
    assert "1 sessions: 4 pages added" in result.stdout
    assert "line 2" in result.stderr
    assert "more warnings; --verbose shows all" in result.stderr
    assert len(run(tmp_path, "import", log, "--store", "p.db", "--verbose").stderr.splitlines()) > 4


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
def test_a_bad_argument_is_one_line_and_makes_nothing(tmp_path: Path, arguments: tuple[object, ...], part: str) -> None:
    result = run(tmp_path, *arguments)
    assert part in error_line(result)
    assert list(tmp_path.rglob("*.db")) == []


def test_what_came_in_before_a_bad_file_stays_and_is_told(tmp_path: Path) -> None:
    result = run(tmp_path, "import", LOGS[0], tmp_path / "nothing", "--store", "p.db")
    assert result.returncode == 2
    assert "2 sessions: 16 pages added" in result.stdout
    assert result.stderr.startswith("error: ")
    assert told(tmp_path, "stats", "--store", "p.db")["sessions"] == 2


def test_secrets_are_told_sealed_and_given_back_to_the_owner(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(json.dumps([{"role": "user", "content": f"use {SECRET}"}]))
    assert "1 sessions: 2 pages added, secrets taken out of 1" in run(tmp_path, "import", log).stdout
    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("pages.db*"))
    assert SECRET.encode() not in stored
    assert run(tmp_path, "expand", "p0").stdout == f"use {SECRET}"
    assert SECRET not in run(tmp_path, "pages", "1").stdout + run(tmp_path, "recall", "use").stdout
    assert list((tmp_path / "config").rglob("*.sealed"))


# -- what there is ------------------------------------------------------------------------------


def test_pages_shows_a_row_for_each_page_with_its_handle(folder: Path) -> None:
    shown = run(folder, "pages", "fixing").stdout.splitlines()
    assert shown[0] == "shop/fixing"
    assert [cell.strip() for cell in shown[2].strip("|").split("|")] == [
        *("blocks", "kind", "from", "tool or file", "tokens", "handle", "marks", "begins with"),
    ]
    assert len(shown) == 4 + 14
    assert "superseded" in next(line for line in shown if "| p6 " in line)
    assert "| error " in next(line for line in shown if "| p10 " in line)
    files = told(folder, "pages", "shop/fixing", "--kind", "file")
    assert [page["path"] for page in files["pages"]] == ["/srv/shop/export.py"] * 2  # type: ignore[attr-defined]


def test_cards_quote_and_cite(folder: Path) -> None:
    shown = run(folder, "cards", "shop/fixing").stdout
    assert "=== t1 The order export is too slow, please fix it. (p0-p16) ===" in shown
    assert "- Never touch the schema. [p11]" in shown
    (card,) = told(folder, "cards", "shop/fixing")["cards"]  # type: ignore[misc]
    assert (card["stretch"], card["unverifiable"]) == ("p0-p16", 0)
    assert "give 40 or more" in error_line(run(folder, "cards", "fixing", "--tokens", "5"))


def test_inspect_lists_sessions_and_adds_up_one(folder: Path) -> None:
    assert "| shop/fixing | test   |    16 | /srv/shop |" in run(folder, "inspect").stdout
    assert told(folder, "inspect")["sessions"][0]["name"] == "shop/fixing"  # type: ignore[index]
    shown = run(folder, "inspect", "fixing").stdout
    assert "14 with 17 blocks" in shown
    assert "| /srv/shop/export.py |        2 | p15 " in shown
    values = told(folder, "inspect", "shop/fixing")
    assert values["totals"]["superseded"] == 1  # type: ignore[index]
    assert [task["task_id"] for task in values["tasks"]] == ["t1"]  # type: ignore[attr-defined]


def test_stats_add_up_the_pool(folder: Path) -> None:
    shown = run(folder, "stats").stdout
    assert "sessions     1" in shown
    assert "always sent  0 goals, 0 pins, 0 tokens" in shown
    stats = told(folder, "stats")
    assert stats["totals"]["pages"] == 14  # type: ignore[index]
    assert isinstance(stats["store_bytes"], int)


def test_a_part_of_a_name_is_enough_where_it_names_one_session(folder: Path) -> None:
    run(folder, "import", LOGS[1])
    assert "2 sessions have it in their names; take one of 7d3e9a10" in error_line(run(folder, "pages", "c0ffee"))
    assert run(folder, "pages", CLAUDE).returncode == 0
    assert "no such agent session" in error_line(run(folder, "pages", "zebra"))
    assert "no such agent session" in error_line(run(folder, "pages", ""))


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


def test_a_handle_gives_the_original_bytes_and_nothing_else(folder: Path) -> None:
    odd = "half \ud83d of a pair, NUL \0, CR LF\r\n缓存 without a line end"
    log = folder / "odd.json"
    log.write_text(json.dumps([{"role": "user", "content": odd}]))
    run(folder, "import", log)
    handle = told(folder, "pages", "1")["pages"][0]["handle"]  # type: ignore[index]
    expected = odd.encode("utf-8", "surrogatepass")
    assert raw(folder, "expand", handle) == expected
    assert raw(folder, "expand", "p0", "--session", "1") == expected
    assert raw(folder, "expand", handle, "--chars", "5-6") == "\ud83d".encode("utf-8", "surrogatepass")
    assert raw(folder, "expand", handle, "--lines", "2") == "缓存 without a line end".encode()
    assert raw(folder, "expand", handle, "--lines", "1-") == expected
    assert raw(folder, "expand", f"{handle}#L1-1") == expected.split(b"\n")[0] + b"\n"
    printed = told(folder, "expand", handle)
    assert printed["text"] == odd
    assert (
        hashlib.sha256(str(printed["text"]).encode("utf-8", "surrogatepass")).digest()
        == hashlib.sha256(expected).digest()
    )


def test_a_pattern_gives_the_lines_around_it(folder: Path) -> None:
    shown = run(folder, "expand", "p10", "--pattern", "TypeError").stdout
    assert shown.splitlines()[0] == "[lines 1-3]"
    assert "[line 1]" in run(folder, "expand", "p0", "--pattern", "m.nd", "--regex").stdout
    nothing = run(folder, "expand", "p10", "--pattern", "zebra")
    assert (nothing.stdout, nothing.stderr) == ("", "note: the pattern occurs nowhere in it\n")
    assert told(folder, "expand", "p10", "--pattern", "TypeError")["slices"][0]["first_line"] == 1  # type: ignore[index]


def test_an_expansion_may_be_a_private_file(folder: Path) -> None:
    path = Path(run(folder, "expand", "p0", "--file").stdout.strip())
    assert path.read_text() == "You mend shops."
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()


def test_on_a_terminal_an_expansion_steers_nothing(folder: Path) -> None:
    log = folder / "odd.json"
    log.write_text(json.dumps([{"role": "user", "content": "\x1b[2Jclear\n"}]))
    run(folder, "import", log)
    with OnTerminal(folder, "expand", "p0", "--session", "1", env=places(folder)) as terminal:
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
        (("p0", "--lines", "5-2"), "before line 5"),
        (("p0", "--lines", "1", "--chars", "1-2"), "more than one of them"),
        (("p0", "--pattern", "("), "no lines"),
        (("p0", "--pattern", "(", "--regex"), "pattern"),
        (("p0", "--session", "zebra"), "no such agent session"),
    ],
)
def test_what_cannot_be_expanded_is_one_line(folder: Path, arguments: tuple[str, ...], part: str) -> None:
    result = run(folder, "expand", *arguments)
    if part == "no lines":
        assert (result.returncode, result.stdout) == (0, "")
    else:
        assert part in error_line(result)


def test_recall_prints_one_fenced_block(folder: Path) -> None:
    shown = run(folder, "recall", "generator subscriptable").stdout.splitlines()
    assert shown[0].startswith("<recalled-")
    assert shown[-1] == shown[0].replace("<", "</")
    result = told(folder, "recall", "generator subscriptable", "--limit", "1", "--session", "fixing")
    assert [page["session"] for page in result["pages"]] == ["shop/fixing"]  # type: ignore[attr-defined]
    nothing = run(folder, "recall", "zzzunknown")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "note: nothing was found\n")
    assert "limit" in error_line(run(folder, "recall", "x", "--limit", "0"))


# -- goals, pins, forgetting --------------------------------------------------------------------


def test_goals_are_set_listed_and_done(folder: Path) -> None:
    assert "g1 set" in run(folder, "goal", "set", "Ship the export.").stdout
    assert told(folder, "goal", "set", "修好登录")["goal_id"] == "g2"
    assert "g1 is done" in run(folder, "goal", "done", "g1").stdout
    assert told(folder, "goal", "done", "g1")["is_done"] is True
    shown = run(folder, "goal").stdout
    assert "| g1   | done   |" in shown
    assert run(folder, "goal", "list").stdout == shown
    assert [goal["is_done"] for goal in told(folder, "goal", "list")["goals"]] == [True, False]  # type: ignore[attr-defined]
    assert "there is no such goal" in error_line(run(folder, "goal", "done", "g9"))
    assert "it is blank" in error_line(run(folder, "goal", "set", " "))


def test_a_store_may_be_named_before_or_behind_the_command_of_goal(tmp_path: Path) -> None:
    assert run(tmp_path, "goal", "--store", "one.db", "set", "first").returncode == 0
    assert run(tmp_path, "goal", "set", "second", "--store", "one.db").returncode == 0
    assert len(told(tmp_path, "goal", "--store", "one.db")["goals"]) == 2  # type: ignore[arg-type]
    assert told(tmp_path, "goal", "--store", "absent.db")["goals"] == []
    assert not (tmp_path / "absent.db").exists()


def test_pins_are_set_listed_removed_and_bounded(folder: Path) -> None:
    assert "shop/fixing p0 pinned" in run(folder, "pin", "p0").stdout
    assert told(folder, "pin", "p6#L1", "--session", "fixing")["handle"] == "shop/fixing p6#L1"
    assert "| shop/fixing p0    |" in run(folder, "pin").stdout
    assert len(told(folder, "pin")["pins"]) == 2  # type: ignore[arg-type]
    assert "p0 is not pinned any more" in run(folder, "pin", "p0", "--remove").stdout
    assert told(folder, "pin", "p6#L1", "--remove")["resident_tokens"] == 0
    assert "nothing is pinned" in error_line(run(folder, "pin", "p0", "--remove"))
    log = folder / "long.json"
    log.write_text(json.dumps([{"role": "user", "content": "line\n" * 30_000}]))
    run(folder, "import", log)
    assert "it alone has" in error_line(run(folder, "pin", "p0", "--session", "1"))


def test_forgetting_asks_and_deletes_for_good(folder: Path) -> None:
    assert "add --yes" in error_line(run(folder, "forget", "shop/fixing"))
    handle = told(folder, "pages", "fixing")["pages"][0]["handle"]  # type: ignore[index]
    assert "no such page" in error_line(run(folder, "forget", "page:aaaaaaaaaaaaaaaa", "--yes"))
    assert f"1 pages deleted for good: {handle}" in run(folder, "forget", handle, "--yes").stdout
    with OnTerminal(folder, "forget", "shop/fixing", env=places(folder)) as terminal:
        terminal.read_until("Delete 13 pages for good (shop/fixing)? [y/N]: ")
        terminal.write("n\n")
        assert terminal.end() == 2
        assert "nothing was deleted" in terminal.shown
    with OnTerminal(folder, "forget", "fixing", env=places(folder)) as terminal:
        terminal.read_until("[y/N]: ")
        terminal.write("y\n")
        assert terminal.end() == 0
    assert told(folder, "inspect")["sessions"] == []
    assert b"too slow" not in (folder / "pages.db").read_bytes()


def test_forgetting_tells_what_is_gone_in_json(folder: Path) -> None:
    assert told(folder, "forget", "fixing", "--yes") == {
        "deleted_pages": 14,
        "sessions": ["shop/fixing"],
        "handles": [],
    }


def test_a_progress_bar_is_shown_on_a_terminal_and_leaves_nothing(folder: Path) -> None:
    with OnTerminal(folder, "import", LOGS[0], env=places(folder)) as terminal:
        assert terminal.end() == 0
    assert "2 sessions: 16 pages added" in terminal.shown


def test_a_reader_that_has_seen_enough_ends_it(folder: Path) -> None:
    command = f"{' '.join(COMMAND)} expand p0 | true"
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment(folder, places(folder)), capture_output=True, check=False
    )
    assert done.stderr == b""
