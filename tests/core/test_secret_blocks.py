"""Private keys are found behind whatever tools put in front of their lines; public blocks are left alone."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_gatekeeper.core.secret_blocks import find_private_keys
from tests.core.texts import LONG

Code = Callable[[str], str]


def body(seed: int, size: int = 1190, width: int = 64) -> list[str]:
    packed = base64.b64encode(random.Random(seed).randbytes(size)).decode()
    return [packed[place : place + width] for place in range(0, len(packed), width)]


def key(seed: int, name: str = "PRIVATE KEY", width: int = 64) -> list[str]:
    return [f"-----BEGIN {name}-----", *body(seed, width=width), f"-----END {name}-----"]


FRONTS = {
    "nothing": "{line}",
    "spaces": "      {line}",
    "an arrow": "{number:6}→{line}",
    "cat -n": "{number:6}\t{line}",
    "nl with a colon": "{number:03}: {line}",
    "grep -n": "deploy/certs2/server.pem:{number}:{line}",
    "grep -A": "server.pem{mark}{number}{mark}{line}",
    "a quote": "> {line}",
    "a quote of a quote": "> > {line}",
    "added": "+{line}",
    "removed": "-{line}",
    "a comment": "# {line}",
    "a table": "| {number} | {line} |",
    "texts of JavaScript": '  "{line}\\n" +',
    "bytes of Python": "    b'{line}\\n'",
    "a list": '    "{line}",',
    "a colour": "\x1b[32m{line}\x1b[0m",
    "a container's log": "web-1  | {line}",
    "a time": "2026-01-02T03:04:{seconds:02}Z {line}",
    "blame": "^a1b2c3d (Ann Lee 2026-01-02 10:00:00 +0000 {number:3}) {line}",
}
"""What tools put in front of a line, and behind it."""
CODES: dict[str, Code] = {
    "plain": lambda text: text,
    "with carriage returns": lambda text: text.replace("\n", "\r\n"),
    "JSON": lambda text: json.dumps({"content": text}),
    "JSON of today": lambda text: json.dumps({"content": text}, ensure_ascii=False),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"content": text})),
    "JSON in JSON in JSON": lambda text: json.dumps([json.dumps(json.dumps(text))]),
}
CUTS = {
    "whole": slice(None),
    "without END": slice(None, -1),
    "a beginning": slice(None, 9),
    "an end": slice(7, None),
    "the last two lines": slice(-3, None),
    "a middle": slice(5, 10),
    "a middle to the last line": slice(5, -1),
}
SEEDS = st.integers(0, 10**6)


def without_keys(text: str) -> str:
    found = list(find_private_keys(text))
    assert found == sorted(found)
    for start, end in reversed(found):
        text = f"{text[:start]}<key>{text[end:]}"
    return text


def fronted(lines: list[str], front: str) -> list[str]:
    return [
        front.format(number=number, line=line, mark=":-"[number > 1], seconds=number % 60)
        for number, line in enumerate(lines, 1)
    ]


def laid_out(lines: list[str], front: str, cut: slice) -> str:
    shown = fronted(lines, front)[cut]
    return "\n".join(["it was read:", *shown, "", "and nothing else"])


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(("name", "width"), [("PRIVATE KEY", 64), ("RSA PRIVATE KEY", 64), ("OPENSSH PRIVATE KEY", 70)])
def test_no_line_of_a_key_is_left_and_what_stands_around_is(front: str, cut: str, name: str, width: int) -> None:
    lines = key(width, name, width)
    for code in CODES.values():
        left = without_keys(code(laid_out(lines, FRONTS[front], CUTS[cut])))
        assert [line for line in lines[CUTS[cut]] if line[:5] != "-----" and line in left] == []
        assert "it was read:" in left
        assert "nothing else" in left


MARKS = st.text(st.sampled_from(" \t>|:;.,#*~()[]{}<→│`'\"$%&@!?-"), min_size=1, max_size=6)
NAMES = st.from_regex(r"[a-z]{1,8}(/[a-z_]{1,8}){0,3}\.[a-z]{2,4}", fullmatch=True)
CUT_PLACES = st.tuples(st.integers(0, 12), st.integers(4, 25)).map(lambda cut: slice(cut[0], cut[0] + cut[1]))


def escaped(piece: str) -> str:
    return piece.replace("{", "{{").replace("}", "}}")


@pytest.mark.parametrize("mark", ["[", "\\[", "\\", "\x1b[32m", "x1b[", "(", "\t"])
@pytest.mark.parametrize("beginning", ["1m", "32m", "t", "u00e9", "e", "033", "x1b", "m"])
@pytest.mark.parametrize("place", [1, 4, 9])
def test_a_line_may_begin_like_the_end_of_an_escape(mark: str, beginning: str, place: int) -> None:
    lines = key(3)
    lines[place] = beginning + lines[place][len(beginning) :]
    left = without_keys(laid_out(lines, mark + "{line}", slice(None)))
    assert [line for line in lines if line[len(beginning) : 60] in left] == []


@given(SEEDS, st.lists(MARKS | NAMES | st.none(), max_size=4), MARKS, CUT_PLACES, st.sampled_from(list(CODES.values())))
def test_any_numbers_names_and_marks_may_stand_in_front(
    seed: int, pieces: list[str | None], last: str, cut: slice, code: Code
) -> None:
    told = "".join("{number} " if piece is None else escaped(piece) for piece in [*pieces, last])
    lines = key(seed)
    left = without_keys(code(laid_out(lines, told + "{line}", cut)))
    assert [line for line in lines[cut] if line[:5] != "-----" and line in left] == []


@pytest.mark.parametrize("front", FRONTS)
def test_the_rest_of_a_key_behind_a_gap_is_found(front: str) -> None:
    lines = fronted(key(1), FRONTS[front])
    left = without_keys("\n".join([*lines[:6], "... 9 lines are left out ...", *lines[15:-1]]))
    assert [line for line in body(1)[:5] + body(1)[14:] if line in left] == []


@pytest.mark.parametrize("front", FRONTS)
def test_headers_stand_between_the_marker_and_the_lines(front: str) -> None:
    headers = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0A1B2C3D4E5F60718293A4B5C6D7E8F9", ""]
    lines = [key(2, "RSA PRIVATE KEY")[0], *headers, *body(2)]
    left = without_keys("\n".join(fronted(lines, FRONTS[front])))
    assert [line for line in body(2) if line in left] == []


@pytest.mark.parametrize("size", range(30, 130, 7))
@pytest.mark.parametrize("front", FRONTS)
def test_keys_of_any_size_are_found_by_their_end(size: int, front: str) -> None:
    """The last line alone is too short to be told from a word."""
    lines = [*body(size, size), "-----END EC PRIVATE KEY-----"]
    told = ["some words", "word", *fronted(["", "", *lines], FRONTS[front])[2:]]
    left = without_keys("\n".join(told))
    assert [line for line in lines[:-1] if line in left] == []
    assert left.startswith("some words\nword\n")


def test_an_end_far_from_base64_ends_nothing() -> None:
    text = "\n".join([*body(3)[:2], *["a word"] * 8, "-----END PRIVATE KEY-----"])
    assert list(find_private_keys(text)) == []


# -- left alone ------------------------------------------------------------------------------------


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("cut", ["whole", "without END", "a beginning", "an end", "the last two lines"])
@pytest.mark.parametrize("name", ["CERTIFICATE", "PUBLIC KEY", "PGP SIGNATURE"])
def test_public_blocks_are_left_alone(front: str, cut: str, name: str) -> None:
    for code in CODES.values():
        assert list(find_private_keys(code(laid_out(key(3, name), FRONTS[front], CUTS[cut])))) == []


@pytest.mark.parametrize("front", FRONTS)
def test_a_certificate_beside_a_key_is_left_alone(front: str) -> None:
    certificate, lines = key(4, "CERTIFICATE"), key(5)
    for both in ([*certificate, *lines, *key(6, "CERTIFICATE")], [*lines, *certificate]):
        left = without_keys("\n".join(fronted(both, FRONTS[front])))
        assert [line for line in lines[1:-1] if line in left] == []
        assert all(line in left for line in certificate[1:-1])


def test_the_end_of_a_certificate_behind_a_key_is_left_alone() -> None:
    lines, certificate = key(5), key(4, "CERTIFICATE")
    for text in ("\n".join([*certificate[5:], *lines]), "\n".join([*certificate[5:], lines[0]])):
        left = without_keys(text)
        assert all(line in left for line in certificate[5:])
        assert lines[3] not in left


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(random.Random(7).randbytes(32).hex() for _ in range(9)),
        "\n".join(f"{random.Random(8).randbytes(32).hex()}  file{number}.txt" for number in range(9)),
        "\n".join(body(9, width=76)),
        "\n".join(body(10)[:2]),
        "\n".join([*body(11)[:2], "a line between", *body(12)[:2]]),
        "".join(body(13, size=40_000)),
        "\n".join(f"integrity sha512-{body(seed, 64, 88)[0]}" for seed in range(9)),
        f"-----BEGIN PRIVATE KEY-----\n# {'a b' * 2000}A1{'b' * 50}\nand so on",
        "-----BEGIN PRIVATE KEY-----\nis how a key begins, and a reader of configuration files knows it",
        "the marker -----END PRIVATE KEY----- ends it",
        'log("-----BEGIN PRIVATE KEY-----" + encodedPrivateKeyBody2 + "-----END PRIVATE KEY-----")'[:27],
        "\n".join("=" * 64 for _ in range(9)),
        "\n".join("abcdefgh" * 8 for _ in range(9)),
    ],
)
def test_what_is_no_key_is_left_alone(text: str) -> None:
    assert list(find_private_keys(text)) == []


@pytest.mark.parametrize(
    "storm",
    [
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----",
        "-----END PRIVATE KEY-----\n",
        f"-----BEGIN PRIVATE KEY-----\n> {'Ab1' * 22}\n",
        f"{'Ab1' * 22}\n-----END PRIVATE KEY-----\n",
        f"{'Ab1' * 22} ",
        "\\" * 9,
        "\\\\n-",
        f"-----BEGIN PRIVATE KEY-----\n{'A' * 40}\n",
    ],
)
def test_storms_are_read_in_linear_time(storm: str) -> None:
    """What would take a quadratic rule many minutes."""
    assert len(list(find_private_keys(storm * (LONG // len(storm))))) <= LONG // len(storm)
