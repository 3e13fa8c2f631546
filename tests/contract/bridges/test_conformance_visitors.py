"""F33 in the running program: every tool and every command is tried by a guest and in a room, over every bridge, with
all that guests and rooms may ever be granted. The registries name them, so that a new one is tried without being listed
here. Nothing of the owner's is shown, and nothing of it changes."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from assistant.commands.registry import command_root, grantable_roles
from assistant.commands.table import leaf_commands
from assistant.core.approvals import ProposedEffect
from assistant.core.memories import JournalEntry
from assistant.core.messages import ToolCall
from assistant.core.model_api import ModelRequest, ToolSpec
from assistant.core.profiles import Profile
from tests.support.networks.conformance_app import ConformanceApp, run_conformance_app
from tests.support.networks.network import ConversationPlace, Network, NetworkRefused
from tests.support.outboxes import recent_items
from tests.support.scripted import ScriptStep
from tools.toolbox import tool_roles

# In all that the owner has, next to a word that everybody may look for.
MARK, WORD = "kestrel", "boat"
# What is typed behind a command, and given to a tool: numbers and names of the owner's things among it.
TYPED = ("", "1", "e1 boat", "main", "boat.txt")
GIVEN = (WORD, "e1", "boat.txt")


def grants(role: str) -> dict[str, str]:
    tools = [name for name, roles in tool_roles().items() if role in roles]
    commands = [name for name, roles in grantable_roles(command_root()).items() if role in roles]
    prefix = f"ASSISTANT_{role.upper()}__"
    return {f"{prefix}TOOLS": json.dumps(tools), f"{prefix}COMMANDS": json.dumps(commands)}


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

    def __init__(self, specs: Mapping[str, ToolSpec]) -> None:
        made = [(name, arguments) for name, spec in specs.items() for arguments in calls_of(spec)]
        unique = {json.dumps([name, arguments]): (name, arguments) for name, arguments in made}
        self.calls = [ToolCall(f"v{n}", *call) for n, call in enumerate(unique.values())]
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


async def live_as_owner(it: ConformanceApp) -> None:
    """The owner has something of everything."""
    stores, now = it.app.stores, it.clock()
    await it.network.say("owner", f"Please book the {MARK} {WORD}.")
    await it.wait_for_answer(f"{MARK} {WORD}")
    stores.todos.add("owner", [f"paint the {MARK} {WORD}"], "t0", now)
    await it.app.commands.run(f'/remind add {MARK} {WORD} --at "next monday at 9"', "main")
    await it.app.commands.run(f'/schedule add news "{MARK} {WORD}?" --every "day at 10"', "main")
    entry = JournalEntry("k0", "owner", "main", 1, f"The {WORD} is called {MARK}.", now, "tool", 0.9, ("fact",))
    stores.journal.add([entry], now)
    stores.profiles.save(Profile("owner", "thing", WORD, summary=f"A {MARK}."), "model", now, key="p1")
    stores.pins.add("main", "owner", f"{MARK} {WORD}", "user", None, now)
    (it.home / "MEMORY.md").write_text(f"The {WORD} is a {MARK}.\n")
    stores.files.append_daily_note("owner", now.date(), "08:00", [f"{MARK} {WORD}"], "n1")
    (it.home / "workspace").mkdir(exist_ok=True)
    (it.home / "workspace" / "boat.txt").write_text(f"{MARK} {WORD}")
    turn = stores.conversation.list_sessions()[0]
    effect = ProposedEffect(
        *("a0", turn.key, turn.generation, "owner", "t00000001", "c", "set_reminder", {"text": MARK, "when": "at 9"}),
        *(f"set a reminder {MARK} {WORD}", it.network.name, "", now, now.replace(year=now.year + 1), "", ""),
    )
    stores.approvals.propose(effect, "pending")


def owners_things(home: Path) -> dict[str, Any]:
    """Every row of the owner's, and the files."""
    found: dict[str, Any] = {}
    for name in ("script.db", "character.db"):
        with closing(sqlite3.connect(f"file:{home / name}?mode=ro", uri=True)) as db:
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%STRICT%'"):
                if "scope" in [row[1] for row in db.execute(f"PRAGMA table_info({table})")]:
                    found[table] = sorted(map(repr, db.execute(f"SELECT * FROM {table} WHERE scope = 'owner'")))
            if name == "script.db":
                found["people"] = [sorted(map(repr, db.execute(f"SELECT * FROM {t}"))) for t in ("people", "rooms")]
    paths = [home / "MEMORY.md", *(home / "memory").glob("*.md"), *(home / "workspace").rglob("*")]
    found["files"] = {path.name: path.read_bytes() for path in paths if path.is_file()}
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("where", ["private", "room"])
async def test_f33_over_a_bridge_no_tool_and_no_command_shows_or_changes_anything_of_the_owners(
    network: Network, home: Path, where: ConversationPlace
) -> None:
    if not network.account("guest"):
        # Whoever connects there is the owner.
        assert not network.abilities.strangers
        return
    if where == "room" and not network.abilities.rooms:
        with pytest.raises(NetworkRefused):
            await network.say("guest", f"What about the {WORD}?", where=where)
        return
    async with run_conformance_app(network, home, **grants("guest"), **grants("room")) as it:
        await live_as_owner(it)
        specs = {
            name: tool.spec for name in it.app.toolbox.allowed_roles if (tool := it.app.toolbox.find(name, "owner"))
        }
        assert specs.keys() == it.app.toolbox.allowed_roles.keys()
        visitor = Visitor(specs)
        before = owners_things(home)
        it.model.script = [visitor]
        await network.say("guest", f"What about the {WORD}?", where=where)
        await it.wait_until(lambda: bool(visitor.requests))
        await it.wait_idle()
        await it.wait_for_answer("That was all.", "guest", where)
        tried = {call.name for call in visitor.calls}
        assert tried == specs.keys() and MARK not in visitor.read()

        typed = [
            f"/{' '.join(path)} {words}".strip() for path, _ in leaf_commands(it.app.commands.root) for words in TYPED
        ]
        accepted = it.accepted_count()
        for text in [line for line in typed if not line.startswith(("/stop", "/retry"))]:
            await network.say("guest", text, where=where)
        # A message behind all the commands; what a network does not take so fast waits to be sent.
        await network.say("guest", "the end", where=where)
        await it.wait_until(lambda: it.accepted_count() > accepted)
        await it.app.inbound.wait_until_idle()
        await it.app.runtime.wait_until_idle()
        answers = [
            item.outgoing.body for item in recent_items(it.app.stores.outbox, it.session("guest", where), limit=2000)
        ]
        assert len(answers) > len(typed) * 0.9
        assert [text for text in (*answers, *it.texts("guest", where)) if MARK in text] == []
        after = owners_things(home)
        assert {kind for kind in before if before[kind] != after[kind]} == set()
