"""Every test that takes ``store`` runs on every implementation of `PageStore`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from context_gatekeeper.ports import PageStore
from context_gatekeeper.stores import open_store

STORES = ("memory", "sqlite")


def open_kind(kind: str, folder: Path) -> PageStore:
    return open_store("memory:" if kind == "memory" else folder / "pages.db")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PageStore]:
    opened = open_kind(request.param, tmp_path)
    yield opened
    opened.close()
