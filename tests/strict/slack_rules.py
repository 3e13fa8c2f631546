"""What Slack's Web API refuses of a message that an app sends, and in which words; the scope of each method. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A method without a scope wants only a token. Reading wants one for each kind of channel; this is one of them.
SCOPE_OF = {
    "apps.connections.open": "connections:write",
    "auth.test": "",
    "chat.postMessage": "chat:write",
    "conversations.history": "im:history",
    "conversations.info": "channels:read",
    "conversations.replies": "channels:history",
    "files.completeUploadExternal": "files:write",
    "files.getUploadURLExternal": "files:write",
    "users.conversations": "im:read",
    "users.info": "users:read",
}
# What else the app has to be granted for the events that it gets.
EVENT_SCOPES = {"files:read", "groups:history", "groups:read", "mpim:history", "mpim:read"}
LONGEST = 40_000
LONGEST_MARKDOWN = 12_000
_MOST_BLOCKS = 50


def message_complaint(params: Mapping[str, Any]) -> str:
    """Why it is refused, "" for what is taken."""
    text, blocks = str(params.get("text", "")), params.get("blocks") or []
    if not text.strip() and not blocks:
        return "no_text"
    if len(text) > LONGEST:
        return "msg_too_long"
    if params.get("link_names") or params.get("parse"):
        return "invalid_arguments"
    if not isinstance(blocks, list) or len(blocks) > _MOST_BLOCKS:
        return "invalid_blocks"
    if sum(len(block.get("text", "")) for block in blocks if block.get("type") == "markdown") > LONGEST_MARKDOWN:
        return "msg_blocks_too_long"
    if not all(_is_block(block) for block in blocks):
        return "invalid_blocks"
    metadata = params.get("metadata")
    if metadata is not None and not (metadata.get("event_type") and isinstance(metadata.get("event_payload"), dict)):
        return "invalid_metadata_format"
    return ""


def _is_block(block: Mapping[str, Any]) -> bool:
    match block.get("type"):
        case "markdown":
            return bool(str(block.get("text", "")).strip())
        case "actions":
            elements = block.get("elements", [])
            names = [one.get("action_id") for one in elements]
            return 1 <= len(elements) <= 25 and len(set(names)) == len(names) and all(map(_is_button, elements))
    return False


def _is_button(element: Mapping[str, Any]) -> bool:
    text = element.get("text", {})
    return (
        element.get("type") == "button"
        and text.get("type") == "plain_text"
        and 1 <= len(text.get("text", "")) <= 75
        and 1 <= len(element.get("value", "")) <= 2000
        and 1 <= len(element.get("action_id", "")) <= 255
    )
