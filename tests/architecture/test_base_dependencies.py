"""The base install is pure Python and makes no network call (goal U5)."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import Distribution, distribution

import pytest

from tests.architecture.tree import module_name, python_files

DISTRIBUTION = "context-gatekeeper"
COMPILED = (".so", ".pyd", ".dylib", ".dll", ".a")
EXPECTED_DIRECT = {"click", "platformdirs", "rich", "snowballstemmer"}


def base_requirements(found: Distribution) -> set[str]:
    """Names of what a distribution needs without any extra, on this platform."""
    from packaging.requirements import Requirement

    parsed = [Requirement(text) for text in found.requires or ()]
    return {one.name for one in parsed if one.marker is None or one.marker.evaluate({"extra": ""})}


def base_closure() -> dict[str, Distribution]:
    found: dict[str, Distribution] = {}
    waiting = base_requirements(distribution(DISTRIBUTION))
    while waiting:
        name = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key not in found:
            found[key] = distribution(name)
            waiting |= base_requirements(found[key])
    return found


def compiled_files(found: Distribution) -> list[str]:
    return [str(path) for path in found.files or () if path.suffix in COMPILED]


def test_the_base_install_asks_for_four_packages() -> None:
    assert base_requirements(distribution(DISTRIBUTION)) == EXPECTED_DIRECT


def test_no_package_of_the_base_install_holds_a_compiled_file() -> None:
    closure = base_closure()
    assert set(closure) >= EXPECTED_DIRECT
    assert {name: compiled_files(found) for name, found in closure.items() if compiled_files(found)} == {}


def test_a_compiled_package_would_be_seen() -> None:
    assert compiled_files(distribution("coverage")) or compiled_files(distribution("numpy"))


WATCHED = """
import sys

def watch(event, arguments):
    if event.startswith("socket.") and event not in ("socket.__new__",):
        raise SystemExit(f"network: {event} {arguments}")
    if event in ("urllib.Request", "http.client.connect", "ftplib.connect", "smtplib.connect"):
        raise SystemExit(f"network: {event} {arguments}")

sys.addaudithook(watch)
"""


def run_watched(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WATCHED + code], capture_output=True, text=True, check=False)


def test_importing_any_module_opens_no_connection() -> None:
    modules = [module_name(path) for path in python_files("src") if path.name != "__main__.py"]
    done = run_watched(f"import importlib\nfor name in {modules!r}:\n    importlib.import_module(name)\n")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_whole_conversation_opens_no_connection() -> None:
    done = run_watched(
        "from context_gatekeeper import ContextGatekeeper\n"
        "gate = ContextGatekeeper(4000, token_counter='exact')\n"
        "gate.add_turn('Redis 分布式锁怎么实现？', '用 SET NX EX。')\n"
        "assert gate.select('Redis 分布式锁的过期时间')\n"
        "print(gate.build_prompt('继续'))\n"
    )
    assert done.returncode == 0, done.stderr


def test_the_watch_sees_a_connection() -> None:
    done = run_watched("import socket\nsocket.create_connection(('127.0.0.1', 9))\n")
    assert "network: socket." in done.stderr


@pytest.mark.parametrize("heavy", ["sqlite3", "click", "rich", "httpx", "snowballstemmer", "asyncio", "logging"])
def test_importing_the_package_alone_loads_no_heavy_module(heavy: str) -> None:
    code = "before = set(sys.modules); import context_gatekeeper; "
    code += f"print({heavy!r} in set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-S", "-c", _with_path(code)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def _with_path(code: str) -> str:
    """`-S` keeps site hooks of the environment out; the path is passed on by hand."""
    return f"import sys; sys.path[:] = {sys.path!r}; {code}"
