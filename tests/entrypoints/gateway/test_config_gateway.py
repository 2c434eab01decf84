"""Settings of the gateway: where they come from, what is refused and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.config import load_config
from context_gatekeeper.config_gateway import BUILT_IN_UPSTREAMS, GatewayConfig, Upstream, load_gateway_config
from context_gatekeeper.errors import ConfigError


def load(folder: Path, toml: str = "", env: dict[str, str] | None = None, **flags: Any) -> GatewayConfig:
    if toml:
        (folder / "context-gatekeeper.toml").write_text(toml)
    return load_gateway_config(flags, environ=env or {}, folder=folder)


def test_without_settings_it_is_this_machine_alone(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert (config.host, config.port, config.token, config.shadow, config.off) == ("127.0.0.1", 8787, "", False, False)
    assert set(config.upstreams) == {"anthropic", "openai", "deepseek", "minimax", "gemini"}
    assert config.key_file.parent == config.off_file.parent == config.folder


def test_later_sources_are_stronger(tmp_path: Path) -> None:
    toml = "[gateway]\nport = 1\nshadow = true\nidle_seconds = 5\nallowed_hosts = ['a', 'b']\ntrust_env = true\n"
    (tmp_path / ".env").write_text("CGK_GATEWAY_PORT=2\nCGK_GATEWAY_TOKEN=secret\nCGK_GATEWAY_ALLOWED_ORIGINS=x, y\n")
    config = load(tmp_path, toml, {"CGK_GATEWAY_PORT": "3"})
    assert (config.port, config.shadow, config.idle_seconds, config.token) == (3, True, 5.0, "secret")
    assert (config.allowed_hosts, config.allowed_origins, config.trust_env) == (("a", "b"), ("x", "y"), True)
    assert load(tmp_path, toml, {"CGK_GATEWAY_PORT": "3"}, port=4, shadow=None).port == 4


@pytest.mark.parametrize(("value", "is_off"), [("off", True), ("OFF", True), ("0", True), ("on", False), ("", False)])
def test_the_environment_is_a_kill_switch(tmp_path: Path, value: str, is_off: bool) -> None:
    assert load(tmp_path, env={"CGK_GATEWAY": value}).off is is_off


def test_other_commands_are_not_disturbed(tmp_path: Path) -> None:
    (tmp_path / "context-gatekeeper.toml").write_text("budget = 7\n[gateway]\nport = 1\n")
    environ = {"CGK_GATEWAY": "off", "CGK_GATEWAY_PORT": "3"}
    assert load_config(environ=environ, folder=tmp_path).budget == 7


def test_the_token_is_not_shown(tmp_path: Path) -> None:
    assert "s3cret" not in repr(load(tmp_path, token="s3cret"))


def test_one_upstream_for_everything_has_a_name_of_its_own(tmp_path: Path) -> None:
    config = load(tmp_path, upstream="http://127.0.0.1:9/v1/")
    assert config.upstreams["default"] == Upstream("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1")
    assert config.upstreams["openai"] == BUILT_IN_UPSTREAMS["openai"]


def test_upstreams_are_added_and_changed(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        [gateway.upstreams.local]
        url = "http://127.0.0.1:8000/v1"
        [gateway.upstreams.minimax]
        url = "https://api.minimaxi.com/v1"
        anthropic_url = "https://api.minimaxi.com/anthropic"
        [gateway.upstreams.openai]
        prices = "gpt-5"
        [gateway.planner_settings]
        policy = "careful"
        """,
    )
    local = "http://127.0.0.1:8000/v1"
    assert config.upstreams["local"] == Upstream(local, local)
    assert config.upstreams["minimax"].anthropic_url == "https://api.minimaxi.com/anthropic"
    assert config.upstreams["openai"] == Upstream("https://api.openai.com/v1", prices="gpt-5")
    assert config.planner_settings == {"policy": "careful"}


@pytest.mark.parametrize(
    "url",
    [
        "api.example.org", "ftp://x/", "file:///etc/passwd", "http://", "http://user:pass@x/", "http://x/?a=1",
        "http://x/#a", "http://x:0/", "http://x:99999/", "http://[::1", "http://x y/", "http://x/\n", "",
    ],
)  # fmt: skip
def test_an_upstream_is_a_plain_address(tmp_path: Path, url: str) -> None:
    """T13."""
    with pytest.raises(ConfigError, match="no plain http or https address") as error:
        load(tmp_path, f"[gateway.upstreams.x]\nurl = {url!r}\n".replace("\\n", "\\u000a").replace("'", '"'))
    assert "pass" not in str(error.value)
    if url:
        with pytest.raises(ConfigError, match="--upstream"):
            load(tmp_path / "none", upstream=url)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("gateway = 3", "no table; write \\[gateway\\]"),
        ("[gateway]\nprot = 1", "did you mean port"),
        ("[gateway]\nport = 'x'", "'x' is not a whole number"),
        ("[gateway]\nport = -1", "whole number"),
        ("[gateway]\nport = true", "whole number"),
        ("[gateway]\nport = 1.5", "whole number"),
        ("[gateway]\nidle_seconds = 0", "seconds above 0"),
        ("[gateway]\nidle_seconds = inf", "seconds above 0"),
        ("[gateway]\nidle_seconds = true", "seconds above 0"),
        ("[gateway]\nshadow = 'maybe'", "on or off"),
        ("[gateway]\nshadow = 1", "on or off"),
        ("[gateway]\nhost = 1", "text in quotes"),
        ("[gateway]\nallowed_hosts = 1", "list of names"),
        ("[gateway]\nallowed_hosts = [1]", "list of names"),
        ("[gateway]\nupstreams = 1", "no table"),
        ("[gateway.upstreams]\nx = 1", "no table"),
        ("[gateway.upstreams.x]\nuri = 'http://x'", "did you mean url"),
        ("[gateway.upstreams.x]\nurl = 1", "put it in quotes"),
        ("[gateway.upstreams.x]\nprices = 'a'", "it has no address"),
        ("[gateway]\nplanner_settings = 1", "no table"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, toml)


def test_variables_and_flags_are_checked_as_well(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CGK_GATEWAY_PROT: there is no such setting"):
        load(tmp_path, env={"CGK_GATEWAY_PROT": "1"})
    with pytest.raises(ConfigError, match="--port: 'x' is not a whole number"):
        load(tmp_path, port="x")


@pytest.mark.parametrize("value", ["on", "1", "true", "YES"])
def test_words_for_yes_are_understood(tmp_path: Path, value: str) -> None:
    assert load(tmp_path, env={"CGK_GATEWAY_SHADOW": value}).shadow


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", ""])
def test_an_open_address_needs_a_token(tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigError, match="others than this machine could connect; give a secret with --token"):
        load(tmp_path, host=host)
    assert load(tmp_path, host=host, token="s").host == host


@pytest.mark.parametrize("host", ["localhost", "::1", "127.0.0.1"])
def test_this_machine_needs_none(tmp_path: Path, host: str) -> None:
    assert load(tmp_path, host=host).host == host
