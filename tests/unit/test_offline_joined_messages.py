"""Offline mode where several messages are answered in one turn."""

from __future__ import annotations

from assistant.core.messages import Message
from tests.support.offline_replies import reply_to, user


async def test_messages_that_joined_the_turn_are_answered_as_well() -> None:
    earlier = user("what is on my list?", id=1, metadata={"turn": "t0"})
    first = user("what time is it?", id=5, metadata={"turn": "t5"})
    joined = user("and where is the key?", id=7, metadata={"turn": "t5"})
    reply = (await reply_to(earlier, Message("assistant", "(failed)"), first, joined)).message
    assert [(call.id, call.name) for call in reply.tool_calls] == [
        ("offline_5_0_0", "current_time"),
        ("offline_7_0_0", "search_history"),
    ]


async def test_requests_of_one_turn_that_read_the_same_read_it_once() -> None:
    """Seven schedules with one prompt that came due together were taken for a loop."""
    asked = [user("What's on my list?", id=40 + n, metadata={"turn": "t"}) for n in range(7)]
    first = (await reply_to(*asked)).message
    assert [call.name for call in first.tool_calls] == ["manage_todo_list"]
    listed = Message("tool", 'To-do list: 1 open\n- [ ] 1: "buy oil"', tool_call_id=first.tool_calls[0].id)
    reply = (await reply_to(*asked, first, listed)).message
    assert reply.tool_calls == () and reply.content.count("buy oil") == 1


async def test_what_was_read_before_a_change_of_the_same_turn_is_read_again_after_it() -> None:
    adds = user("Add milk to my shopping list.", metadata={"turn": "t"})
    asks = user("What's on my list?", id=42, metadata={"turn": "t"})
    steps: list[Message] = [adds]
    listed = 'To-do list: 1 open\n- [ ] 1: "milk"'
    for _ in range(6):
        reply = (await reply_to(*steps)).message
        if not reply.tool_calls:
            break
        steps += [reply, *(Message("tool", listed, tool_call_id=call.id) for call in reply.tool_calls)]
    again = (await reply_to(*steps, asks)).message
    assert [call.arguments for call in again.tool_calls] == [{"action": "list"}]


async def test_a_request_keeps_to_what_it_read_with_others_when_one_of_them_changed_it() -> None:
    """Both read the list in one round; in the next the one adds to it, and the other takes something away."""
    asked = user("Cancel the milk. Remove the eggs from my list.", metadata={"turn": "t"})
    before = 'To-do list: 2 open\n- [ ] 1: "milk"\n- [ ] 2: "eggs"'
    first = (await reply_to(asked)).message
    assert [call.arguments for call in first.tool_calls] == [{"action": "list"}]
    steps: list[Message] = [asked, first, Message("tool", before, tool_call_id=first.tool_calls[0].id)]
    second = (await reply_to(*steps)).message
    removed = [call.arguments["ids"] for call in second.tool_calls]
    assert removed == [[1], [2]]
    changed = ['Removed: 1\nTo-do list: 1 open\n- [ ] 2: "eggs"', "Removed: 2\nTo-do list: 0 open"]
    steps.append(second)
    for call, text in zip(second.tool_calls, changed, strict=True):
        steps.append(Message("tool", text, tool_call_id=call.id))
    assert (await reply_to(*steps)).message.tool_calls == ()
