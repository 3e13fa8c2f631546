"""F33 in the running program: every tool and every command is tried by a guest and in a room, over a bridge, with
all that guests and rooms may ever be granted. The registries name them, so that a new one is tried without being listed
here. Nothing of the owner's is shown, and nothing of it changes. One app for both: the room comes after the guest.

Who somebody is, each bridge is asked in `test_conformance.py`; what they may do then does not depend on the bridge."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from assistant.commands.table import leaf_commands
from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest, ToolSpec
from tests.support.networks.conformance_app import ConformanceApp, run_conformance_app
from tests.support.networks.network import ConversationPlace, Network, NetworkRefused
from tests.support.networks.owners_things import MARK, WORD, grants, live_as_owner, owners_things
from tests.support.networks.plain import PlainNetwork
from tests.support.outboxes import recent_items
from tests.support.scripted import ScriptStep

# What is typed behind a command, and given to a tool: numbers and names of the owner's things among it.
TYPED = ("", "1", "e1 boat", "main", "boat.txt")
GIVEN = (WORD, "e1", "boat.txt")
PLACES: tuple[ConversationPlace, ...] = ("private", "room")


def calls_of(spec: ToolSpec) -> Iterator[Mapping[str, Any]]:
    """Arguments for a tool, made of what its schema says it takes."""
    properties: Mapping[str, Any] = spec.schema.get("properties", {})
    choices = [about.get("enum", [None]) for about in properties.values()]
    for text, chosen in itertools.product(GIVEN, itertools.islice(itertools.product(*choices), 7)):
        whole = {
            name: choice if choice is not None else value_of(about, text)
            for (name, about), choice in zip(properties.items(), chosen, strict=True)
        }
        yield whole
        yield {name: value for name, value in whole.items() if name in spec.schema.get("required", ())}


def value_of(about: Mapping[str, Any], text: str) -> Any:
    match about.get("type"):
        case "integer":
            return 1
        case "number":
            return 0.5
        case "array":
            return [value_of(about.get("items", {}), text)]
        case "object":
            return {"about": text}
    return "2026-03-01" if about.get("format") == "date" else text


class Visitor:
    """Calls every tool that there is, in every way, and then says everything that it has read."""

    def __init__(self, specs: Mapping[str, ToolSpec], place: str) -> None:
        made = [(name, arguments) for name, spec in specs.items() for arguments in calls_of(spec)]
        unique = {json.dumps([name, arguments]): (name, arguments) for name, arguments in made}
        self.calls = [ToolCall(f"{place}{n}", *call) for n, call in enumerate(unique.values())]
        self.requests: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> ScriptStep:
        self.requests.append(request)
        if request.messages[-1].role != "tool":
            return self.calls
        return "That was all."

    def read(self) -> str:
        parts = [block.text for request in self.requests for block in request.system]
        for request in self.requests:
            for message in request.messages:
                parts += [message.content, str(message.metadata.get("volatile", ""))]
        return "\n".join(parts)


async def check_no_tool(it: ConformanceApp, where: ConversationPlace) -> None:
    """All that there are, by a model that is asked by the visitor."""
    toolbox = it.app.toolbox
    specs = {name: tool.spec for name in toolbox.allowed_roles if (tool := toolbox.find(name, "owner"))}
    assert specs.keys() == toolbox.allowed_roles.keys()
    visitor = Visitor(specs, where)
    it.model.script = [visitor]
    await it.network.say("guest", f"What about the {WORD}?", where=where)
    await it.wait_until(lambda: bool(visitor.requests))
    await it.wait_idle()
    await it.wait_for_answer("That was all.", "guest", where)
    tried = {call.name for call in visitor.calls}
    assert tried == specs.keys() and MARK not in visitor.read()


def ways_to_type(network: Network, names: Sequence[str]) -> Iterable[tuple[str, str]]:
    """In every way over a network that costs nothing, in one way each over Telegram."""
    if isinstance(network, PlainNetwork):
        return itertools.product(names, TYPED)
    return zip(names, itertools.cycle(TYPED))


async def check_no_command(it: ConformanceApp, where: ConversationPlace) -> None:
    """All that there are, as the visitor types them."""
    names = [" ".join(path) for path, _ in leaf_commands(it.app.commands.root)]
    pairs = ways_to_type(it.network, names)
    typed = [f"/{name} {words}".strip() for name, words in pairs if name not in ("stop", "retry")]
    accepted = it.accepted_count()
    for text in typed:
        await it.network.say("guest", text, where=where)
    # A message behind all the commands; what a network does not take so fast waits to be sent.
    await it.network.say("guest", "the end", where=where)
    await it.wait_until(lambda: it.accepted_count() > accepted)
    await it.app.inbound.wait_until_idle()
    await it.app.runtime.wait_until_idle()
    sent = recent_items(it.app.stores.outbox, it.session("guest", where), limit=2000)
    answers = [item.outgoing.body for item in sent]
    assert len(answers) > len(typed) * 0.9
    assert [text for text in (*answers, *it.texts("guest", where)) if MARK in text] == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("network", ["plain", "telegram"], indirect=True)
async def test_f33_over_a_bridge_no_tool_and_no_command_shows_or_changes_anything_of_the_owners(
    network: Network, home: Path
) -> None:
    async with run_conformance_app(network, home, **grants("guest"), **grants("room")) as it:
        await live_as_owner(it)
        before = owners_things(home)
        for where in PLACES:
            if where == "room" and not network.abilities.rooms:
                with pytest.raises(NetworkRefused):
                    await network.say("guest", f"What about the {WORD}?", where=where)
                continue
            await check_no_tool(it, where)
            await check_no_command(it, where)
            after = owners_things(home)
            assert {kind for kind in before if before[kind] != after[kind]} == set(), where
