"""How a notice is declared: its text, when it is sent, to whom and where."""

from __future__ import annotations

from typing import Literal

from assistant.core.dataclass import dataclass

Audience = Literal["owner", "conversation", "stranger"]
"""The owner alone; everyone in the conversation that it is about, guests and rooms included; somebody who was not
let in."""

Place = Literal["turn", "recent", "outage", "bridge", "terminal", "live"]
"""Where the message came from that it is about, and after work in the background `recent`: where the owner, or the
conversation, was last written from; where an outage was told; on the bridge that it is about, else on the terminals; on
the terminals; `live`: shown once to those who are connected, and not stored."""


@dataclass(frozen=True, slots=True)
class NoticeForm:
    """The declaration of a notice; `template` is its text, with the names of what is filled in."""

    template: str
    when: str
    to: Audience = "owner"
    place: Place = "turn"
    once: str = ""  # what it is sent once for
    told_by_outage: bool = False  # not sent to a place that knows of an outage
