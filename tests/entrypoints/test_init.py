"""``cgk init`` and ``cgk uninstall`` on real settings files."""

from __future__ import annotations

import json
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.entrypoints.clients.codex import LIMIT_NOTE
from context_gatekeeper.entrypoints.clients.wanted import is_our_hook
from tests.entrypoints.hooks.clients import environ_of
from tests.entrypoints.running import OnTerminal, Result, error_line, run_cgk

GATEWAY = "http://127.0.0.1:8787"
SETTINGS = """{
    "model": "opus",
    "env": {"LANG": "de", "X": "\\u00e4"},
    "permissions": {
        "allow": ["Bash(ls:*)"]
    },
    "hooks": {
        "PostToolUse": [
            {"matcher": "Edit", "hooks": [{"type": "command", "command": "my-linter"}]}
        ]
    }
}
"""
TOML = '# mine\nmodel = "gpt-5"  # the good one\n\n[mcp_servers.docs]\ncommand = "docs"\n'


def cgk(home: Path, *arguments: object, env: Mapping[str, str] | None = None, stdin: str = "") -> Result:
    """``cgk`` whose user's folders all lie in ``home``."""
    folders = {name: value for name, value in environ_of(home).items() if name.startswith("XDG_")}
    return run_cgk(home, *arguments, env={**folders, **(env or {})}, stdin=stdin)


def done(home: Path, *arguments: object, env: Mapping[str, str] | None = None) -> Result:
    result = cgk(home, *arguments, "--yes", env=env)
    assert result.returncode == 0, result.stderr
    return result


def claude_file(home: Path, text: str | None = SETTINGS) -> Path:
    path = home / ".claude" / "settings.json"
    if text is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return path


def read(path: Path) -> dict[str, Any]:
    """The JSON object of a file."""
    parsed: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return parsed


def files_of(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}


# -- Claude Code ----------------------------------------------------------------------------------


def test_init_shows_a_diff_and_adds_hooks_beside_the_users_own(tmp_path: Path) -> None:
    path = claude_file(tmp_path)

    shown = done(tmp_path, "init", "claude").stdout

    settings = read(path)
    assert shown.startswith(f"--- {path}\n+++ {path}\n")
    assert '+                        "command": ' in shown
    assert set(settings["hooks"]) == {"PostToolUse", "SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"}
    assert (
        settings["hooks"]["PostToolUse"][0]
        == read(path.with_name("settings.json.cgk-backup"))["hooks"]["PostToolUse"][0]
    )
    (ours,) = settings["hooks"]["PostToolUse"][1]["hooks"]
    assert is_our_hook(ours["command"])
    assert settings["permissions"]["allow"] == ["Bash(ls:*)", f"Read(/{tmp_path}/data/context-gatekeeper/pages/**)"]
    assert "ANTHROPIC_BASE_URL" not in settings["env"]


def test_everything_else_keeps_its_bytes(tmp_path: Path) -> None:
    path = claude_file(tmp_path)

    done(tmp_path, "init", "claude", "--gateway", GATEWAY)

    text = path.read_text("utf-8")
    assert f'    "env": {{"LANG": "de", "X": "\\u00e4", "ANTHROPIC_BASE_URL": "{GATEWAY}"}},\n' in text
    assert '            {"matcher": "Edit", "hooks": [{"type": "command", "command": "my-linter"}]}' in text


@pytest.mark.parametrize(
    "options", [(), ("--gateway", GATEWAY), ("--mcp", "--no-hooks"), ("--mcp", "--gateway", GATEWAY)]
)
@pytest.mark.parametrize("client", ["claude", "codex", "opencode"])
@pytest.mark.parametrize("scope", ["--user", "--project"])
@pytest.mark.parametrize("is_there", [True, False])
def test_uninstall_leaves_every_file_as_it_was_byte_for_byte(
    tmp_path: Path, options: tuple[str, ...], client: str, scope: str, is_there: bool
) -> None:
    if client == "opencode":
        options = (*options, "--mcp")
    before = {}
    if is_there:
        for name, text in (
            (".claude/settings.json", SETTINGS),
            (".claude/settings.local.json", '{"hooks": {}}'),
            (".claude.json", '{\n\t"numStartups": 3,\n\t"mcpServers": {}\n}'),
            (".mcp.json", "{}"),
            (".codex/config.toml", TOML.removesuffix("\n")),
            (".codex/hooks.json", '{"hooks":{"Stop":[]}}'),
            ("opencode.json", '{\r\n  "theme": "dark"\r\n}\r\n'),
            ("config/opencode/opencode.json", "\n"),
        ):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            before[name] = text.encode()

    done(tmp_path, "init", client, scope, *options)
    assert files_of(tmp_path) - set(before)
    done(tmp_path, "uninstall", client, scope)

    assert {name: (tmp_path / name).read_bytes() for name in files_of(tmp_path)} == before


def test_a_second_init_changes_nothing(tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    done(tmp_path, "init", "claude", "--gateway", GATEWAY, "--mcp")
    first = path.read_bytes()

    assert done(tmp_path, "init", "claude", "--gateway", GATEWAY, "--mcp").stdout == "nothing to change\n"
    assert path.read_bytes() == first


def test_another_address_takes_the_place_of_ours(tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    done(tmp_path, "init", "claude", "--gateway", GATEWAY)
    done(tmp_path, "init", "claude", "--gateway", "http://127.0.0.1:9999/")

    assert read(path)["env"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9999"
    done(tmp_path, "uninstall", "claude")
    assert path.read_text("utf-8") == SETTINGS


def test_later_changes_of_the_users_stay(tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    done(tmp_path, "init", "claude", "--gateway", GATEWAY)
    text = path.read_text("utf-8").replace('"model": "opus"', '"model": "haiku"')
    path.write_text(text.replace('"LANG": "de"', '"LANG": "fr"'), "utf-8")

    done(tmp_path, "uninstall", "claude")

    assert path.read_text("utf-8") == SETTINGS.replace("opus", "haiku").replace('"de"', '"fr"')
    assert files_of(tmp_path) == {".claude/settings.json"}


def test_an_address_that_the_user_changed_since_is_his(tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    done(tmp_path, "init", "claude", "--gateway", GATEWAY)
    path.write_text(path.read_text("utf-8").replace(GATEWAY, "https://mine.example"), "utf-8")

    done(tmp_path, "uninstall", "claude")

    assert read(path)["env"]["ANTHROPIC_BASE_URL"] == "https://mine.example"


def test_a_hook_that_the_user_put_beside_ours_stays_with_it(tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    done(tmp_path, "init", "claude")
    settings = read(path)
    settings["hooks"]["SessionEnd"][0]["hooks"].append({"type": "command", "command": "say goodbye"})
    path.write_text(json.dumps(settings), "utf-8")

    done(tmp_path, "uninstall", "claude")

    assert list(read(path)["hooks"]) == ["PostToolUse", "SessionEnd"]


def test_an_address_of_the_users_own_is_not_written_over(tmp_path: Path) -> None:
    path = claude_file(tmp_path, '{"env": {"ANTHROPIC_BASE_URL": "https://proxy.example"}}')

    line = error_line(cgk(tmp_path, "init", "claude", "--gateway", GATEWAY, "--yes"))

    assert "ANTHROPIC_BASE_URL" in line
    assert "upstream" in line
    assert read(path) == {"env": {"ANTHROPIC_BASE_URL": "https://proxy.example"}}
    done(tmp_path, "init", "claude")
    done(tmp_path, "uninstall", "claude")
    assert read(path) == {"env": {"ANTHROPIC_BASE_URL": "https://proxy.example"}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n  // mine\n  "a": 1\n}', "comments"),
        ("[1]", "no JSON object"),
        ('{"hooks": []}', "no object"),
        ('{"hooks": {"SessionEnd": 3}}', "no list"),
        ('{"permissions": {"allow": {}}}', "no list"),
    ],
)
def test_a_file_that_cannot_be_edited_is_refused_and_left(tmp_path: Path, text: str, told: str) -> None:
    path = claude_file(tmp_path, text)

    assert told in error_line(cgk(tmp_path, "init", "claude", "--yes"))
    assert path.read_text("utf-8") == text


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    claude_file(tmp_path, "").write_bytes(b"\xff\xfe")

    assert "cannot be read" in error_line(cgk(tmp_path, "init", "claude", "--yes"))


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text(SETTINGS, "utf-8")
    real.chmod(0o640)
    path = claude_file(tmp_path, None)
    path.parent.mkdir()
    path.symlink_to(real)

    done(tmp_path, "init", "claude")

    assert path.is_symlink()
    assert "SessionEnd" in read(real)["hooks"]
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    done(tmp_path, "init", "claude")

    assert stat.S_IMODE(claude_file(tmp_path, None).stat().st_mode) == 0o600


def test_nothing_is_written_when_nobody_confirms(tmp_path: Path) -> None:
    path = claude_file(tmp_path)

    result = cgk(tmp_path, "init", "claude")

    assert result.returncode == 2
    assert "add --yes" in result.stderr
    assert path.read_text("utf-8") == SETTINGS
    assert files_of(tmp_path) == {".claude/settings.json"}


@pytest.mark.parametrize(("answer", "is_written"), [("y\n", True), ("n\n", False)])
def test_a_person_is_asked_after_the_diff(tmp_path: Path, answer: str, is_written: bool) -> None:
    path = claude_file(tmp_path)
    folders = {name: value for name, value in environ_of(tmp_path).items() if name.startswith("XDG_")}
    with OnTerminal(tmp_path, "init", "claude", env=folders) as terminal:
        assert "+++ " in terminal.read_until("?")
        terminal.write(answer)
        assert terminal.end() == (0 if is_written else 2)

    assert (path.read_text("utf-8") != SETTINGS) is is_written


def test_json_tells_the_files_and_the_diff(tmp_path: Path) -> None:
    path = claude_file(tmp_path)

    told = json.loads(done(tmp_path, "init", "claude", "--json").stdout)

    assert told["files"] == [str(path)]
    assert told["diff"][0][0] == f"--- {path}"
    assert json.loads(done(tmp_path, "init", "claude", "--json").stdout) == {"files": [], "diff": []}


def test_the_clients_own_folder_setting_is_followed(tmp_path: Path) -> None:
    done(tmp_path, "init", "claude", "--mcp", env={"CLAUDE_CONFIG_DIR": str(tmp_path / "c")})
    done(tmp_path, "init", "codex", env={"CODEX_HOME": str(tmp_path / "x")})

    assert {"c/settings.json", "c/.claude.json", "x/hooks.json"} <= files_of(tmp_path)


def test_the_server_of_tools_is_named_in_the_clients_own_way(tmp_path: Path) -> None:
    for client in ("claude", "codex", "opencode"):
        done(tmp_path, "init", client, "--mcp", "--no-hooks", "--project")

    claude = read(tmp_path / ".mcp.json")["mcpServers"]["cgk"]
    codex = tomllib.loads((tmp_path / ".codex/config.toml").read_text("utf-8"))["mcp_servers"]["cgk"]
    opencode = read(tmp_path / "opencode.json")["mcp"]["cgk"]
    command = [claude["command"], *claude["args"]]
    assert command == [codex["command"], *codex["args"]] == opencode["command"]
    assert command[-1] == "mcp"
    assert Path(command[0]).is_absolute()


# -- Codex ----------------------------------------------------------------------------------------


def test_codex_gets_a_provider_of_its_own_and_a_word_about_trust(tmp_path: Path) -> None:
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(TOML, "utf-8")

    result = done(tmp_path, "init", "codex", "--gateway", GATEWAY)

    parsed = tomllib.loads(path.read_text("utf-8"))
    assert parsed["model_provider"] == "cgk"
    assert parsed["model_providers"]["cgk"]["base_url"] == f"{GATEWAY}/v1"
    assert parsed["model_providers"]["cgk"]["supports_websockets"] is False
    assert TOML in path.read_text("utf-8")
    assert "trust" in result.stderr
    assert "PostToolUse" not in read(path.with_name("hooks.json"))["hooks"]
    assert LIMIT_NOTE not in result.stderr  # the gateway slims what Codex sends


def test_who_sets_up_hooks_of_codex_alone_is_told_what_they_cannot_do(tmp_path: Path) -> None:
    result = done(tmp_path, "init", "codex")

    hooks = read(tmp_path / ".codex" / "hooks.json")["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"}
    assert LIMIT_NOTE in " ".join(result.stderr.split())
    assert LIMIT_NOTE not in done(tmp_path, "init", "claude").stderr


def test_a_line_that_the_user_added_behind_our_block_stays(tmp_path: Path) -> None:
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(TOML, "utf-8")
    done(tmp_path, "init", "codex", "--gateway", GATEWAY)
    with path.open("a", encoding="utf-8") as file:
        file.write("[mcp_servers.more]\n")

    done(tmp_path, "uninstall", "codex")

    assert path.read_text("utf-8") == f"{TOML}[mcp_servers.more]\n"


@pytest.mark.parametrize(
    "text",
    [
        'model_provider = "azure"\n',
        '[model_providers.cgk]\nname = "mine"\n',
        '[mcp_servers.cgk]\ncommand = "x"\n',
        "= 3",
    ],
)
def test_what_the_user_has_in_our_place_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(text, "utf-8")

    assert "config.toml" in error_line(cgk(tmp_path, "init", "codex", "--gateway", GATEWAY, "--mcp", "--yes"))
    assert path.read_text("utf-8") == text


# -- opencode and arguments -------------------------------------------------------------------------


def test_opencodes_own_providers_get_the_address(tmp_path: Path) -> None:
    done(tmp_path, "init", "opencode", "--gateway", GATEWAY)

    providers = read(tmp_path / "config/opencode/opencode.json")["provider"]
    assert {name: one["options"]["baseURL"] for name, one in providers.items()} == {
        "anthropic": f"{GATEWAY}/v1",
        "openai": f"{GATEWAY}/v1",
    }


def test_a_file_of_opencodes_that_may_hold_comments_is_refused(tmp_path: Path) -> None:
    (tmp_path / "opencode.jsonc").write_text("{}", "utf-8")

    assert "opencode.jsonc" in error_line(cgk(tmp_path, "init", "opencode", "--mcp", "--project", "--yes"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("opencode", "--hooks"), "--hooks"),
        (("opencode",), "nothing is wanted"),
        (("claude", "--gateway", "nowhere"), "no address"),
        (("claude", "--gateway", "http://[::1"), "no address"),
        (("claude", "--gateway", "http://127.0.0.1:1/v1"), "no address"),
        (("claude", "--gateway", "http://gateway.example:8787"), "in the clear"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    assert told in error_line(cgk(tmp_path, "init", *arguments, "--yes"))
    assert files_of(tmp_path) == set()


def test_uninstall_without_anything_of_ours_changes_nothing(tmp_path: Path) -> None:
    claude_file(tmp_path)

    for client in ("claude", "codex", "opencode"):
        assert done(tmp_path, "uninstall", client).stdout == "nothing to change\n"
    assert claude_file(tmp_path, None).read_text("utf-8") == SETTINGS


def test_a_damaged_record_is_as_none(tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    done(tmp_path, "init", "claude", "--gateway", GATEWAY)
    record = tmp_path / "data" / "context-gatekeeper" / "installed.json"
    for damaged in ("{", "[]"):
        record.write_text(damaged, "utf-8")
        assert "no such" not in cgk(tmp_path, "uninstall", "claude").stderr
    done(tmp_path, "uninstall", "claude")

    assert read(path)["env"]["ANTHROPIC_BASE_URL"] == GATEWAY
    assert "SessionEnd" not in read(path)["hooks"]


def test_two_set_up_clients_are_taken_out_one_by_one(tmp_path: Path) -> None:
    done(tmp_path, "init", "claude", "--gateway", GATEWAY)
    done(tmp_path, "init", "opencode", "--gateway", GATEWAY)
    done(tmp_path, "uninstall", "claude")

    assert "provider" in read(tmp_path / "config/opencode/opencode.json")
    done(tmp_path, "uninstall", "opencode")
    assert files_of(tmp_path) == set()
