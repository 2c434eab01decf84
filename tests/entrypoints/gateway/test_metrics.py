"""Figures in Prometheus' text form."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from context_gatekeeper import __version__
from context_gatekeeper.entrypoints.gateway.metrics import GatewayMetrics
from context_gatekeeper.entrypoints.gateway.routes import OWN_PATHS
from context_gatekeeper.entrypoints.hooks.running_gateway import RECALL_PATH
from tests.entrypoints.gateway.running import (
    DEADLINE_SECONDS,
    Received,
    UpstreamSide,
    ask,
    plain_answer,
    running_gateway,
    scripted_upstream,
)


def test_counters_are_kept_by_their_labels() -> None:
    metrics = GatewayMetrics()
    metrics.count("cgk_fail_open_total", where="late")
    metrics.count("cgk_fail_open_total", where="late")
    metrics.count("cgk_fail_open_total", where="dead")
    lines = metrics.text().splitlines()
    assert 'cgk_fail_open_total{where="dead"} 1' in lines
    assert 'cgk_fail_open_total{where="late"} 2' in lines
    assert "# TYPE cgk_fail_open_total counter" in lines


def test_histograms_count_from_the_bottom_up() -> None:
    metrics = GatewayMetrics()
    for seconds in (0.0005, 0.001, 0.03, 500.0):
        metrics.observe_seconds("cgk_ttfb_seconds", seconds)
    lines = metrics.text().splitlines()
    assert 'cgk_ttfb_seconds_bucket{le="0.001"} 2' in lines
    assert 'cgk_ttfb_seconds_bucket{le="0.05"} 3' in lines
    assert 'cgk_ttfb_seconds_bucket{le="120.0"} 3' in lines
    assert 'cgk_ttfb_seconds_bucket{le="+Inf"} 4' in lines
    assert "cgk_ttfb_seconds_sum 500.0315" in lines
    assert "cgk_ttfb_seconds_count 4" in lines


def test_figures_of_a_plan_are_summed_when_they_are_numbers() -> None:
    metrics = GatewayMetrics()
    metrics.add_figures({"prompt_tokens": 5, "append_only_tokens": 9, "saved_units": -1.5, "session": "s"})
    metrics.add_figures({"prompt_tokens": True, "append_only_tokens": "9", "saved_units": float("nan")})
    lines = metrics.text().splitlines()
    assert "cgk_prompt_tokens_total 5" in lines
    assert "cgk_append_only_tokens_total 9" in lines
    assert "cgk_saved_units -1.5" in lines


@pytest.mark.parametrize(
    ("name", "is_shown"),
    [
        ('cgk_tokens_saved_total{mechanism="slim"}', True),
        ('cgk_input_tokens_total{provider="anthropic",kind="cache_read"}', True),
        ('cgk_estimate_ratio{model="claude-opus-5-5"}', True),
        ("cgk_net_saved_usd_total", True),
        ('cgk_tokens_saved_total{session="s1"}', False),
        ('cgk_tokens_saved_total{mechanism="a",session="s1"}', False),
        ('cgk_x{mechanism="a\nb"}', False),
        ('cgk_x{mechanism="a"} 1\ncgk_y', False),
        ("other_total", False),
        (7, False),
    ],
)
def test_the_planner_adds_figures_without_sessions(name: str, is_shown: bool) -> None:
    assert (f"{name} 3" in GatewayMetrics().text({name: 3})) is is_shown


@pytest.mark.parametrize("amount", [True, "3", None])
def test_the_planner_adds_numbers_only(amount: object) -> None:
    assert "cgk_x" not in GatewayMetrics().text({"cgk_x": amount})
    assert "cgk_x" not in GatewayMetrics().text(["cgk_x"])


def test_a_running_gateway_tells_its_figures(tmp_path: Path) -> None:
    async def answer(_request: Received, side: UpstreamSide) -> None:
        await side.send(plain_answer(b"{}"))

    with scripted_upstream(answer) as upstream, running_gateway(upstream.url, folder=tmp_path) as gateway:
        ask(gateway.port, "/v1/messages", b'{"a":"long old text"}', {"X-Session-Id": "session-name"})
        ask(gateway.port, "/v1/models", method="GET")
        gateway.run(gateway.gateway.planner.status(DEADLINE_SECONDS))
        got = ask(gateway.port, "/metrics", method="GET")
        text = got.body.decode()
        assert (got.header("content-type") or "").startswith("text/plain; version=0.0.4")
        for line in (
            'cgk_requests_total{provider="default",route="messages",decision="plan"} 1',
            'cgk_requests_total{provider="default",route="other",decision="unchanged"} 1',
            "cgk_prompt_tokens_total 5",
            "cgk_schedule_seconds_count 1",
            "cgk_ttfb_seconds_count 2",
            "cgk_planner_starts_total 1",
            'cgk_tokens_saved_total{mechanism="slim"} 12',
        ):
            assert line in text.splitlines()
        assert "session" not in text
        stats = json.loads(ask(gateway.port, "/stats", method="GET").body)
        assert (stats["planner"], stats["version"], stats["status"]["calls"]) == ("up", __version__, 1)
        assert json.loads(ask(gateway.port, "/healthz", method="GET").body)["status"] == "ok"
        assert ask(gateway.port, "/healthz", b"{}").status == 405


def test_a_store_that_breaks_and_one_that_works_again_are_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    metrics = GatewayMetrics()
    for fault in ("", "StoreBusyError at /p.db", "StoreBusyError at /p.db", "StoreError at /p.db", "", ""):
        metrics.add_figures({"archive_fault": fault, "prompt_tokens": 1})
        metrics.add_figures({"archive_fault": 7})
        metrics.add_figures({})
        assert metrics.archive_fault == fault
    assert [record.getMessage() for record in caplog.records] == [
        "conversations cannot be stored (StoreBusyError at /p.db); they wait in memory",
        "conversations can be stored again",
    ]


@pytest.mark.parametrize("method", ["PROPFIND", "REPORT", "LINK", "MKCOL", "POST", "DELETE", "TRACE", "PATCH"])
@pytest.mark.parametrize("path", OWN_PATHS)
def test_pages_of_ours_go_upstream_under_no_method(tmp_path: Path, path: str, method: str) -> None:
    with running_gateway("http://127.0.0.1:1", folder=tmp_path) as gateway:
        got = ask(gateway.port, path, method=method)
        assert (got.status, got.header("allow")) == (405, "GET, HEAD")
        assert ask(gateway.port, RECALL_PATH, method=method).status != 502
