"""The Slack bridge: an app of the owner in one workspace, over Socket Mode, so that this machine needs no public
address.

- A message has the key of its delivery as hidden metadata. Before a message that may have arrived is resent, the
  channel is searched for it (I8). If that is not possible, the uncertainty is reported.
- Messages mention nobody, and have no link previews.
- Slack has no typing indicator for apps, and marks edits, so nothing is shown before the answer is complete.
"""

from __future__ import annotations

import base64
from typing import Any

from assistant.bridges.slack import events as form
from assistant.bridges.slack.api import OFFICIAL, SlackApi, SlackRefusal
from assistant.bridges.slack.events import JsonObject
from assistant.bridges.slack.receiver import SlackReceiver
from assistant.core.bridge_api import BridgeCapabilities, InboundPort, OutgoingPart, TurnEvent
from assistant.core.errors import BridgeError
from assistant.core.text import lazy_regex

_TOKENS = lazy_regex(r"(xoxb-[A-Za-z0-9_-]{1,300})[ ,]{1,9}(xapp-[A-Za-z0-9_-]{1,300})")
_TIMEOUT_SECONDS = 30.0
_DEDUPE_SECONDS = 24 * 3600.0
_PAGE = 200
# Maximum number of pages of a channel to search for a message that may have arrived.
_MAX_PAGES = 5
_TOO_LONG = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"})


class SlackBridge:
    """See `Bridge`. A target is a channel such as "D024BE91L", with its thread such as
    "C024BE91L:1483037603.017503"."""

    name = "slack"
    capabilities = BridgeCapabilities(
        media=True, buttons=True, max_length=form.MAX_TEXT, dedupe_seconds=_DEDUPE_SECONDS
    )

    def __init__(self, tokens: str, base_url: str = OFFICIAL, *, timeout: float = _TIMEOUT_SECONDS) -> None:
        """`tokens` are the bot's and the app's, in this order. Raises `BridgeError` if they are invalid."""
        match = _TOKENS.fullmatch(tokens.strip())
        if match is None:
            raise BridgeError(
                "Slack needs two tokens, the bot's (xoxb-...) and the app's (xapp-...): `assistant bridge add slack`."
            )
        self._made_of = (match[1], match[2], base_url, timeout)
        self._api_or_none: SlackApi | None = None

    @property
    def _api(self) -> SlackApi:
        if self._api_or_none is None:
            self._api_or_none = SlackApi(*self._made_of)
        return self._api_or_none

    async def check(self) -> str:
        """Return the bot and its workspace, after both tokens were tried. Raises `BridgeError`."""
        me = await self._api.identify()
        await self._api.socket_address()
        return f"@{me['user']} in {me['team']}"

    async def run(self, inbound: InboundPort) -> None:
        me = await self._api.identify()
        await SlackReceiver(self._api, inbound, str(me["user_id"])).run()

    def show(self, event: TurnEvent, target: str) -> None:
        """Do nothing before the answer is complete."""

    async def aclose(self) -> None:
        api, self._api_or_none = self._api_or_none, None
        if api is not None:
            await api.close()

    # --------------------------------------------------------------------------------------------------------- sending

    async def send(self, part: OutgoingPart) -> None:
        """As the port says. A part whose sending was interrupted is looked for in the channel first: Slack accepts the
        same message twice. Raises `BridgeError`, with `ambiguous` set, if that cannot be told."""
        outgoing = part.item.outgoing
        channel, thread = form.parse_target(outgoing.target)
        may_be_there = part.item.state == "sending" and part.number == part.item.parts_sent + 1
        if may_be_there and await self._is_there(part, channel, thread):
            return
        if part.media is not None and part.media.data is not None:
            name = part.media.name or part.media.mime.replace("/", ".")
            await self._api.upload(name, base64.b64decode(part.media.data), channel, thread)
            return
        text = part.text or (f"[{part.media.name or part.media.mime}]" if part.media else "")
        key = form.part_key(part.key, outgoing.target)
        payload = form.message_payload(text, outgoing.buttons if part.last else ())
        try:
            await self._post(channel, thread, key, payload)
        except SlackRefusal as refusal:
            if refusal.code not in _TOO_LONG:
                raise
            await self._post(channel, thread, key, form.plain_payload(text))

    async def _post(self, channel: str, thread: str, key: str, payload: dict[str, Any]) -> None:
        await self._api.call(
            self._api.web.chat_postMessage(
                channel=channel,
                thread_ts=thread or None,
                metadata={"event_type": form.EVENT_TYPE, "event_payload": {"key": key}},
                unfurl_links=False,
                unfurl_media=False,
                **payload,
            )
        )

    async def _is_there(self, part: OutgoingPart, channel: str, thread: str) -> bool:
        """Return whether the channel has it. Raises `BridgeError` if that cannot be determined."""
        target = part.item.outgoing.target
        keys = {form.part_key(one, target) for one in _keys_before(part)}
        key = form.part_key(part.key, target)
        messages, is_all = await self._read_newest(channel, thread)
        for number, message in enumerate(messages):
            found = _key_of(message)
            if found == key:
                return True
            if part.media is not None and found in keys:
                # A file has no key of its own: it follows the part before it.
                return _has_file(messages[:number], part.media.name)
        if not is_all or part.media is not None:
            raise BridgeError("Whether Slack has it already cannot be told.", ambiguous=True, refused=True)
        return False

    async def _read_newest(self, channel: str, thread: str) -> tuple[list[JsonObject], bool]:
        """Return the newest messages, newest first, and whether these are all."""
        web, messages, cursor = self._api.web, list[JsonObject](), ""
        for _ in range(_MAX_PAGES):
            about: dict[str, Any] = {
                "channel": channel,
                "limit": _PAGE,
                "cursor": cursor,
                "include_all_metadata": True,
            }
            answer = await self._api.call(
                web.conversations_replies(ts=thread, **about) if thread else web.conversations_history(**about)
            )
            messages += answer["messages"]
            cursor = str((answer.get("response_metadata") or {}).get("next_cursor", ""))
            if not cursor:
                break
        return sorted(messages, key=lambda message: str(message["ts"]), reverse=True), not cursor


def _keys_before(part: OutgoingPart) -> list[str]:
    """Return the keys of the parts sent before this one."""
    key = part.item.outgoing.key
    return [key if number == 1 else f"{key}#{number}" for number in range(1, part.number)]


def _key_of(message: JsonObject) -> str:
    metadata = message.get("metadata") or {}
    payload = metadata.get("event_payload") or {}
    return str(payload.get("key", "")) if metadata.get("event_type") == form.EVENT_TYPE else ""


def _has_file(messages: list[JsonObject], name: str) -> bool:
    return any(file.get("name") == name for message in messages for file in message.get("files") or ())
