"""No worker process outlives its test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stores.processes import end_all


@pytest.fixture(autouse=True)
def no_worker_outlives_its_test() -> Iterator[None]:
    yield
    end_all()
