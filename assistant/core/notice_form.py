"""How a notice is declared: its text, and when, to whom and where it is sent."""

from __future__ import annotations

from typing import Literal

from assistant.core.dataclass import dataclass

Audience = Literal["owner", "conversation", "stranger"]
"""The owner only; everyone in the session that it concerns, including guests and rooms; or a stranger without
access."""

Place = Literal["turn", "recent", "outage", "bridge", "terminal", "live"]
"""Where a notice is sent.

- `turn`: where the message that it concerns came from; after background work the same as `recent`.
- `recent`: where the owner, or the session, last wrote from.
- `outage`: where the outage was reported.
- `bridge`: the bridge that it concerns, else the terminals.
- `terminal`: the terminals.
- `live`: shown to connected clients, not stored.
"""


@dataclass(frozen=True, slots=True)
class NoticeForm:
    """The declaration of a notice; `template` has the names of its values in braces."""

    template: str
    when: str
    to: Audience = "owner"
    place: Place = "turn"
    once: str = ""  # what it is sent only once for
    told_by_outage: bool = False  # not sent to a place that knows of an outage
