"""Scenarios of Slack and Discord: answers go out, a long one in parts, each shown once or told as uncertain.

Slack keeps the key of a message with it, so that a bridge that comes back can look whether it is there; Discord knows
a key for some minutes."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from assistant.bridges.discord.bridge import DiscordBridge
from assistant.bridges.slack.bridge import SlackBridge
from assistant.core.bridge_api import BridgeCapabilities
from assistant.core.model_api import ModelRequest
from assistant.gateway.parts import split_text
from assistant.wire.stores import Stores
from tests.crash import pictures
from tests.crash.bridge_scenarios import MORE_CALLS, SHOWN_ONCE, squeezed
from tests.crash.chat_world import OpenChat, live_on_chat, open_discord, open_slack
from tests.crash.scenario import Scenario, Snapshot
from tests.crash.witness import EffectLog
from tests.crash.world import BEGUN, settings_of

_EARLIER = ("The spare key of the cabin lies under the blue flowerpot.",)
_SAID = (*_EARLIER, "Where is the spare key?", "And tell me the way there, at length.")
_STAGE = "It goes on and on. "


def _answer(length: int, request: ModelRequest) -> str:
    asked = next(message.content for message in reversed(request.messages) if message.role == "user")
    if "at length" not in asked:
        return f"Noted: {asked.splitlines()[-1]}"
    return "\n\n".join(f"Stage {number} of the road. " + _STAGE * (length // 8 // len(_STAGE)) for number in range(8))


def _look(capabilities: BridgeCapabilities, home: Path) -> Snapshot:
    stores = Stores(settings_of(home), BEGUN)
    try:
        verified = [f"{one.kind} {one.where}: {one.text}" for one in stores.verifier.verify().problems]
    finally:
        stores.close()
    witness = EffectLog(home)
    shown = Counter(squeezed(seen["text"]) for seen in witness.recorded("shown"))
    kept = pictures.rows(home / "script.db", "SELECT kind, body, state, key FROM outbox ORDER BY kind, body")
    told = [row for row in kept if row[3].startswith(pictures.DOUBT)]
    parts = {body: list(map(squeezed, split_text(body, capabilities))) for _, body, *_ in kept}
    return {
        "verify": verified,
        "inbox": pictures.rows(home / "script.db", "SELECT external_id, state FROM inbox ORDER BY id"),
        "log": [[row[2], row[3]] for rows in pictures.logged(home).values() for row in rows],
        "deliveries": [
            [kind, body[:40], state, [shown[part] for part in parts[body]]]
            for kind, body, state, key in kept
            if not key.startswith(pictures.DOUBT)
        ],
        "model calls": len(witness.recorded("asked")),
        "uncertain and not told of": sum(row[2] == "ambiguous" for row in kept) - len(told),
        "strangers": sorted(shown - Counter(part for _, body, *_ in kept for part in parts[body])),
    }


def _scenario(name: str, open_chat: OpenChat, capabilities: BridgeCapabilities) -> Scenario:
    # Some three parts.
    answer: Any = partial(_answer, 5 * capabilities.max_length // 2)
    return Scenario(
        name,
        f"answers go out over {name.capitalize()}, a long one in parts",
        lambda home: live_on_chat(home, open_chat, _EARLIER, answer),
        lambda home: live_on_chat(home, open_chat, _SAID, answer),
        partial(_look, capabilities),
        (SHOWN_ONCE, MORE_CALLS),
    )


SLACK = _scenario("slack", open_slack, SlackBridge.capabilities)
DISCORD = _scenario("discord", open_discord, DiscordBridge.capabilities)
