"""`cgk replay`: real sessions in, one comparison out; bad input named with its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.replay.axes import short_number
from tests.entrypoints.running import ROOT, OnTerminal, cgk_json, error_line, run_cgk

SESSION = ROOT / "tests" / "data" / "agents" / "claude_code_session.jsonl.gz"
MADE = ROOT / "tests" / "data" / "agents" / "agents.jsonl"
POLICY_KEYS = {
    "mean_prompt_tokens", "prompt_completion_ratio", "billed_vs_append_only", "faulting_call_share",
    "faulting_call_share_words", "hard_faulting_call_share", "evidence_coverage", "evidence_coverage_words",
    "extra_calls", "refetched_hot_pages", "other_task_share", "call200_vs_call6", "worst_session", "cache_read_share",
}  # fmt: skip
FEW = ("--policy", "mask-60k,clairvoyant-seen")


def made_session(name: str, calls: int) -> dict[str, Any]:
    """A session of `calls` model calls as a line of JSON Lines has it."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Count on."}]
    for number in range(calls):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}}
        messages.append({"role": "assistant", "content": f"Step {number}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "a listing " * 40})
    return {"id": name, "source": "made", "messages": messages}


def write_sessions(path: Path, *sessions: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(session) + "\n" for session in sessions))
    return path


def test_json_is_one_object_with_the_keys_of_the_contract(tmp_path: Path) -> None:
    printed = cgk_json(tmp_path, "replay", SESSION, *FEW)
    assert {
        "sessions", "calls", "policies", "expand_exact", "prefix_breaks_outside_epochs", "unverifiable_card_entries",
    } <= set(printed)  # fmt: skip
    assert list(printed["policies"]) == ["append-only", "mask-60k", "clairvoyant-seen"]
    for figures in printed["policies"].values():
        assert set(figures) >= POLICY_KEYS
        assert set(figures["worst_session"]) == {"billed_vs_append_only", "faulting_call_share"}
    assert printed["sessions"] == 1
    assert printed["calls"] >= 60
    assert printed["policies"]["append-only"]["billed_vs_append_only"] == 1.0


def test_the_comparison_has_a_row_for_each_policy_and_a_plot_in_plain_characters(tmp_path: Path) -> None:
    shown = run_cgk(tmp_path, "replay", SESSION, *FEW)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.isascii()
    for name in ("append-only", "mask-60k", "clairvoyant-seen"):
        assert sum(line.startswith(f"| {name} ") for line in shown.stdout.splitlines()) == 2
    assert "prompt tokens of a call" in shown.stdout
    assert "a append-only   b mask-60k   c clairvoyant-seen   * several" in shown.stdout
    assert "first token  estimated" in shown.stdout


def test_the_bills_stand_in_the_table_or_on_a_narrow_terminal_below(tmp_path: Path) -> None:
    sessions = write_sessions(tmp_path / "one.jsonl", made_session("one", 30))
    arguments = ("replay", sessions, "--policy", "ours,ours-frugal,auto-compact-160k", "--plot", "none")
    units = {name: one["billed_units"] for name, one in cgk_json(tmp_path, *arguments)["policies"].items()}
    shown = run_cgk(tmp_path, *arguments).stdout
    assert [cell.strip() for cell in shown.splitlines()[2].split("|")][1:4] == ["policy", "cheaper", "bill"]
    assert f" {short_number(units['append-only'])} |" in shown
    with OnTerminal(tmp_path, *arguments, env={"COLUMNS": "80"}) as terminal:
        assert terminal.end() == 0
    best = min(("ours", "ours-frugal"), key=units.__getitem__)
    line = f"bill: append-only {short_number(units['append-only'])}, {best} {short_number(units[best])}"
    assert line in terminal.shown.splitlines()


def test_short_sessions_were_left_alone_on_purpose_and_it_says_so(tmp_path: Path) -> None:
    sessions = write_sessions(tmp_path / "two.jsonl", made_session("short", 2), made_session("longer", 9))
    told = "ours left 1 of 2 sessions alone on purpose: too short for a rewrite to pay"
    assert told in run_cgk(tmp_path, "replay", sessions, "--policy", "ours").stdout.splitlines()
    assert "alone on purpose" not in run_cgk(tmp_path, "replay", sessions, *FEW).stdout


def test_prices_without_a_cache_are_compared_with_no_perfect_cache(tmp_path: Path) -> None:
    sessions = write_sessions(tmp_path / "one.jsonl", made_session("one", 2))
    shown = [run_cgk(tmp_path, "replay", sessions, *FEW, "--prices", name).stdout for name in ("openai", "none")]
    assert ["with a perfect cache" in text for text in shown] == [True, False]
    assert ["all that was said, without a cache" in text for text in shown] == [False, True]


def test_the_defaults_are_the_main_policies_and_the_longest_session(tmp_path: Path) -> None:
    sessions = write_sessions(tmp_path / "two.jsonl", made_session("short", 2), made_session("long", 5))
    shown = run_cgk(tmp_path, "replay", sessions)
    names = [line.split()[1] for line in shown.stdout.splitlines() if line.startswith("| ")]
    assert names[1:7] == ["append-only", "mask-60k", "auto-compact-160k", "slim-2k", "ours", "clairvoyant-seen"]
    assert "long: 5 calls" in shown.stdout
    short = run_cgk(tmp_path, "replay", sessions, *FEW, "--plot", "short")
    assert "short: 2 calls" in short.stdout
    none = run_cgk(tmp_path, "replay", sessions, *FEW, "--plot", "none")
    assert "prompt tokens of a call" not in none.stdout


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_and_plots_fit_a_terminal_without_a_colour(tmp_path: Path, columns: int) -> None:
    sessions = write_sessions(tmp_path / "one.jsonl", made_session("one", 30))
    with OnTerminal(tmp_path, "replay", sessions, "--policy", "all", env={"COLUMNS": str(columns)}) as terminal:
        assert terminal.end() == 0
    assert "\x1b" not in terminal.shown
    progress, shown = terminal.shown.rsplit("\r", 1)
    assert "100% of 30 calls" in progress
    assert max(map(len, shown.splitlines())) <= columns
    assert shown.count("prompt tokens of a call") == 3, "five policies beside append-only in a plot"


def test_a_terminal_gets_its_colours_when_asked_for(tmp_path: Path) -> None:
    sessions = write_sessions(tmp_path / "one.jsonl", made_session("one", 2))
    with OnTerminal(tmp_path, "replay", sessions, *FEW, "--color") as terminal:
        assert terminal.end() == 0
    assert "\x1b[38;2;94;234;212m1 sessions, 2 model calls" in terminal.shown


def test_a_broken_line_is_named_with_its_number_and_skipped(tmp_path: Path) -> None:
    lines = [json.dumps(made_session(f"s{number}", 2)) for number in range(3)]
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join([lines[0], lines[1][:-9], lines[2]]) + "\n")
    result = run_cgk(tmp_path, "replay", broken, *FEW, "--json")
    assert result.returncode == 0
    assert json.loads(result.stdout)["sessions"] == 2
    (line,) = result.stderr.splitlines()
    assert f"{broken}: line 2: it is no JSON" in line
    assert line.endswith("it is skipped")


def test_many_broken_lines_are_counted_and_shown_when_asked_for(tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps(made_session("whole", 2)) + "\n" + "{\n" * 9)
    few = run_cgk(tmp_path, "replay", broken, *FEW).stderr.splitlines()
    assert len(few) == 6
    assert few[-1] == f"{broken}: 4 more warnings; --verbose shows all"
    every = run_cgk(tmp_path, "replay", broken, *FEW, "--verbose").stderr
    assert "line 10" in every


def test_several_files_and_packed_ones_are_replayed_together(tmp_path: Path) -> None:
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(made_session("packed", 2)).encode()))
    plain = write_sessions(tmp_path / "plain.jsonl", made_session("plain", 3))
    printed = cgk_json(tmp_path, "replay", packed, plain, MADE, *FEW)
    assert (printed["sessions"], printed["calls"]) == (4, 2 + 3 + 2 + 2)


def test_options_change_what_is_replayed_and_how_it_is_billed(tmp_path: Path) -> None:
    sessions = write_sessions(tmp_path / "many.jsonl", *(made_session(f"s{number}", 3) for number in range(4)))
    bill = ("--prices", "none", "--prefill-rate", "100", "--resident-tokens", "0")
    chained = cgk_json(tmp_path, "replay", sessions, *FEW, "--chain", "6", *bill)
    assert (chained["sessions"], chained["calls"]) == (2, 12)
    assert (chained["prices"], chained["prefill_tokens_per_second"]) == ("none", 100)
    assert chained["policies"]["append-only"]["mean_prompt_tokens"] < 8000
    knob = ("--fault-price", "2", "--fault-target", "0.1", "--resident-tokens", "logged", "--gaps", "real")
    ours = cgk_json(tmp_path, "replay", sessions, "--policy", "ours", "--min-calls", "3", *knob)
    assert (ours["sessions"], ours["prices"], ours["expand_exact"]) == (4, "anthropic-5m", 1.0)
    assert list(ours["policies"]) == ["append-only", "ours"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--policy", "yours"), ("policy 'yours'", "use all, or some of append-only")),
        (("--prices", "free"), ("price profile 'free'", "anthropic-5m")),
        (("--min-calls", "9"), ("none has enough model calls", "lower --min-calls or --chain")),
        (("--resident-tokens", "some"), ("--resident-tokens 'some'", "logged")),
        (("--resident-tokens", "9" * 5000), ("--resident-tokens", "it is no number of tokens")),
        (("--prefill-rate", "nan"), ("prefill_rate nan",)),
        (("--gaps", "some"), ("--gaps", "'real'")),
        (("--plot", "nobody"), ("--plot 'nobody'", "no file holds a session of this id")),
        (("--html", "gone/page.html"), ("page gone/page.html", "its folder does not exist")),
    ],
)
def test_a_bad_argument_is_one_line_and_nothing_is_printed(
    tmp_path: Path, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    sessions = write_sessions(tmp_path / "one.jsonl", made_session("one", 2))
    line = error_line(run_cgk(tmp_path, "replay", sessions, *FEW, *arguments))
    for part in parts:
        assert part in line
    assert [path.name for path in tmp_path.iterdir()] == ["one.jsonl"]


def test_a_file_that_cannot_be_replayed_is_named(tmp_path: Path) -> None:
    assert "gone.jsonl: there is no such file" in error_line(run_cgk(tmp_path, "replay", "gone.jsonl"))
    (tmp_path / "notes.txt").write_text("just some notes\n")
    assert "notes.txt: it holds no JSON" in error_line(run_cgk(tmp_path, "replay", "notes.txt"))
    (tmp_path / "empty.jsonl").write_text("")
    assert "empty.jsonl: it is empty" in error_line(run_cgk(tmp_path, "replay", "empty.jsonl"))
    assert "Missing argument 'FILES...'" in error_line(run_cgk(tmp_path, "replay"))


def test_a_page_is_written_beside_the_printed_comparison(tmp_path: Path) -> None:
    sessions = write_sessions(tmp_path / "one.jsonl", made_session("one", 4))
    result = run_cgk(tmp_path, "replay", sessions, *FEW, "--html", "page.html")
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("page: page.html\n")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    printed = cgk_json(tmp_path, "replay", sessions, *FEW, "--html", "again.html")
    assert (tmp_path / "again.html").read_text("utf-8") == page
    assert f"{printed['policies']['mask-60k']['billed_vs_append_only']:.2f}x" in page


@pytest.mark.parametrize("name", ["one.jsonl", "./one.jsonl", "link.html", "twin.html", "notes.html"])
def test_a_page_takes_the_place_of_no_input_and_of_no_other_file(tmp_path: Path, name: str) -> None:
    sessions = write_sessions(tmp_path / "one.jsonl", made_session("one", 2))
    (tmp_path / "link.html").symlink_to(sessions)
    (tmp_path / "twin.html").hardlink_to(sessions)
    (tmp_path / "notes.html").write_text("my notes")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    line = error_line(run_cgk(tmp_path, "replay", MADE, sessions, *FEW, "--html", name))
    assert f"page {Path(name)}: " in line
    assert "name another file" in line
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_names_of_sessions_cannot_steer_the_terminal(tmp_path: Path) -> None:
    sessions = write_sessions(tmp_path / "one.jsonl", made_session("\x1b[31mred\u202e" + "long" * 50, 2))
    shown = run_cgk(tmp_path, "replay", sessions, *FEW).stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "..." in shown
