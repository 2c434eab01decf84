"""What the planner changes, as bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_gatekeeper.errors import WireFormatError
from context_gatekeeper.wire import decode_request, encode_request
from context_gatekeeper.wire.records import PartKey, RequestEdits, WireApi

P = PartKey
MESSAGES, CHAT, RESPONSES = WireApi.MESSAGES, WireApi.CHAT, WireApi.RESPONSES
MARK = '"cache_control":{"type":"ephemeral"}'


def edited(api: WireApi, listed: str, **edits: Any) -> str:
    """The list of messages, or what stands in its place, after the edits."""
    head = '{"input" :' if api is RESPONSES else '{"messages" :'
    body = f'{head}{listed} , "x":1.50}}'
    for name in ("dropped", "marked", "marks_added"):
        edits[name] = frozenset(edits.get(name, ()))
    sent = encode_request(decode_request(api, body.encode()), RequestEdits(**edits)).decode()
    assert sent.startswith(head)
    assert sent.endswith(' , "x":1.50}')
    json.loads(sent)
    return sent[len(head) : -len(' , "x":1.50}')]


def refusal(api: WireApi, listed: str, **edits: Any) -> str:
    with pytest.raises(WireFormatError) as caught:
        edited(api, listed, **edits)
    assert caught.value.next_step == "send the request as it came"
    return caught.value.cause


USER = '{"role":"user","content":"h\\u0069"}'
SAID = '{"role":"assistant","content":"so"}'
LOOP = (
    '{"role":"assistant","content":[{"type":"thinking","thinking":"t1","signature":"sigA"},'
    '{"type":"tool_use","id":"u1","name":"Read","input":{}}]},'
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"u1","content":"b\\u0069g"}]}'
)


# -- texts ---------------------------------------------------------------------------------------------


def test_thinking_stays_byte_for_byte_while_the_result_behind_it_becomes_a_stub() -> None:
    """O10."""
    assert edited(MESSAGES, f"[{USER},{LOOP}]", texts={P(2, 0): 'a "stub"'}) == f"[{USER},{LOOP}]".replace(
        "b\\u0069g", 'a \\"stub\\"'
    )


def test_texts_are_written_in_their_own_characters() -> None:
    assert edited(MESSAGES, f"[{USER}]", texts={P(0, 0): "é😀\ud83d"}) == '[{"role":"user","content":"é😀\\ud83d"}]'


def test_new_arguments_stand_as_they_are_in_an_object_and_as_a_literal_in_a_text() -> None:
    assert '"input":{"a": 1}}' in edited(MESSAGES, f"[{LOOP}]", texts={P(0, 1): '{"a": 1}'})
    called = '[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}]'
    assert '"arguments":"{\\"a\\": 1}"' in edited(CHAT, called, texts={P(0, 0): '{"a": 1}'})


def test_a_result_of_null_gets_a_text() -> None:
    null = '[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":null}]}]'
    assert edited(MESSAGES, null, texts={P(0, 0): "x"}) == null.replace("null", '"x"')


# -- parts that leave ----------------------------------------------------------------------------------

PIECES = (
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":'
    '[{"type":"image","source":{"data":"aa"}} , {"type":"text","text":"x"}],"is_error":false}, '
    '{"type":"text","text":"y"}]}'
)


def test_a_result_leaves_when_all_its_pieces_do() -> None:
    assert edited(MESSAGES, f"[{PIECES}]", dropped=[P(0, 1)]) == f"[{PIECES}]".replace(
        '{"type":"image","source":{"data":"aa"}} , ', ""
    )
    assert edited(MESSAGES, f"[{PIECES}]", dropped=[P(0, 0), P(0, 1), P(0, 2)]) == (
        '[{"role":"user","content":[{"type":"text","text":"y"}]}]'
    )


def test_a_result_whose_head_stays_keeps_its_place_without_content() -> None:
    assert edited(MESSAGES, f"[{PIECES}]", dropped=[P(0, 1), P(0, 2)]) == (
        '[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":false}, '
        '{"type":"text","text":"y"}]}]'
    )
    image = '{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"u"}]}'
    assert edited(RESPONSES, f"[{image}]", dropped=[P(0, 1)]) == (
        '[{"type":"function_call_output","call_id":"a","output":""}]'
    )


def test_a_message_leaves_with_its_last_part_so_that_none_is_ever_empty() -> None:
    """O08."""
    block = '{"role":"user","content":[{"type":"text","text":"ours"}]}'
    assert edited(MESSAGES, f"[{USER},{SAID}, {block} ]", dropped=[P(2, 0)]) == f"[{USER},{SAID} ]"
    assert edited(MESSAGES, f"[{block} , {USER}]", dropped=[P(0, 0)]) == f"[{USER}]"


def test_a_message_of_which_nothing_but_thinking_would_be_left_leaves() -> None:
    assert edited(MESSAGES, f"[{USER},{LOOP}]", dropped=[P(1, 1), P(2, 0)]) == f"[{USER}]"
    thinking = '{"role":"assistant","content":"x","reasoning_content":"hm"}'
    assert edited(CHAT, f"[{USER},{thinking}]", dropped=[P(1, 1)]) == f"[{USER}]"


def test_no_request_without_messages_is_made() -> None:
    assert refusal(MESSAGES, f"[{USER}]", dropped=[P(0, 0)]) == "no message would be left"
    assert refusal(RESPONSES, '"hi"', dropped=[P(0, 0)]) == "no message would be left"


def test_an_empty_text_leaves_where_its_message_is_changed_and_stays_where_it_is_not() -> None:
    """O09."""
    said = (
        '{"role":"assistant","content":[{"type":"text","text":""},{"type":"tool_use","id":"u1","name":"f","input":{}}]}'
    )
    answered = '{"role":"user","content":[{"type":"tool_result","tool_use_id":"u1","content":"ok"}]}'
    both = f"[{USER},{said},{answered}]"
    assert said in edited(MESSAGES, both, texts={P(2, 0): "stub"})
    assert edited(MESSAGES, both, texts={P(1, 1): '{"n":1}'}) == (
        both.replace('{"type":"text","text":""},', "").replace('"input":{}', '"input":{"n":1}')
    )
    assert edited(MESSAGES, f"[{USER},{SAID}]", texts={P(1, 0): ""}) == f"[{USER}]"
    assert '"text":""' in edited(CHAT, '[{"role":"user","content":[{"type":"text","text":"a"}]}]', texts={P(0, 0): ""})


def test_members_of_a_chat_message_leave_with_what_they_hold() -> None:
    calls = '"tool_calls":[{"id":"a","function":{"arguments":"{}"}}, {"id":"b","function":{"arguments":"{}"}}]'
    thinking = '"reasoning":"hm","reasoning_content":"hm","reasoning_details":[{"text":"hm"}]'
    said = f'{{"role":"assistant",{thinking},"content":"so",{calls}}}'
    assert edited(CHAT, f"[{said}]", dropped=[P(0, 0)]) == f'[{{"role":"assistant","content":"so",{calls}}}]'
    assert edited(CHAT, f"[{said}]", dropped=[P(0, 1), P(0, 3)]) == f"[{said}]".replace('"so"', "null").replace(
        ', {"id":"b","function":{"arguments":"{}"}}', ""
    )
    assert edited(CHAT, f"[{said}]", dropped=[P(0, 2), P(0, 3)]) == f"[{said}]".replace(f",{calls}", "")


def test_sealed_thinking_stays_when_readable_thinking_leaves() -> None:
    said = '{"role":"assistant","content":"so","reasoning":"hm","reasoning_details":[{"data":"zz"}]}'
    assert edited(CHAT, f"[{said}]", dropped=[P(0, 0)]) == f"[{said}]".replace('"reasoning":"hm",', "")


def test_a_text_of_a_list_leaves_alone() -> None:
    parts = '[{"role":"user","content":[{"type":"text","text":"a"},"b",{"type":"text","text":"c"}]}]'
    assert edited(CHAT, parts, dropped=[P(0, 1)]) == parts.replace(',"b"', "")


# -- reasoning items -----------------------------------------------------------------------------------

REASONING = '{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"zz"}'
ANSWER = '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}'


def test_reasoning_leaves_with_what_follows_it_and_only_so() -> None:
    """O11."""
    items = f"[{USER}, {REASONING}, {REASONING}, {ANSWER}, {USER}]"
    assert edited(RESPONSES, items, dropped=[P(3, 0)]) == f"[{USER}, {USER}]"
    assert edited(RESPONSES, items, dropped=[P(1, 0), P(1, 1), P(2, 0)]) == items
    loose = f"[{USER}, {REASONING}]"
    assert edited(RESPONSES, loose, dropped=[P(1, 0)]) == loose
    assert edited(RESPONSES, loose, dropped=[P(1, 0), P(1, 1)]) == f"[{USER}]"
    empty = '{"type":"reasoning","summary":[]}'
    assert edited(RESPONSES, f"[{USER},{empty},{USER}]", dropped=[P(2, 0)]) == f"[{USER},{empty}]"


# -- texts that are added ------------------------------------------------------------------------------


def test_anthropic_texts_are_added_as_blocks_behind_what_the_message_holds() -> None:
    assert edited(MESSAGES, f"[{USER}]", added={0: ("a", "b")}) == (
        '[{"role":"user","content":[{"type":"text","text":"h\\u0069"},{"type":"text","text":"a"},{"type":"text","text":"b"}]}]'
    )
    assert edited(MESSAGES, f"[{LOOP}]", added={1: ("a",)}) == f"[{LOOP}]".replace(
        'g"}]', 'g"},{"type":"text","text":"a"}]'
    )
    assert edited(MESSAGES, '[{"role":"user","content":[ ]}]', added={0: ("a",)}) == (
        '[{"role":"user","content":[{"type":"text","text":"a"} ]}]'
    )


def test_a_message_that_loses_all_parts_stays_with_what_is_added() -> None:
    added = {0: ("a",)}
    new = '[{"role":"user","content":[{"type":"text","text":"a"}]}]'
    assert edited(MESSAGES, f"[{USER}]", dropped=[P(0, 0)], added=added) == new
    assert edited(MESSAGES, '[{"role":"user","content":""}]', added=added) == new
    block = '[{"role":"user","content":[{"type":"text","text":"old"}]}]'
    assert edited(MESSAGES, block, dropped=[P(0, 0)], added=added) == new
    assert edited(CHAT, f"[{USER}]", dropped=[P(0, 0)], added=added) == '[{"role":"user","content":"a"}]'
    assert edited(CHAT, '[{"role":"user","content":""}]', added=added) == '[{"role":"user","content":"a"}]'


def test_a_system_message_in_between_gets_a_users_message_behind_it() -> None:
    note = '{"role":"system","content":"note"}'
    assert edited(MESSAGES, f"[{USER},{note},{SAID}]", added={1: ("a", "b")}, marks_added=[1]) == (
        f'[{USER},{note},{{"role":"user","content":[{{"type":"text","text":"a"}},'
        f'{{"type":"text","text":"b",{MARK}}}]}},{SAID}]'
    )
    assert edited(MESSAGES, f"[{USER},{note}]", dropped=[P(1, 0)], added={1: ("a",)}) == (
        f'[{USER},{{"role":"user","content":[{{"type":"text","text":"a"}}]}}]'
    )


def test_chat_texts_are_joined_to_a_text_and_put_behind_a_list() -> None:
    assert edited(CHAT, f"[{USER}]", added={0: ("a", "b")}) == '[{"role":"user","content":"h\\u0069\\n\\na\\n\\nb"}]'
    assert edited(CHAT, f"[{USER}]", texts={P(0, 0): "new"}, added={0: ("a",)}) == (
        '[{"role":"user","content":"new\\n\\na"}]'
    )
    listed = '[{"role":"user","content":[{"type":"text","text":"x"}]}]'
    assert edited(CHAT, listed, added={0: ("a",)}) == listed.replace("}]}]", '},{"type":"text","text":"a"}]}]')


def test_chat_texts_behind_results_come_in_a_message_behind_all_of_them() -> None:
    called = '{"role":"assistant","tool_calls":[{"id":"a","function":{}},{"id":"b","function":{}}]}'
    results = '{"role":"tool","tool_call_id":"a","content":"x"}, {"role":"tool","tool_call_id":"b","content":"y"}'
    new = '{"role":"user","content":"one\\n\\ntwo"},{"role":"user","content":"three"}'
    added = {1: ("one", "two"), 2: ("three",)}
    assert edited(CHAT, f"[{called},{results} , {USER}]", added=added) == f"[{called},{results},{new} , {USER}]"
    assert edited(CHAT, f"[{called},{results}]", added={1: ("one",)}) == (
        f'[{called},{results},{{"role":"user","content":"one"}}]'
    )
    odd = '{"role":"user","content":null}'
    assert edited(CHAT, f"[{odd}]", added={0: ("a",)}) == f'[{odd},{{"role":"user","content":"a"}}]'


def test_responses_texts_are_joined_put_behind_a_list_or_in_an_item_behind_all_outputs() -> None:
    assert edited(RESPONSES, '"h\\u0069"', added={0: ("a",)}) == '"h\\u0069\\n\\na"'
    assert edited(RESPONSES, '"hi"', texts={P(0, 0): "x"}) == '"x"'
    assert edited(RESPONSES, '"hi"', dropped=[P(0, 0)], added={0: ("a",)}) == '"a"'
    assert edited(RESPONSES, f"[{USER}]", added={0: ("a",)}) == '[{"role":"user","content":"h\\u0069\\n\\na"}]'
    listed = '[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}]'
    part = '{"type":"input_text","text":"a"}'
    assert edited(RESPONSES, listed, added={0: ("a",)}) == listed.replace("}]}]", f"}},{part}]}}]")
    outputs = ",".join(f'{{"type":"function_call_output","call_id":"{one}","output":"x"}}' for one in "ab")
    item = f'{{"type":"message","role":"user","content":[{part}]}}'
    assert edited(RESPONSES, f"[{outputs},{USER}]", added={0: ("a",)}) == f"[{outputs},{item},{USER}]"
    unknown = '{"type":"item_reference","id":"x"}'
    assert edited(RESPONSES, f"[{unknown}]", added={0: ("a",)}) == f"[{unknown},{item}]"


# -- breakpoints ---------------------------------------------------------------------------------------


def test_a_breakpoint_goes_to_the_block_and_of_a_piece_to_its_result() -> None:
    assert edited(MESSAGES, f"[{PIECES}]", marked=[P(0, 1), P(0, 2), P(0, 3)]) == f"[{PIECES}]".replace(
        "false}", f"false,{MARK}}}"
    ).replace('"y"}', f'"y",{MARK}}}')
    assert edited(MESSAGES, f"[{USER},{SAID}]", marked=[P(0, 0)], mark_ttl="1h") == (
        '[{"role":"user","content":[{"type":"text","text":"h\\u0069",'
        f'"cache_control":{{"type":"ephemeral","ttl":"1h"}}}}]}},{SAID}]'
    )


def test_a_marked_text_may_change_at_the_same_time() -> None:
    assert edited(MESSAGES, f"[{USER}]", marked=[P(0, 0)], texts={P(0, 0): "x"}) == (
        f'[{{"role":"user","content":[{{"type":"text","text":"x",{MARK}}}]}}]'
    )
    assert edited(MESSAGES, f"[{LOOP}]", marked=[P(1, 0)], texts={P(1, 0): "x"}) == f"[{LOOP}]".replace(
        '"b\\u0069g"', f'"x",{MARK}'
    )


@pytest.mark.parametrize(
    "block",
    [
        '{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}',
        '{"type":"thinking","thinking":"x","signature":"s"}',
        '{"type":"newest_invention"}',
        '"plain"',
    ],
)
def test_no_breakpoint_is_put_where_one_is_or_none_may_be(block: str) -> None:
    message = f'[{{"role":"user","content":[{block}]}}]'
    assert edited(MESSAGES, message, marked=[P(0, 0)]) == message


def test_a_marked_piece_gets_no_second_breakpoint_and_its_neighbour_gives_one_to_the_result() -> None:
    piece = f'{{"type":"text","text":"x",{MARK}}}'
    message = f'[{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":[{piece},"y"]}}]}}]'
    assert edited(MESSAGES, message, marked=[P(0, 0)]) == message
    assert edited(MESSAGES, message, marked=[P(0, 1)]) == message.replace("]}]}]", f"],{MARK}}}]}}]")


def test_a_breakpoint_of_null_becomes_one_and_documents_take_one() -> None:
    message = '[{"role":"user","content":[{"type":"document","cache_control":null}]}]'
    assert edited(MESSAGES, message, marked=[P(0, 0)]) == message.replace("null", '{"type":"ephemeral"}')


def test_a_part_that_leaves_gets_none() -> None:
    message = '[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}]'
    assert edited(MESSAGES, message, marked=[P(0, 0)], dropped=[P(0, 0)]) == message.replace(
        '{"type":"text","text":"x"},', ""
    )


def test_content_of_another_kind_gets_none() -> None:
    message = '[{"role":"user","content":{"type":"document"}}]'
    assert edited(MESSAGES, message, marked=[P(0, 0)]) == message


# -- what cannot be done -------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [P(9, 0), P(0, 9), P(-1, 0), P(0, -1)])
def test_a_part_that_is_not_there_is_refused(key: PartKey) -> None:
    for edits in ({"texts": {key: "x"}}, {"dropped": [key]}, {"marked": [key]}):
        assert "has no part" in refusal(MESSAGES, f"[{USER}]", **edits)


@pytest.mark.parametrize(
    ("edits", "cause"),
    [
        ({"texts": {P(1, 0): "x"}}, "holds no text that can be replaced"),
        ({"texts": {P(1, 1): "[]"}}, "are no JSON object"),
        ({"texts": {P(1, 1): "{"}}, "are no JSON object"),
        ({"added": {9: ("x",)}}, "there is no message 9"),
        ({"added": {1: ("x",)}}, "is the model's"),
        ({"added": {0: ()}}, "is empty"),
        ({"added": {0: ("x", "")}}, "is empty"),
        ({"marks_added": [0]}, "where none is"),
    ],
)
def test_edits_that_make_no_sense_are_refused(edits: dict[str, Any], cause: str) -> None:
    assert cause in refusal(MESSAGES, f"[{USER},{LOOP}]", **edits)


@pytest.mark.parametrize("edits", [{"marked": [P(0, 0)]}, {"added": {0: ("x",)}, "marks_added": [0]}])
def test_breakpoints_are_anthropics_alone(edits: dict[str, Any]) -> None:
    assert refusal(CHAT, f"[{USER}]", **edits) == "the API takes no cache breakpoints"


@pytest.mark.parametrize("api", [MESSAGES, CHAT])
def test_edits_of_nothing_change_nothing(api: WireApi) -> None:
    body = b'{ "messages":[]}'
    assert encode_request(decode_request(api, body), RequestEdits()) == body
