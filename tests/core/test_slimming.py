"""The head view of an oversized result: nothing altered, nothing that looks whole and is not."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_gatekeeper.core.fences import find_fences
from context_gatekeeper.core.slimming import (
    MEASURED_SLIMMING,
    SPEC_SLIMMING,
    SlimmingParams,
    SlimView,
    head_view,
    should_slim_at_birth,
)
from context_gatekeeper.errors import ConfigError
from tests.core.test_cuts import leaves_fence_open
from tests.core.texts import ANY_TEXT, MARKDOWN, STORMS

GREP = "\n".join(f"src/f{n}.py:{n}: token_{n}" for n in range(300))
BUILD = "\n".join(
    ["$ make", *(f"compiled part {n}" for n in range(200)), "main.c:3:5: error: expected ';'",
     *(f"skipped part {n}" for n in range(200)), "make: *** [all] Error 2", "", ""]
)  # fmt: skip


def view_of(text: str, params: SlimmingParams = SPEC_SLIMMING, **options: object) -> SlimView:
    view = head_view(text, handle="page:abc", params=params, **options)  # type: ignore[arg-type]
    assert view is not None
    return view


def is_note(line: str) -> bool:
    return line.startswith("[") and line.endswith("]")


# -- what is shown ------------------------------------------------------------------------------


def test_every_line_shown_is_a_line_of_the_original_and_the_rest_is_counted() -> None:
    view = view_of(GREP)
    lines = view.text.split("\n")
    assert lines[:2] == ["src/f0.py:0: token_0", "src/f1.py:1: token_1"]
    assert [line for line in lines if is_note(line)] == [
        f"[... {view.lines_left_out} lines left out: lines 10-295 ...]",
        f"[result: {len(GREP)} characters, {len(GREP)} bytes, 300 lines; whole text: page:abc]",
    ]
    assert all(line in GREP.split("\n") for line in lines if not is_note(line))
    assert lines[-2] == "src/f299.py:299: token_299"
    assert (view.kind, view.line_count, view.lines_left_out, view.size_chars) == ("lines", 300, 286, len(GREP))


def test_error_lines_stand_between_head_and_tail() -> None:
    view = view_of(BUILD, tool="Bash", name="make")
    assert "main.c:3:5: error: expected ';'" in view.text.split("\n")
    assert (
        view.text.split("\n")[-3:]
        == [
            "make: *** [all] Error 2",
            "[... 1 line left out: line 404 ...]",
            f"[result of Bash make: {len(BUILD)} characters, {len(BUILD)} bytes, 404 lines; whole text: page:abc]",
        ]
        or view.text.split("\n")[-2] == "make: *** [all] Error 2"
    )


def test_the_first_and_the_last_errors_are_shown_when_there_are_many() -> None:
    errors = [f"E{n}Error: number {n}" for n in range(40)]
    text = "start\n" * 60 + "\n".join(errors) + "\nend" * 60
    shown = [line for line in view_of(text).text.split("\n") if "Error" in line]
    assert shown == ["E0Error: number 0", "E1Error: number 1", "E39Error: number 39"]


def test_what_is_shown_is_told_as_spans_of_the_original() -> None:
    view = view_of(BUILD)
    assert all(BUILD[start:end] in view.text for start, end in view.shown)
    assert view.shown[0][0] == 0
    assert list(view.shown) == sorted(view.shown)


def test_a_single_short_line_is_shown_in_place_of_its_gap() -> None:
    text = "head\n" + "x" * 199 + "\n" + "middle\nValueError: x\n" + "y\n" * 200
    view = view_of(text, SlimmingParams(head_chars=4, tail_chars=2, error_lines=1))
    assert "ValueError: x" in view.text
    near = "first\nshort\nValueError: x\n" + "y" * 300 + "\nend"
    assert "short\nValueError: x" in view_of(near, SlimmingParams(head_chars=6)).text
    far = "first\n" + "s" * 60 + "\nValueError: x\n" + "y" * 300 + "\nend"
    assert "1 line left out: line 2" in view_of(far, SlimmingParams(head_chars=6)).text


def test_a_first_line_too_long_is_cut_between_graphemes_and_says_so() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    view = view_of(family * 2000)
    first, last = view.text.split("\n")
    assert first == family * 40 + " [... cut after 200 of 10000 characters ...]"
    assert last.startswith("[result: 10000 characters, 36000 bytes, 1 line;")
    assert (view.shown, view.lines_left_out) == (((0, 200),), 0)


def test_leading_blank_lines_do_not_use_up_the_head() -> None:
    assert view_of("\n\n" + "汉" * 5000).text.startswith("\n\n" + "汉" * 198 + " [... cut after 198 of 5000")


def test_lines_end_at_line_feeds_and_keep_their_carriage_returns() -> None:
    text = "\r\n".join(f"line {n}" for n in range(900)) + "\r\n"
    view = view_of(text)
    assert view.text.startswith("line 0\r\nline 1\r\n")
    assert "\nline 899\r\n[result" in view.text
    assert view.line_count == 900


def test_a_long_last_line_is_left_out_and_a_long_error_is_cut() -> None:
    text = "start\n" + "b" * 3000 + "\nValueError: " + "c" * 3000 + "\n" + "d" * 3000
    view = view_of(text)
    assert "ValueError: ccc" in view.text
    assert "[... cut after 300 of 3012 characters ...]" in view.text
    assert "dd" not in view.text


# -- fences -------------------------------------------------------------------------------------


def test_a_block_that_reaches_over_the_gap_needs_nothing() -> None:
    text = "A script:\n\n```bash\n" + "echo hello\n" * 400 + "```\n\ntail\n"
    view = view_of(text)
    assert view.text.count("```") == 2
    assert view.text.endswith("echo hello\n```\n\ntail\n" + view.text.split("\n")[-1])


def test_a_block_torn_by_a_gap_is_closed_and_opened_again() -> None:
    text = "```py\n" + "a = 1\n" * 300 + "```\n" + "words\n" * 300 + "  ~~~sh\n" + "ls\n" * 300 + "  ~~~\n"
    lines = view_of(text).text.split("\n")
    assert lines[0] == "```py"
    first_gap = lines.index("```", 1) + 1
    assert is_note(lines[first_gap])
    assert lines[first_gap + 1] == "  ~~~sh"
    assert lines[-2] == "  ~~~"


def test_a_block_that_nobody_closed_is_closed_in_the_view() -> None:
    view = view_of("```\n" + "code\n" * 900)
    assert view.text.split("\n")[-2] == "```"


def test_a_fence_of_which_nothing_else_is_shown_is_left_out() -> None:
    text = "one\n```\n" + "x" * 3000 + "\n```\n"
    assert "```" not in view_of(text, SlimmingParams(head_chars=8, tail_chars=4)).text


# -- what is replaced as a whole ----------------------------------------------------------------


def test_json_is_replaced_by_what_it_is() -> None:
    messages = json.dumps(
        {"messages": [{"id": n, "body": "…" * 30} for n in range(500)], "next": {"page": 2}, "ok": True}
    )
    view = view_of(messages, tool="fetch")
    assert view.text == (
        f'[result of fetch: JSON object with 3 keys: "messages" (500 items), "next" (1 key), "ok"; '
        f"{len(messages)} characters, {len(messages)} bytes, 1 line; whole text: page:abc]"
    )
    assert (view.shown, view.lines_left_out, view.kind) == ((), 1, "JSON object")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (json.dumps([{"id": n} for n in range(400)]), "JSON array of 400 items;"),
        (json.dumps(["x" * 400]), "JSON array of 1 item;"),
        (json.dumps({"k" * 60: "x" * 900}), f'JSON object with 1 key: "{"k" * 40}..." (900 characters);'),
        (json.dumps({f"key{n}": n for n in range(99)}), '"key7" and 91 more;'),
        ("\n".join(json.dumps({"id": n}) for n in range(200)), "JSON lines, 200 items;"),
        ('{"id": 1}\n{"id": 2}\n' + "not json\n" * 90, "broken JSON, which does not parse;"),
        (json.dumps({"a": "x" * 900})[:-3], "broken JSON, which does not parse;"),
        ("[" * 100_000, "broken JSON, which does not parse;"),
        ("{}" + " " * 900, "JSON object with 0 keys;"),
        ("ab\x00c" * 200, "binary;"),
        ("\ufffd\x01" * 400 + "plain", "binary;"),
    ],
)
def test_what_would_look_whole_or_is_no_text_is_replaced(text: str, told: str) -> None:
    view = view_of(text)
    assert told in view.text
    assert view.shown == ()
    assert "\n" not in view.text


def test_what_a_tool_prints_around_json_stays() -> None:
    text = "Exit code 1\n" + json.dumps({"rows": list(range(900))}, indent=1) + "\n\nCommand exited with code 1\n"
    view = view_of(text, is_error=True)
    assert view.text == (
        "Exit code 1\n[... JSON object left out ...]\n\nCommand exited with code 1\n"
        f'[result: JSON object with 1 key: "rows" (900 items); {len(text)} characters, {len(text)} bytes, 907 lines; '
        "whole text: page:abc]"
    )
    assert (view.line_count, view.lines_left_out) == (907, 904)
    assert [text[start:end] for start, end in view.shown] == ["Exit code 1\n", "\n\nCommand exited with code 1\n"]


@pytest.mark.parametrize("text", ["[INFO] started\n" * 200, "[2026-01-02] x\n" * 200, "{ code }\n" * 200])
def test_lines_that_begin_with_a_bracket_are_no_json(text: str) -> None:
    assert view_of(text).kind == "lines"


# -- failed results -----------------------------------------------------------------------------


def test_a_failed_result_is_never_slimmed_to_nothing() -> None:
    loose = "working\n" * 300 + "cannot open the store\n" + "working\n" * 300
    assert "cannot open the store" in view_of(loose, is_error=True).text
    assert "cannot open the store" not in view_of(loose).text
    told = json.dumps({"data": "x" * 900, "error": {"code": 7, "message": "no such user"}})
    assert '"ok"' not in view_of(told, is_error=True).text
    assert 'error: {"code": 7, "message": "no such user"}' in view_of(told, is_error=True).text
    long_error = json.dumps({"message": "m" * 900, "data": "x" * 900})
    assert "m ...;" in view_of(long_error, is_error=True).text


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(["x" * 900]),
        json.dumps({"data": "x" * 900, "error": ""}),
        json.dumps({"error": "key sk-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z" + "x" * 900}),
        "\x00" * 900,
    ],
)
def test_a_failed_result_of_which_nothing_can_be_shown_stays_whole(text: str) -> None:
    assert head_view(text, handle="page:abc", is_error=True) is None


# -- handles, labels, settings ------------------------------------------------------------------


def test_a_view_that_is_no_shorter_is_none() -> None:
    assert head_view("short", handle="page:abc") is None
    assert head_view("", handle="page:abc") is None


@pytest.mark.parametrize("handle", ["", "a\nb"])
def test_a_handle_is_one_line(handle: str) -> None:
    with pytest.raises(ConfigError, match="pass the page's handle"):
        head_view(GREP, handle=handle)


def test_the_label_is_one_short_line_without_secrets() -> None:
    assert "result of Bash a b: " in view_of(GREP, tool="Bash", name="a\nb").text
    assert (
        "result of Bash: "
        in view_of(GREP, tool="Bash", name="curl -u x --token ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2).text
    )
    assert len(view_of(GREP, name="n" * 900).text) < len(view_of(GREP).text) + 140
    assert not leaves_fence_open(view_of(GREP, name="```x").text)


@pytest.mark.parametrize(
    ("chars", "tool", "arguments", "is_error", "spec", "measured"),
    [
        (2000, "Bash", '{"command": "make"}', False, False, False),
        (2001, "Bash", '{"command": "make"}', False, True, False),
        (16_001, "Bash", '{"command": "make"}', False, True, True),
        (16_001, "Read", "{}", False, True, False),
        (16_001, "Bash", '{"command": "cat a.py"}', False, True, False),
        (16_001, "Read", "{}", True, True, True),
        (16_001, "", "", False, True, True),
    ],
)
def test_the_two_settings_slim_different_results(
    chars: int, tool: str, arguments: str, is_error: bool, spec: bool, measured: bool
) -> None:
    for params, slims in ((SPEC_SLIMMING, spec), (MEASURED_SLIMMING, measured)):
        assert (
            should_slim_at_birth("x" * chars, tool=tool, arguments=arguments, is_error=is_error, params=params) is slims
        )


def test_limits_are_not_below_zero() -> None:
    with pytest.raises(ConfigError, match="below 0"):
        SlimmingParams(tail_lines=-1)


def test_a_view_may_show_no_line_at_all() -> None:
    params = SlimmingParams(head_chars=0, tail_chars=0, error_lines=0)
    assert view_of(GREP, params).text.startswith("[... 300 lines left out: lines 1-300 ...]\n[result: ")


# -- properties ---------------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["```\n", "~~~ py\n", "ValueError: x\n", "word " * 30 + "\n",
    "x" * 400 + "\n", "`a` " * 80 + "\n", "\r\n", "汉字没有空格" * 60 + "\n",
     "\ud83d", "\n", "  ```sh\nls\n  ```\n", "> ```\n", "done\n", "    ```\n", "\t```py\n",
     '{"a": 1}\n', "```a`" + "b" * 300 + "\n", "\x1b[31mError: y\x1b[0m\n"]
)  # fmt: skip
LONG_TEXTS = st.lists(PIECES, min_size=3, max_size=30).map("".join)
SMALL = SlimmingParams(head_chars=60, tail_chars=40, tail_lines=3, error_lines=2, error_chars=50)


@given(st.one_of(LONG_TEXTS, ANY_TEXT, MARKDOWN), st.sampled_from([SMALL, SPEC_SLIMMING]), st.booleans())
@example("```a`" + "b" * 300 + "\n" + "x" * 3000, SMALL, False)
@example("```\nx\n" + "y" * 900 + "\n```\n", SMALL, True)
def test_a_view_of_any_text_is_shorter_balanced_and_made_of_its_lines(
    text: str, params: SlimmingParams, is_error: bool
) -> None:
    view = head_view(text, handle="page:abc", params=params, is_error=is_error)
    if view is None:
        return
    assert len(view.text) < len(text)
    assert not leaves_fence_open(view.text)
    lines = set(text.split("\n"))
    fences = {part.strip("\n") for fence in find_fences(text) for part in (fence.opening, fence.closing)}
    for line in view.text.split("\n"):
        cut = re.search(r" \[\.\.\. cut after (\d+) of \d+ characters \.\.\.\]$", line)
        assert line in lines or is_note(line) or line in fences or cut is not None
        if cut is not None:
            assert any(whole.startswith(line[: int(cut[1])]) for whole in lines)
    assert view.text.endswith("whole text: page:abc]")
    assert all(0 <= start <= end <= len(text) for start, end in view.shown)
    assert 0 <= view.lines_left_out <= view.line_count


@pytest.mark.parametrize("name", STORMS)
def test_storms_of_one_kind_become_short_views(name: str) -> None:
    view = head_view(STORMS[name], handle="page:abc")
    assert view is not None
    assert len(view.text) < 3000
    assert not leaves_fence_open(view.text)
