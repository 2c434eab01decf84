"""Settings and where they come from."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from context_gatekeeper.config import Config, Origin, load_config, read_env_file
from context_gatekeeper.errors import ConfigError


def load(folder: Path, env: dict[str, str] | None = None, **flags: object) -> Config:
    return load_config(flags, environ=env or {}, folder=folder)


def test_defaults_are_those_of_the_documents(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert (config.budget, config.profile, config.store, config.provider) == (4000, "strict", None, "minimax")
    assert {setting.origin for setting in config.origins.values()} == {Origin.DEFAULT}


def test_each_source_beats_the_weaker_ones(tmp_path: Path) -> None:
    (tmp_path / "context-gatekeeper.toml").write_text('budget = 1\nprofile = "t"\nmodel = "t"\nsession = "t"\n')
    (tmp_path / ".env").write_text("CGK_PROFILE=d\nCGK_MODEL=d\nCGK_SESSION=d\n")
    config = load(tmp_path, {"CGK_MODEL": "e", "CGK_SESSION": "e"}, session="f", budget=None)
    assert (config.budget, config.profile, config.model, config.session) == (1, "d", "e", "f")
    origins = {name: config.origins[name].origin.value for name in ("budget", "profile", "model", "session", "store")}
    assert origins == {"budget": "file", "profile": "file", "model": "env", "session": "flag", "store": "default"}
    assert config.origins["session"].source == "--session"


def test_keys_are_neither_shown_nor_listed(tmp_path: Path) -> None:
    config = load(tmp_path, {"MINIMAX_API_KEY": "sk-one", "CGK_API_KEY": "sk-two"})
    assert (config.secrets["MINIMAX_API_KEY"], config.api_key) == ("sk-one", "sk-two")
    assert "sk-" not in repr(config) + repr(config.origins)


def test_the_environment_beats_env_files_for_keys_and_empty_values_count_as_missing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MINIMAX_API_KEY=file\nOPENAI_API_KEY=file\nANTHROPIC_API_KEY=\n")
    secrets = load(tmp_path, {"MINIMAX_API_KEY": "env", "OPENAI_API_KEY": ""}).secrets
    assert dict(secrets) == {"MINIMAX_API_KEY": "env", "OPENAI_API_KEY": "file"}


def test_what_hooks_are_told_is_no_setting_and_stops_nobody(tmp_path: Path) -> None:
    assert load(tmp_path, {"CGK_DEBUG": "1", "CGK_GATEWAY_URL": "http://127.0.0.1:8787", "CGK_BUDGET": "3"}).budget == 3
    (tmp_path / ".env").write_text("CGK_DEBUG=1\n")
    assert load(tmp_path).budget == 4000


def test_a_config_is_frozen(tmp_path: Path) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(tmp_path).budget = 5  # type: ignore[misc]


def test_other_programs_variables_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DATABASE_URL=x\n")
    assert load(tmp_path, {"PATH": "/bin"}) == load(tmp_path)


def test_a_named_toml_file_is_used_instead_of_the_folders(tmp_path: Path) -> None:
    (tmp_path / "context-gatekeeper.toml").write_text("budget = 1\n")
    other = tmp_path / "other.toml"
    other.write_text("budget = 2\n")
    assert load(tmp_path, {"CGK_CONFIG": str(other)}).budget == 2


@pytest.mark.parametrize(
    ("toml", "cause"),
    [
        ("bugdet = 5", "did you mean budget?"),
        ("zzz = 5", "use one of budget"),
        ("budget = 5.5", "is not a whole number"),
        ("budget = true", "is not a whole number"),
        ("profile = 5", "5 is no text"),
        ("timeout = 0", "is not above 0"),
        ("timeout = inf", "is not above 0"),
        ("budget = ", "it is no readable TOML"),
    ],
)
def test_a_bad_toml_file_is_named_with_its_cause(tmp_path: Path, toml: str, cause: str) -> None:
    path = tmp_path / "context-gatekeeper.toml"
    path.write_text(toml + "\n")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert str(path) in str(caught.value)
    assert cause in str(caught.value)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("K=plain", "plain"),
        ("export K=plain", "plain"),
        ("  K = spaced  ", "spaced"),
        ("K='quoted # no comment'", "quoted # no comment"),
        ('K="quoted" # comment', "quoted"),
        ("K=value # comment", "value"),
        ("K=with#hash", "with#hash"),
        ("K=a=b", "a=b"),
        ("K=你的key", "你的key"),
        ("K=", ""),
        ("K= # only a comment", ""),
        ("K='open", "'open"),
        ("K=one\nK=two", "two"),
        ("\ufeffK=marked", "marked"),
        ("# K=no\n\nK=yes\r", "yes"),
    ],
)
def test_env_files_are_read_as_people_write_them(tmp_path: Path, line: str, value: str) -> None:
    path = tmp_path / ".env"
    path.write_text(line, "utf-8", newline="")
    assert read_env_file(path) == {"K": value}


def test_a_broken_line_of_an_env_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("A=1\nnonsense\n")
    with pytest.raises(ConfigError, match=r"\.env, line 2"):
        read_env_file(path)


def test_an_unknown_setting_in_an_env_file_is_named_with_the_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CGK_MODLE=x\n")
    with pytest.raises(ConfigError, match="did you mean CGK_MODEL") as caught:
        load(tmp_path)
    assert str(tmp_path / ".env") in caught.value.thing


def test_an_unreadable_env_file_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path)


def test_an_env_file_of_another_program_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "server.port=80\nmy-name='x'\nPEM=\"-----BEGIN\nnonsense\n# kept\n-----END\" # a key\nCGK_BUDGET=7\nOPEN='\n"
    )
    assert load(tmp_path).budget == 7
    assert read_env_file(tmp_path / ".env") == {
        "server.port": "80",
        "my-name": "x",
        "PEM": "-----BEGIN\nnonsense\n# kept\n-----END",
        "CGK_BUDGET": "7",
        "OPEN": "'",
    }


@pytest.mark.parametrize("line", ["NAME", "=x", "A B=c", "'A'=c", "NAME: value", "a" * 100_000])
def test_a_line_without_a_name_and_a_value_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / ".env").write_text(f"A=1\n{line}\n")
    with pytest.raises(ConfigError, match=r"\.env, line 2: it is not NAME=value") as refusal:
        load(tmp_path)
    assert len(str(refusal.value)) < 300


def test_a_store_in_the_home_folder_is_found_without_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "context-gatekeeper.toml").write_text('store = "~/talk.db"\n')
    assert load(tmp_path).store == str(tmp_path / "talk.db")
    assert load(tmp_path, {"CGK_STORE": "~/other.db"}).store == str(tmp_path / "other.db")
    assert load(tmp_path, {"CGK_STORE": "a~b.db"}).store == "a~b.db"
