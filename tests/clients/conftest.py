"""Each client once beside the gateway and once through it; what came of it is kept for all tests.

Without ``--all-clients`` (`make clients`) only those run that the ``dev`` extra installs; the others are skipped.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clients.cases import CLIENTS, Client
from tests.clients.runs import Recording, record_conversation

Recorded = Callable[[Client, str], Recording]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Known only where this folder is named on the command line."""
    parser.getgroup("clients").addoption(
        "--all-clients", action="store_true", help="run every client that is installed"
    )


@pytest.fixture(scope="session")
def runs_all(request: pytest.FixtureRequest) -> bool:
    """Whether `make clients` is asked for."""
    return bool(request.config.getoption("--all-clients", default=False))


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest, runs_all: bool) -> Client:
    """Every client that is installed."""
    chosen: Client = request.param
    reason = chosen.missing() if runs_all or chosen.is_light else f"{chosen.name}: run by `make clients`"
    if reason:
        pytest.skip(reason)
    return chosen


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The conversation of a client by a way, held once."""
    kept: dict[tuple[str, str], Recording] = {}

    def get(client: Client, way: str) -> Recording:
        key = (client.name, way)
        if key not in kept:
            root = tmp_path_factory.getbasetemp() / "clients" / client.name
            kept[key] = record_conversation(client, way, root)
        return kept[key]

    return get
