"""The measurement of the gateway: its keys, in a small run."""

from __future__ import annotations

import json

from click.testing import CliRunner

from benchmarks.__main__ import main


def test_the_command_prints_the_keys_of_the_contract_as_one_object() -> None:
    words = ["gateway", "--streams", "8", "--body-kb", "20", "--stream-seconds", "0.5", "--json"]
    result = CliRunner().invoke(main, words, prog_name="python -m benchmarks")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert {"added_first_byte_p50_ms", "added_first_byte_p99_ms", "errors", "rss_kb_per_stream"} <= set(printed)
    assert (printed["errors"], printed["streams"], printed["body_kb"]) == (0, 8, 20)
    assert printed["bypassed"] == 0, "a planner that is down measures nothing"
