"""Sends a message over a link and waits for what becomes of it.

The answer counts as given when it stands on standard output, so its delivery is confirmed only after `show` returned.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

from assistant.cli.handover import HandedOver
from assistant.cli.link import Link, LinkLost
from assistant.cli.output import print_remark
from assistant.commands.argv import command_name, rewrite_for_shell
from assistant.core.errors import AssistantError, NothingYet, StoreError
from assistant.core.messages import Media
from assistant.core.records import InboxReceipt, is_answer_key

# The delivery follows the end of a turn at once; where another terminal's message led that turn, none comes here.
DELIVERED_WITHIN = 2.0
_ENDS = ("answered", "failed", "superseded")


def new_external_id() -> str:
    return str(uuid.uuid4())


def is_retry(text: str) -> bool:
    """Whether a line is the command that is answered like a message."""
    return command_name(text) == "retry" and len(text.split()) == 1


async def ask_last_question_again(link: Link, session: str) -> tuple[str, InboxReceipt]:
    """What `/retry` says, and the message that it sent, which is answered like any other. Raises `NothingYet`."""
    from assistant.commands.table import DEFAULT_MAX_SECONDS  # the whole table: only where a command was typed

    done = await link.run_argv(("retry",), session, DEFAULT_MAX_SECONDS)
    if done.value is None:
        raise NothingYet(done.text)
    return done.text, InboxReceipt(done.value["inbox_id"], done.value["message_id"])


async def ask_and_wait(
    link: Link,
    text: str,
    session: str,
    external_id: str,
    show: Callable[[Mapping[str, Any]], None],
    media: Sequence[Media] = (),
) -> Mapping[str, Any]:
    """Say `text`, with files, then `wait_for_answer`."""
    accepted = await link.send_message(text, external_id, session, media)
    return await wait_for_answer(link, session, accepted, show)


async def wait_for_answer(
    link: Link, session: str, accepted: InboxReceipt, show: Callable[[Mapping[str, Any]], None]
) -> Mapping[str, Any]:
    """Wait until the turn of a message has ended, `show` what became of it (`Link.result`), then confirm its delivery.
    Notices and reminders that come meanwhile are shown on standard error, and confirmed.

    Cancelled, it stops the turn. Raises what a `Link` raises, and `StoreError` where the home cannot be written."""
    shown: list[str] = []
    try:
        async with AsyncExitStack() as streams:
            result, key = await _follow_answer(link, streams, session, accepted, shown)
            for notice in result["notices"]:
                # Somebody else confirmed it, or it was told before we listened.
                if not any(notice in text for text in shown):
                    print_remark(rewrite_for_shell(notice))
                    shown.append(notice)
            show(result := {**result, "notices": tuple(shown)})
            if key:
                with contextlib.suppress(LinkLost):
                    await link.acknowledge(key)
        return result
    except asyncio.CancelledError:
        await _give_up(link, accepted)
        raise


async def _follow_answer(
    link: Link, streams: AsyncExitStack, session: str, accepted: InboxReceipt, shown: list[str]
) -> tuple[Mapping[str, Any], str]:
    """What became of the message, and the key of its delivery, "" where none comes here. A delivery is confirmed while
    its stream is open."""
    result: Mapping[str, Any] = {"state": ""}
    events = await streams.enter_async_context(aclosing(link.events(session, accepted.inbox_id)))
    try:
        async with asyncio.timeout(None) as waiting:
            async for name, data in events:
                if name == "notice" and data.get("disk"):
                    # No one here can make room: the message is kept, and the caller gets an error instead of waiting.
                    raise StoreError(str(data["text"]))
                if name == "deliver" and not _is_answer(data, accepted):
                    await _show_beside(link, data, shown)
                if name in ("hello", "deliver") or (name == "turn" and data["state"] != "started"):
                    result = await link.result(accepted.inbox_id)
                if result["state"] in _ENDS and name == "deliver" and _is_answer(data, accepted):
                    return result, str(data["key"])
                if result["state"] in _ENDS:
                    waiting.reschedule(asyncio.get_running_loop().time() + DELIVERED_WITHIN)
    except TimeoutError:
        return result, ""
    except HandedOver:
        if result["state"] not in _ENDS:
            raise
        # Whoever took over delivers it; how the turn ended is known here.
        return result, (await _follow_answer(link, streams, session, accepted, shown))[1]
    if result["state"] not in _ENDS:
        raise LinkLost()
    return result, ""


def _is_answer(delivery: Mapping[str, Any], accepted: InboxReceipt) -> bool:
    """Whether it answers the message, or says why there is no answer."""
    return delivery["inbox_id"] == accepted.inbox_id and is_answer_key(str(delivery["key"]))


async def _show_beside(link: Link, delivery: Mapping[str, Any], shown: list[str]) -> None:
    print_remark(rewrite_for_shell(delivery["body"]))
    shown.append(delivery["body"])
    with contextlib.suppress(LinkLost):
        await link.acknowledge(str(delivery["key"]))


async def _give_up(link: Link, accepted: InboxReceipt) -> None:
    """Stop the turn of this message, and of no other."""
    with contextlib.suppress(AssistantError):
        result = await link.result(accepted.inbox_id)
        if result["state"] == "running":
            await link.stop(result["session"])
