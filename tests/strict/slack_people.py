"""The people of a Slack that is played, what they wrote, and what they see; no network."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from tests.support.networks.probed_bridge import ChangeSignal

ME, TEAM = "U0NOCTURNE", "T0TEST"
OWNER = "U0OWNER"
ROOM = "C0ROOM"
_FIRST_TS = 1_790_000_000

Json = dict[str, Any]


class SlackPeople(ABC):
    def __init__(self) -> None:
        self.names = {OWNER: "Ann", ME: "nocturne"}
        self.channels: dict[str, Json] = {
            "D0OWNER": {"id": "D0OWNER", "is_im": True, "user": OWNER},
            ROOM: {"id": ROOM, "name": "boat-club", "is_channel": True},
        }
        self.members = {"D0OWNER", ROOM}  # where the app is
        self.archived: set[str] = set()
        self.messages: dict[str, list[Json]] = {}
        self.files: dict[str, tuple[str, bytes]] = {}
        self.changes = ChangeSignal()
        self._numbers = itertools.count(1)
        self._times = itertools.count(1)

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def send_envelope(self, kind: str, payload: Json) -> None: ...

    def new_ts(self) -> str:
        number = next(self._times)
        return f"{_FIRST_TS + number}.{number:06}"

    def direct(self, user: str) -> str:
        """The conversation between a person and the app."""
        channel = f"D{user[1:]}"
        self.channels.setdefault(channel, {"id": channel, "is_im": True, "user": user})
        self.members.add(channel)
        return channel

    def say(self, text: str, *, user: str = OWNER, channel: str = "", **fields: Any) -> Json:
        """A message of a person, of `fields` as the Events API names them."""
        channel = channel or self.direct(user)
        message = {"type": "message", "user": user, "text": text, "ts": self.new_ts(), "team": TEAM, **fields}
        if "thread_ts" in fields:
            parent = self.find(channel, fields["thread_ts"])
            message["parent_user_id"] = parent["user"]
            parent |= {"thread_ts": parent["ts"], "latest_reply": message["ts"]}
            parent["reply_count"] = parent.get("reply_count", 0) + 1
        self.messages.setdefault(channel, []).append(message)
        self.tell(channel, message)
        return message

    def edit(self, channel: str, ts: str, text: str, *, edited: bool = True) -> None:
        message = self.find(channel, ts)
        before = dict(message)
        message["text"] = text
        if edited:
            message["edited"] = {"user": message["user"], "ts": self.new_ts()}
        self.tell(channel, {"subtype": "message_changed", "message": dict(message), "previous_message": before})

    def delete(self, channel: str, ts: str) -> None:
        message = self.find(channel, ts)
        self.messages[channel].remove(message)
        self.tell(channel, {"subtype": "message_deleted", "deleted_ts": ts, "previous_message": message})

    def press(self, channel: str, ts: str, label: str, *, user: str = OWNER) -> None:
        message = self.find(channel, ts)
        button = next(one for one in buttons_of(message) if one["text"]["text"] == label)
        action = {**button, "action_ts": self.new_ts(), "block_id": "b"}
        payload = {"type": "block_actions", "user": {"id": user}, "channel": {"id": channel}, "message": message}
        self.send_envelope("interactive", {**payload, "actions": [action], "trigger_id": f"t{next(self._numbers)}"})

    def command(self, text: str, *, user: str = OWNER, channel: str = "") -> Json:
        """`/nocturne` and what follows it."""
        channel = channel or self.direct(user)
        payload = {"command": "/nocturne", "text": text, "user_id": user, "channel_id": channel, "team_id": TEAM}
        payload["trigger_id"] = f"t{next(self._numbers)}"
        self.send_envelope("slash_commands", payload)
        return payload

    def find(self, channel: str, ts: str) -> Json:
        return next(one for one in self.messages.get(channel, ()) if one["ts"] == ts)

    def tell(self, channel: str, message: Mapping[str, Any]) -> None:
        """An event of a channel, where the app is in it."""
        if channel in self.members:
            kind = "im" if channel.startswith("D") else "channel"
            event = {"type": "message", "ts": self.new_ts(), "event_ts": self.new_ts(), **message}
            event |= {"channel": channel, "channel_type": kind}
            self.send_envelope("events_api", {"type": "event_callback", "event": event, "event_id": self._id("Ev")})
        self.changes.notify()

    def keep_file(self, name: str, data: bytes, **fields: Any) -> Json:
        """A file as messages name it."""
        file = self._id("F")
        self.files[file] = (name, data)
        address = self.url.replace("/api/", f"/files/{file}")
        return {"id": file, "name": name, "size": len(data), "url_private_download": address, **fields}

    def _id(self, kind: str) -> str:
        return f"{kind}{next(self._numbers):08}"


def buttons_of(message: Mapping[str, Any]) -> list[Json]:
    blocks = [block for block in message.get("blocks", ()) if block["type"] == "actions"]
    return [button for block in blocks for button in block["elements"]]
