"""Which conversation a request belongs to, and where its agent works."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.gateway.identity import (
    SESSION_HEADERS,
    history_digest,
    named_session,
    opening_digest,
    session_key,
    working_folder,
)
from context_gatekeeper.wire import decode_request
from context_gatekeeper.wire.records import WireApi, WireRequest


def request_of(*told: tuple[str, Any], system: Any = None, model: str = "claude-opus-4-8", **more: Any) -> WireRequest:
    messages = [{"role": role, "content": content} for role, content in told]
    body = {"model": model, "messages": messages, **({"system": system} if system else {}), **more}
    return decode_request(WireApi.MESSAGES, json.dumps(body).encode())


GO = ("user", "Go.")


def test_headers_are_believed_in_order_and_empty_ones_are_not() -> None:
    assert named_session({"x-session-id": "b", "x-claude-code-session-id": "a"}) == "a"
    assert named_session({"session-id": "", "thread-id": "t"}) == "t"
    assert named_session({}) == ""
    assert all(named_session({name: "n"}) == "n" for name in SESSION_HEADERS)


def test_a_named_session_is_one_conversation_for_each_model_and_system_text() -> None:
    headers = {"session-id": "abc"}
    keys = {
        session_key(request, headers, "cred").name
        for request in (
            request_of(GO),
            request_of(GO, system="sub-agent"),
            request_of(GO, model="claude-haiku-4-5"),
            request_of(GO, ("assistant", "Yes."), ("user", "On.")),
        )
    }
    assert len(keys) == 3
    assert all(name.startswith("abc/") for name in keys)


def test_without_a_name_the_first_message_tells() -> None:
    """Two chats with the same system text stay apart; the same one grown is one."""
    one, grown, other = (
        session_key(request_of(*told, system="s" * 4000), {}, "c")
        for told in ((GO,), (GO, ("assistant", "Yes."), ("user", "On.")), (("user", "Stop."),))
    )
    assert one == grown != other


def test_two_credentials_never_meet() -> None:
    one, other, nobody = (session_key(request_of(GO), {"session-id": "a"}, who) for who in ("1" * 32, "2" * 32, ""))
    assert len({one, other, nobody}) == len({one.pool_name, other.pool_name, nobody.pool_name}) == 3


@pytest.mark.parametrize("name", ["a b", "$(rm -rf /)", "a\nb", "../../etc", "x" * 121, "名"])
def test_names_that_could_be_something_else_are_shown_as_digests(name: str) -> None:
    shown = session_key(request_of(GO), {"session-id": name}, "").name
    assert name not in shown
    assert shown == session_key(request_of(GO), {"session-id": name}, "").name


def test_the_body_names_a_session_where_no_header_does() -> None:
    request = request_of(GO, metadata={"user_id": json.dumps({"session_id": "from-body"})})
    assert session_key(request, {}, "").name.startswith("from-body/")
    assert session_key(request, {"session-id": "h"}, "").name.startswith("h/")


def test_digests_tell_openings_and_histories_apart() -> None:
    one, grown = request_of(GO), request_of(GO, ("assistant", "Yes."), ("user", "On."))
    assert opening_digest(one) == opening_digest(grown) != opening_digest(request_of(("user", "Stop.")))
    assert history_digest(one) != history_digest(grown)
    assert opening_digest(decode_request(WireApi.MESSAGES, b'{"messages": []}')) == ""


ENVIRONMENT = "<env>\nWorking directory: /srv/my shop\nPlatform: linux\n</env>"


@pytest.mark.parametrize(
    ("request_", "folder"),
    [
        (request_of(GO, system=ENVIRONMENT), "/srv/my shop"),
        (request_of(GO, system=[{"type": "text", "text": " - Primary working directory: /srv/a"}]), "/srv/a"),
        (request_of(GO, ("system", ENVIRONMENT)), "/srv/my shop"),
        (request_of(("user", f"<system-reminder>\n{ENVIRONMENT}\n</system-reminder>")), "/srv/my shop"),
        (request_of(("user", ENVIRONMENT)), ""),
        (request_of(GO, ("assistant", ENVIRONMENT), ("user", "Yes.")), ""),
        (request_of(GO, system="Working directory: C:/x"), ""),
        (request_of(GO), ""),
    ],
)
def test_the_program_says_where_the_agent_works(request_: WireRequest, folder: str) -> None:
    """What a person typed or a model wrote is not believed."""
    assert working_folder(request_) == folder


def test_codex_says_where_it_works() -> None:
    told = "<environment_context>\n  <cwd>/srv/shop</cwd>\n  <shell>bash</shell>\n</environment_context>"
    body = {
        "model": "g",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": told}]}],
    }
    assert working_folder(decode_request(WireApi.RESPONSES, json.dumps(body).encode())) == "/srv/shop"
