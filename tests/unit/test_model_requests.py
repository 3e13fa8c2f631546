"""How a request looks to each provider."""

from __future__ import annotations

from typing import Any

import pytest

from assistant.core.messages import Media, Message, ToolCall
from assistant.core.model_api import ModelRequest, SystemBlock, ToolSpec
from assistant.models import anthropic_format, openai_format
from assistant.models.anthropic_format import position_mark
from tests.strict.validate import validate_chat, validate_messages

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s1"}
LATER = {"type": "thinking", "thinking": "", "signature": "s2"}


def request(*messages: Message, **changes: Any) -> ModelRequest:
    return ModelRequest(changes.pop("system", ()), messages, **changes)


def user(text: str, **metadata: Any) -> Message:
    return Message("user", text, metadata=metadata)


def called(*ids: str, text: str = "", **changes: Any) -> Message:
    return Message("assistant", text, tool_calls=tuple(ToolCall(one, "look", {"at": one}) for one in ids), **changes)


def result(call_id: str, text: str = "seen") -> Message:
    return Message("tool", text, tool_call_id=call_id, name="look")


def claude(asked: ModelRequest, model: str = "m") -> dict[str, Any]:
    body = anthropic_format.render_anthropic_request(asked, model)
    assert validate_messages(body) == []
    return body


def chat(asked: ModelRequest) -> dict[str, Any]:
    body = openai_format.render_openai_request(asked, "m")
    assert validate_chat(body) == []
    return body


def kinds(body: dict[str, Any]) -> list[list[str]]:
    return [[block["type"] for block in message["content"]] for message in body["messages"]]


def marked(body: dict[str, Any]) -> list[str]:
    blocks = [*body.get("system", ()), *(block for message in body["messages"] for block in message["content"])]
    return [block.get("text") or block["type"] for block in blocks if "cache_control" in block]


# ------------------------------------------------------------------------------------------------------------ anthropic


def test_results_of_one_message_stand_first_in_the_next_even_when_the_user_spoke_in_between() -> None:
    asked = request(user("go"), called("a", "b"), user("and hurry"), result("a"), result("b"))
    assert kinds(claude(asked)) == [["text"], ["tool_use", "tool_use"], ["tool_result", "tool_result", "text"]]


def test_the_volatile_block_comes_behind_the_user_s_words() -> None:
    body = claude(request(user("what time is it?", volatile="It is noon.")))
    assert [block["text"] for block in body["messages"][0]["content"]] == ["what time is it?", "It is noon."]


def test_blank_texts_are_left_out_and_neighbours_of_one_role_merged() -> None:
    body = claude(request(user("one"), Message("assistant", "  \n"), user("two"), user(" ")))
    assert [block["text"] for block in body["messages"][0]["content"]] == ["one", "two"]
    assert len(body["messages"]) == 1


def test_a_call_without_output_has_a_result_without_content() -> None:
    body = claude(request(user("go"), called("a"), result("a", "")))
    assert body["messages"][-1]["content"] == [{"type": "tool_result", "tool_use_id": "a"}]


def test_breakpoints_stand_at_the_asked_edges() -> None:
    system = (SystemBlock("persona", True), SystemBlock("rules"), SystemBlock("memory", True))
    asked = request(
        user("one"), Message("assistant", "1"), user("two", volatile="now"), system=system, cache_boundaries=(1, 2)
    )
    assert marked(claude(asked)) == ["persona", "memory", "1", "two"]


def test_of_too_many_breakpoints_the_first_and_the_last_three_stay() -> None:
    system = tuple(SystemBlock(text, True) for text in ("a", "b", "c", "d"))
    assert marked(claude(request(user("one"), system=system, cache_boundaries=(0,)))) == ["a", "c", "d", "one"]


def test_no_breakpoint_stands_on_a_thinking_block_or_twice_on_one() -> None:
    asked = request(user("go"), called("a", thinking=(THOUGHT,), model="m"), result("a"), cache_boundaries=(1, 2))
    assert marked(claude(asked)) == ["tool_use", "tool_result"]
    assert marked(claude(request(user("one"), Message("assistant", ""), user(" "), cache_boundaries=(0, 1, 2)))) == [
        "one"
    ]


def test_f09_signed_thinking_goes_back_verbatim_within_its_tool_loop() -> None:
    redacted = {"type": "redacted_thinking", "data": "xyz"}
    asked = request(user("go"), called("a", text="so", thinking=(THOUGHT, redacted), model="m"), result("a"))
    content = claude(asked)["messages"][1]["content"]
    assert content[:2] == [THOUGHT, redacted]
    assert [block["type"] for block in content[2:]] == ["text", "tool_use"]


def test_f09_thinking_is_left_out_whole_once_its_loop_is_closed() -> None:
    before = called("a", thinking=(THOUGHT,), model="m")
    asked = request(
        user("go"), before, result("a"), Message("assistant", "done", thinking=(LATER,), model="m"), user("more")
    )
    assert "thinking" not in str(kinds(claude(asked)))


def test_f09_a_message_that_steers_the_loop_does_not_close_it() -> None:
    asked = request(user("go"), called("a", thinking=(THOUGHT,), model="m"), result("a"), user("the left one"))
    assert kinds(claude(asked))[1] == ["thinking", "tool_use"]


def test_f09_another_model_s_thinking_is_not_sent() -> None:
    asked = request(user("go"), called("a", thinking=(THOUGHT,), model="other"), result("a"))
    assert kinds(claude(asked))[1] == ["tool_use"]


def test_f09_thinking_between_text_and_calls_keeps_its_place() -> None:
    thinking = (THOUGHT, position_mark(characters=5), position_mark(call="a"), LATER)
    asked = request(
        user("go"), called("a", "b", text="first then", thinking=thinking, model="m"), result("a"), result("b")
    )
    content = claude(asked)["messages"][1]["content"]
    assert [block["type"] for block in content] == ["thinking", "text", "tool_use", "thinking", "text", "tool_use"]
    assert content[1]["text"] + content[4]["text"] == "first then"


def test_an_answer_that_was_only_thought_is_left_out() -> None:
    asked = request(user("go"), Message("assistant", "", thinking=(THOUGHT,), model="m"), user("well?"))
    assert kinds(claude(asked)) == [["text", "text"]]


def test_thinking_is_asked_for_by_type_and_sampling_never() -> None:
    body = anthropic_format.render_anthropic_request(request(user("hi")), "m", thinking="adaptive")
    assert body["thinking"] == {"type": "adaptive"}
    assert set(claude(request(user("hi")))) == {"model", "max_tokens", "messages"}


def test_an_image_stands_before_the_words_and_a_file_in_words() -> None:
    media = (Media("image", "image/png", data=PIXEL), Media("file", "text/plain", "a.txt", 12, path="in/a.txt"))
    content = claude(request(Message("user", "what is this?", media=media)))["messages"][0]["content"]
    assert [block["type"] for block in content] == ["image", "text", "text"]
    assert "a.txt" in content[1]["text"]
    assert "in/a.txt" in content[1]["text"]


def test_where_a_picture_is_kept_that_is_shown_is_said_beside_it() -> None:
    asked = request(
        Message("user", "crop it", media=(Media("image", "image/png", "b.png", 9, PIXEL, "received/b.png"),))
    )
    for body in (claude(asked), chat(asked)):
        _, place, _ = body["messages"][0]["content"]
        assert (
            place["text"]
            == '[image "b.png" (image/png, 9 bytes) is shown here; it is in the workspace as received/b.png]'
        )


@pytest.mark.parametrize(
    "media",
    [
        Media("image", "image/tiff", "scan", data=PIXEL),
        Media("image", "image/png", "big", path="big.png"),
        Media("image", "image/png", "huge", data="A" * 7_000_000),
    ],
)
def test_an_image_that_the_provider_would_refuse_is_described(media: Media) -> None:
    content = claude(request(Message("user", "see", media=(media,))))["messages"][0]["content"]
    assert [block["type"] for block in content] == ["text", "text"]
    assert media.name in content[0]["text"]


# -------------------------------------------------------------------------------------------------------------- openai


def test_system_blocks_are_one_message_at_the_start() -> None:
    body = chat(request(user("hi"), system=(SystemBlock("one", True), SystemBlock(" "), SystemBlock("two"))))
    assert body["messages"][0] == {"role": "system", "content": "one\n\ntwo"}


def test_neighbours_are_merged_for_chat_templates() -> None:
    body = chat(
        request(user("a", volatile="noon"), user("b"), Message("assistant", "c"), Message("assistant", ""), user("d"))
    )
    assert [(m["role"], m["content"]) for m in body["messages"]] == [
        ("user", "a\n\nnoon\n\nb"),
        ("assistant", "c"),
        ("user", "d"),
    ]


def test_calls_carry_their_arguments_as_json_text() -> None:
    body = chat(request(user("go"), called("a"), result("a", "")))
    assert body["messages"][1]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "a"}'}
    assert body["messages"][2]["content"] == openai_format.NO_OUTPUT


def test_parts_appear_only_where_an_image_is() -> None:
    body = chat(request(Message("user", "what?", media=(Media("image", "image/png", data=PIXEL),))))
    assert [part["type"] for part in body["messages"][0]["content"]] == ["image_url", "text"]


def test_openai_s_own_models_get_the_new_name_of_the_cap() -> None:
    body = openai_format.render_openai_request(request(user("hi")), "m", output_limit="max_completion_tokens")
    assert validate_chat(body, hosted=True) == []
    assert validate_chat(openai_format.render_openai_request(request(user("hi")), "m"), hosted=True) != []


# ---------------------------------------------------------------------------------------------------------------- both


def test_ids_that_come_again_in_every_round_are_told_apart() -> None:
    asked = request(user("go"), called("call_0"), result("call_0", "one"), called("call_0"), result("call_0", "two"))
    messages = claude(asked)["messages"]
    assert [messages[i]["content"][0]["id"] for i in (1, 3)] == ["call_0", "call_0_2"]
    assert messages[4]["content"][0]["tool_use_id"] == "call_0_2"
    chat(asked)


def test_ids_and_names_of_other_providers_are_respelled_alike_in_call_and_result() -> None:
    long = "functions.look:0/" + "x" * 60
    asked = request(user("go"), Message("assistant", tool_calls=(ToolCall(long, "look at.this", {}),)), result(long))
    block = claude(asked)["messages"][1]["content"][0]
    assert block["name"] == "look_at_this"
    assert len(block["id"]) <= 40
    assert claude(asked)["messages"][2]["content"][0]["tool_use_id"] == block["id"]
    chat(asked)


def test_lone_surrogates_are_replaced_and_pairs_joined_wherever_they_stand() -> None:
    asked = request(
        user("a\ud800b"),
        Message("assistant", "\ud83d\ude00", tool_calls=(ToolCall("c", "look", {"\udc00": ["\ud800"]}),)),
        result("c", "\udfff"),
        system=(SystemBlock("x\ud800"),),
        tools=(LOOK,),
    )
    assert claude(asked)["messages"][1]["content"][0]["text"] == "\U0001f600"
    assert "�" in chat(asked)["messages"][1]["content"]


def test_the_same_request_gives_the_same_bytes() -> None:
    asked = request(
        user("go"), called("a"), result("a"), tools=(LOOK,), system=(SystemBlock("s", True),), cache_boundaries=(2,)
    )
    assert anthropic_format.render_anthropic_request(asked, "m") == anthropic_format.render_anthropic_request(
        asked, "m"
    )
    assert openai_format.render_openai_request(asked, "m") == openai_format.render_openai_request(asked, "m")


def test_tools_that_change_are_sent_as_they_are_now() -> None:
    def sent(*names: str) -> list[str]:
        tools = tuple(ToolSpec(name, f"Does {name}.", {"type": "object"}) for name in names)
        asked = request(user("go"), tools=tools)
        assert claude(asked)["tools"] == claude(asked)["tools"]
        names_to_chat = [tool["function"]["name"] for tool in chat(asked)["tools"]]
        assert names_to_chat == [tool["name"] for tool in claude(asked)["tools"]]
        return names_to_chat

    for number in range(40):
        assert sent("walk", f"t{number}") == ["walk", f"t{number}"]


def test_notes_of_the_runtime_that_reach_the_form_are_never_instructions() -> None:
    asked = request(Message("system", "[note] an edit"), user("hi"))
    assert [message["role"] for message in claude(asked)["messages"]] == ["user"]
    assert [message["role"] for message in chat(asked)["messages"]] == ["user"]
