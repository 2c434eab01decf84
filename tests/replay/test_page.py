"""The page of a replay: whole in one file, nothing fetched or run, written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import resource
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from context_gatekeeper.errors import ConfigError
from context_gatekeeper.replay.catalogue import POLICY_NAMES
from context_gatekeeper.replay.page import check_page_place, page_text, write_page
from context_gatekeeper.replay.page_style import LINE_CLASSES, STYLE
from context_gatekeeper.replay.report import DEFAULT_POLICIES, ReplayReport, ReplaySettings, replay_files
from tests.replay.scripted import reading_session, session_of

NASTY_ID = "<script>alert(1)</script>\u202e\udc80\x07" + "long" * 60
VOID = {"meta"}


class Reader(HTMLParser):
    """Collects tags, attributes and texts; fails on tags that do not close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@cache
def report(**settings: Any) -> ReplayReport:
    sessions = [session_of(*reading_session(3).messages, name=NASTY_ID), reading_session(2)]
    return replay_files([sessions], ReplaySettings(policies=("all",), **settings))


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_every_tag_closes_and_nothing_runs_or_is_fetched() -> None:
    reader = read(page_text(report()))
    assert not {"script", "link", "img", "iframe", "object", "a", "form"} & set(reader.tags)
    names = {name for name, _ in reader.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not {"style", "href", "src", "srcset", "action"} & names
    assert not re.search(r"url\(|@import|https?:", STYLE)


def test_the_policy_of_its_head_allows_its_own_style_alone() -> None:
    text = page_text(report())
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    reader = read(text)
    assert ("http-equiv", "Content-Security-Policy") in reader.attributes
    assert (
        "content",
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
    ) in reader.attributes


def test_texts_of_sessions_are_escaped_cut_and_printable() -> None:
    text = page_text(report())
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\udc80\\x07longlong" in text
    assert "long" * 30 not in text
    text.encode("utf-8")


def test_it_shows_policies_charts_and_what_they_mean() -> None:
    reader = read(page_text(report()))
    texts = set(reader.texts)
    for name in report().sessions:
        assert name in texts
    assert {"prompt tokens of a call", "bill so far, in plain input tokens", "faulting calls, %"} <= texts
    assert reader.tags.count("details") == 2
    assert sum(tag == "polyline" for tag in reader.tags) == 2 * 2 * len(report().sessions)
    assert any("an estimate" in one for one in texts)


def test_its_figures_have_the_names_that_the_terminal_shows() -> None:
    texts = set(read(page_text(report())).texts)
    names = {"policy", "cheaper", "bill", "faults", "coverage", "prompt", "first token"}
    assert names | {"worst", "most faults", "by lines", "extra", "cached", "late"} <= texts
    assert not {"faulting calls", "exact lines", "late calls", "mean prompt"} & texts


def test_every_policy_has_a_look_of_its_own_and_those_shown_by_default_a_colour() -> None:
    looks = dict(zip(POLICY_NAMES, LINE_CLASSES, strict=False))
    assert len(set(looks.values())) == len(POLICY_NAMES)
    assert len({looks[name].split()[0] for name in DEFAULT_POLICIES}) == len(DEFAULT_POLICIES)


def test_prices_without_a_cache_promise_none() -> None:
    told = {name: " ".join(read(page_text(report(prices=name))).texts) for name in ("openai", "none")}
    assert "a perfect prompt cache" in told["openai"]
    assert "a perfect prompt cache" not in told["none"]


def test_knobs_that_were_set_are_told() -> None:
    texts = read(page_text(report(fault_price=2.0, fault_target=0.1, uses_gaps=True, resident_tokens=None))).texts
    assert {"fault price", "2", "fault target", "10.00%", "as logged", "gaps over 300 s"} <= set(texts)
    assert "fault price" not in read(page_text(report())).texts


def test_charts_are_drawn_for_the_longest_sessions_only() -> None:
    many = [session_of(*reading_session(1 + number % 3).messages, name=f"s{number}") for number in range(14)]
    listed = replay_files([many], ReplaySettings(policies=()))
    reader = read(page_text(listed))
    assert reader.tags.count("details") == 12
    assert "Charts of the 12 sessions with most calls; 14 were replayed." in reader.texts


def test_every_look_has_its_style() -> None:
    for name in " ".join(LINE_CLASSES).split():
        assert f".{name} {{" in STYLE or f".line.{name} {{" in STYLE


def test_a_page_is_written_and_written_over(tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    write_page(report(), place)
    first = place.read_bytes()
    place.chmod(0o600)
    write_page(report(), place)
    assert place.read_bytes() == first == page_text(report()).encode("utf-8")
    assert place.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]


def test_a_page_behind_a_link_is_written_where_the_link_leads(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "page.html"
    write_page(report(fault_price=2.0), target)
    old = target.read_text("utf-8")
    link = tmp_path / "link.html"
    link.symlink_to(target)
    write_page(report(), link)
    assert link.is_symlink()
    assert target.read_text("utf-8") == page_text(report()) != old


@pytest.mark.parametrize(
    "content",
    [b"", b'{"id": "one"}\n', b"\x1f\x8b\x08packed", b"<!DOCTYPE html>\n<html>a page of somebody else</html>", b"\xff"],
    ids=["nothing", "a session", "a packed one", "another page", "bytes"],
)
def test_a_file_that_is_no_page_of_a_replay_is_never_written_over(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "kept"
    place.write_bytes(content)
    (tmp_path / "link").symlink_to(place)
    os.link(place, tmp_path / "twin")
    for name in ("kept", "link", "twin"):
        with pytest.raises(ConfigError, match=r"another file stands there.+; name another file, or move"):
            check_page_place(tmp_path / name)
        with pytest.raises(ConfigError, match="another file stands there"):
            write_page(report(), tmp_path / name)
    assert place.read_bytes() == content
    assert sorted(one.name for one in tmp_path.iterdir()) == ["kept", "link", "twin"]


def test_a_page_takes_the_place_of_no_input_whatever_name_leads_there(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    session = tmp_path / "session"
    write_page(report(), session)  # even a file that begins as a page does
    (tmp_path / "link").symlink_to(session)
    os.link(session, tmp_path / "twin")
    named = [tmp_path / "session", tmp_path / "inner" / ".." / "session", tmp_path / "link", tmp_path / "twin"]
    for page in named:
        for given in named:
            with pytest.raises(ConfigError, match=r"it is a file to be replayed, which would be lost"):
                check_page_place(page, [tmp_path / "gone", tmp_path / ("n" * 300), given])
    check_page_place(session, [tmp_path / "gone"])
    check_page_place(tmp_path / "new.html", [session])


def test_a_page_that_cannot_be_read_is_not_written_over(tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    write_page(report(), place)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(ConfigError, match="what stands there cannot be read"):
            check_page_place(place)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_place_that_cannot_be_written_to_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"its folder does not exist; make the folder"):
        check_page_place(tmp_path / "gone" / "page.html")
    with pytest.raises(ConfigError, match="it is no regular file"):
        check_page_place(tmp_path)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for place in (tmp_path / ("n" * 255 + ".html"), loop):
        with pytest.raises(ConfigError, match="its place cannot be looked at"):
            check_page_place(place)
    loop.unlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="it is no regular file"):
        write_page(report(), tmp_path / "pipe")
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    write_page(report(fault_price=2.0), place)
    old = place.read_text("utf-8")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(ConfigError, match=r"it cannot be written \(.+\); free space, or name another file"):
            write_page(report(), place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [one.read_text("utf-8") for one in tmp_path.iterdir()] == [old]
