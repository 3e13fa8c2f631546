"""Whether a request body would be accepted: the rules of the Messages API and of Chat Completions, as pure functions.

Each returns what the real service would complain of, in its words; an empty list means accepted. The strict server
answers with the first complaint; property tests call these without HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.strict import chat_rules, messages_rules
from tests.strict.count import count_tokens
from tests.strict.rules import surrogates
from tests.strict.signing import unchanged


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What the pretended model takes: tokens of the prompt and of the answer, bytes of the body, images."""

    window: int = 200_000
    max_output: int = 128_000
    max_bytes: int = 32_000_000
    max_images: int = 100


ROOMY = RequestLimits()


def validate_messages(
    body: Any, bounds: RequestLimits = ROOMY, issued: Mapping[str, list[dict[str, Any]]] | None = None
) -> list[str]:
    """Complaints of Anthropic's Messages API. `issued` maps a tool_use id that the service gave out to the content of
    the answer it stood in; with it, thinking blocks are checked against what was signed."""
    if not isinstance(body, dict):
        return ["Input should be an object"]
    return _first_of(
        lambda: surrogates(body),
        lambda: messages_rules.top_level(body, bounds.max_output),
        lambda: messages_rules.tools(body.get("tools", [])),
        lambda: messages_rules.system(body.get("system", "")),
        lambda: messages_rules.shapes(body["messages"]),
        lambda: messages_rules.order(body["messages"]),
        lambda: messages_rules.pairs(body["messages"]),
        lambda: messages_rules.breakpoints(body),
        lambda: messages_rules.images(body["messages"], bounds.max_images),
        lambda: unchanged(body["messages"], issued) if issued is not None else [],
        lambda: messages_rules.length(count_tokens(body), bounds.window),
    )


def validate_chat(body: Any, bounds: RequestLimits = ROOMY, *, hosted: bool = False) -> list[str]:
    """Complaints of Chat Completions, with those of the chat templates of local servers; `hosted` for OpenAI's own
    service, which refuses `max_tokens`."""
    if not isinstance(body, dict):
        return ["We could not parse the JSON body of your request."]
    return _first_of(
        lambda: surrogates(body),
        lambda: chat_rules.top_level(body, bounds.max_output, hosted=hosted),
        lambda: chat_rules.tools(body.get("tools", [])),
        lambda: chat_rules.shapes(body["messages"]),
        lambda: chat_rules.pairs(body["messages"]),
        lambda: chat_rules.order(body["messages"]),
        lambda: chat_rules.images(body["messages"], bounds.max_images),
        lambda: chat_rules.length(count_tokens(body), bounds.window),
    )


def _first_of(*checks: Callable[[], list[str]]) -> list[str]:
    """The complaints of the first check that has any: later ones rely on what earlier ones made sure of."""
    for check in checks:
        if complaints := check():
            return complaints
    return []
