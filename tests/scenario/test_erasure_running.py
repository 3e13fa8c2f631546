"""Words are forgotten while the daemon runs, a process of its own: whatever they went into, no byte of its data folder
has them afterwards, before it stops and after, and what stays is named."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from assistant.cli.client import SocketLink, open_socket_link
from tests.crash.mail_world import mail_servers
from tests.crash.witness import EffectLog
from tests.scenario.test_cli_import import conversation, export
from tests.strict.behaviour import Behaviour, ScriptedAnswer, ToolUse
from tests.strict.server import StrictServer
from tests.strict.speech import StrictSpeech
from tests.support.command_line import run_assistant, run_daemon
from tests.support.secrets import HomeBytes, Secret, make_secrets
from tests.support.sleep_home import memories_answer

SEED = 20_261_128
_ASKED = re.compile(r"^\((\w+)\) (.+)$", re.MULTILINE)
_APPROVAL = re.compile(r"/approvals yes (\d+)`")
_TO_LEARN = re.compile(r"^#(\d+) \S+ \S+ user: (.+)$", re.MULTILINE)
_CODE = re.compile(r"/forget ([0-9A-F]{6})")


def _arguments(tool: str, text: str) -> dict[str, Any]:
    """What the tool is called with for this text."""
    return {
        "manage_todo_list": {"action": "add", "items": [text]},
        "add_journal_entry": {"content": text},
        "set_reminder": {"text": text, "when": "tomorrow at 9:00"},
        "delegate": {"tasks": [text]},
        "search_files": {"query": text},
        "write_file": {"path": "notes/plan.md", "text": text},
        "edit_memory_file": {"old": "", "new": text},
        "draft_mail": {"to": ["bo@example.org"], "subject": "About it", "text": text},
        "send_mail": {"to": ["bo@example.org"], "subject": "About it", "text": text},
        "notes__add_note": {"text": text},
        "forget": {"text": text},
    }[tool]


class ObedientServer(StrictServer):
    """Its model calls the tool that is named in brackets, repeats what it is told, and learns every line at night."""

    def behaviour_for(self, body: dict[str, Any]) -> Behaviour:
        messages = [(message["role"], _text_of(message)) for message in body["messages"]]
        newest = next(text for role, text in reversed(messages) if role == "user")
        if not body.get("tools"):
            return ScriptedAnswer(memories_answer(*((text, int(id)) for id, text in _TO_LEARN.findall(newest))))
        if "Your task:" in newest:
            return ScriptedAnswer(f"Found out. {newest.rpartition('Your task:')[2].strip()}")
        if messages[-1][0] == "tool":
            return ScriptedAnswer(f"It is done. {messages[-1][1][:300]}")
        asked = _ASKED.search(newest)
        if asked is None:
            return ScriptedAnswer(f"I will keep in mind: {newest[:200]}")
        name, arguments = asked[1], _arguments(asked[1], asked[2])
        if name not in {tool["function"]["name"] for tool in body["tools"]}:
            name, arguments = "use_tool", {"name": name, "arguments": arguments}
        return ScriptedAnswer(calls=[ToolUse(name, arguments)])


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


class Owner:
    """Who talks to the daemon, over its control socket or on a command line; `said` has the numbers of messages."""

    def __init__(self, home: Path, link: SocketLink) -> None:
        self.home = home
        self.said: list[int] = []
        self._link = link

    async def say(self, text: str, session: str = "main", *media: dict[str, Any]) -> str:
        """The answer."""
        body = {"text": text, "external_id": f"m{len(self.said)}", "session": session, "media": list(media)}
        accepted = await self._link._ask("POST", "/messages", body)
        self.said.append(accepted["message_id"])
        async for kind, event in self._link.events(session, accepted["inbox_id"]):
            if kind == "deliver":
                await self._link.acknowledge(event["key"])
                if event["inbox_id"] == accepted["inbox_id"]:
                    return str(event["body"])
        raise AssertionError("nothing was answered")

    async def have_done(self, tool: str, text: str) -> str:
        """The answer; with a yes where it asks for one."""
        answer = await self.say(f"({tool}) {text}")
        if waiting := _APPROVAL.search(answer):
            return await self.type(f"/approvals yes {waiting[1]}")
        return answer

    async def type(self, text: str) -> str:
        return await self._link.run_command(text, "main")

    async def shell(self, *words: str) -> str:
        done = await asyncio.to_thread(run_assistant, self.home, *words)
        assert done.returncode == 0, (words, done.out, done.err)
        return done.out


class Planting:
    """Each method puts one secret into one kind of place; its name says which."""

    def __init__(self, owner: Owner, outside: Path) -> None:
        self.owner = owner
        self.outside = outside

    async def said(self, secret: Secret) -> None:
        await self.owner.say(secret.sentence)

    async def todo(self, secret: Secret) -> None:
        await self.owner.have_done("manage_todo_list", secret.sentence)

    async def todo_of_a_shell(self, secret: Secret) -> None:
        await self.owner.shell("todo", "add", secret.sentence)

    async def note(self, secret: Secret) -> None:
        await self.owner.have_done("add_journal_entry", secret.sentence)

    async def reminder(self, secret: Secret) -> None:
        await self.owner.have_done("set_reminder", secret.sentence)

    async def reminder_of_a_shell(self, secret: Secret) -> None:
        await self.owner.shell("remind", secret.sentence, "--at", "tomorrow at 10:00")

    async def schedule(self, secret: Secret) -> None:
        """It ran once, and was answered."""
        await self.owner.shell("schedule", "add", "ask", secret.sentence, "--every", "Monday at 8:30")
        await self.owner.type("/schedule run ask")
        await self.owner.shell("schedule", "history")

    async def delegated(self, secret: Secret) -> None:
        await self.owner.have_done("delegate", secret.sentence)

    async def attachment(self, secret: Secret) -> None:
        data = base64.b64encode(secret.sentence.encode()).decode()
        await self.owner.say("Here is a file.", "main", {"mime": "text/plain", "name": "a.txt", "data": data})

    async def added_file(self, secret: Secret) -> None:
        file = self.outside / "added.txt"
        file.write_text(secret.sentence)
        await self.owner.shell("add", str(file))
        await self.owner.have_done("search_files", secret.owner)

    async def written_file(self, secret: Secret) -> None:
        """It was written, and then something else in its place."""
        await self.owner.have_done("write_file", secret.sentence)
        await self.owner.have_done("write_file", "Nothing.")

    async def memory_file(self, secret: Secret) -> None:
        await self.owner.have_done("edit_memory_file", secret.sentence)

    async def draft(self, secret: Secret) -> None:
        await self.owner.have_done("draft_mail", secret.sentence)

    async def waiting_approval(self, secret: Secret) -> None:
        """It was asked whether to send it, and nobody answered."""
        assert _APPROVAL.search(await self.owner.say(f"(send_mail) {secret.sentence}"))

    async def declined_approval(self, secret: Secret) -> None:
        waiting = _APPROVAL.search(await self.owner.say(f"(send_mail) {secret.sentence}"))
        assert waiting is not None
        await self.owner.type(f"/approvals no {waiting[1]}")

    async def mcp_call(self, secret: Secret) -> None:
        await self.owner.have_done("notes__add_note", secret.sentence)

    async def imported(self, secret: Secret) -> None:
        talk = conversation(1, secret.sentence, f"I know: {secret.sentence}") | {"title": secret.sentence}
        await self.owner.shell("import", str(export(self.outside / "talk.json", talk)))

    async def voice(self, secret: Secret) -> None:
        data = base64.b64encode(b"OggS" + bytes(6_000)).decode()
        await self.owner.say("", "main", {"mime": "audio/ogg", "name": "v.ogg", "data": data, "voice": True})

    async def pinned(self, secret: Secret) -> None:
        await self.owner.type(f"/pin {secret.sentence}")

    async def thread(self, secret: Secret) -> None:
        await self.owner.say(secret.sentence, "thread:talk")

    async def undone(self, secret: Secret) -> None:
        await self.owner.say(secret.sentence)
        await self.owner.type("/undo")

    async def typed(self, secret: Secret) -> None:
        """A command that does not exist, and one that finds nothing."""
        await self.owner.type(f"/memory search {secret.sentence}")
        await self.owner.shell("log", "--grep", secret.value)

    async def corrected(self, secret: Secret) -> None:
        await self.owner.say(f"My desk is for {secret.owner}.")
        await self.owner.say(f"No wait, that was wrong. {secret.sentence}")

    async def profile(self, secret: Secret) -> None:
        await self.owner.say(f"My sister {secret.owner} is a nurse. {secret.sentence}")


WAYS = tuple(name for name in vars(Planting) if not name.startswith("_"))
# Where they went among others; a command that only looks leaves nothing.
PLACES = {
    "todo": "character.db",
    "todo_of_a_shell": "character.db",
    "note": "character.db",
    "reminder_of_a_shell": "script.db",
    "schedule": "conversation.jsonl",
    "attachment": "a.txt",
    "added_file": "files.db",
    "written_file": "plan-",
    "memory_file": "MEMORY.md",
    "imported": "conversation.jsonl",
    "voice": "conversation.jsonl",
    "pinned": "character.db",
}
# What makes copies of everything.
EVENTS = ("/compact", "/sleep", "/backup create", "/reset", "/sleep")
METHODS = ("text", "message", "in words", "memory")


@asynccontextmanager
async def talking_daemon(tmp_path: Path, *spoken: str, **more: str) -> AsyncIterator[tuple[Owner, Planting]]:
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir(mode=0o700)
    outside.mkdir()
    mcp = {"command": sys.executable, "args": ["-m", "tests.support.mcp_server", str(outside)]}
    (home / "config.toml").write_text(
        f"[mcp.servers.notes]\ncommand = {json.dumps(mcp['command'])}\nargs = {json.dumps(mcp['args'])}\n"
        f'env = {{ PYTHONPATH = "{Path.cwd()}" }}\n'
    )
    async with StrictSpeech(*spoken) as speech, mail_servers(EffectLog(home)) as mail:
        with ObedientServer() as model:
            settings = {
                "ASSISTANT_MODEL__PROVIDER": "openai",
                "ASSISTANT_MODEL__NAME": "m",
                "ASSISTANT_MODEL__BASE_URL": f"{model.url}/v1",
                "ASSISTANT_MODEL__API_KEY": model.key,
                "ASSISTANT_VOICE__URL": speech.url,
                "ASSISTANT_VOICE__KEY": speech.key,
                "ASSISTANT_SLEEP__AT": "",
                "ASSISTANT_BACKUP__AT": "",
                **mail,
                **more,
            }
            with run_daemon(home, **settings):
                async with open_socket_link(home / "run" / "control.sock") as link:
                    owner = Owner(home, link)
                    await owner.type("/mcp test notes")
                    code = json.loads(await owner.type("/mcp show notes --json"))["code"]
                    await owner.type(f"/mcp approve notes {code}")
                    yield owner, Planting(owner, outside)
                    assert model.complaints == []


async def forget(owner: Owner, secret: Secret, number: int, method: str) -> str:
    """What is reported."""
    shown = ""
    if method == "in words":
        shown = await owner.say(f"(forget) {secret.about}")
    elif method == "message" and number:
        shown = await owner.type(f"/forget #{number}")
    elif method == "memory":
        found = json.loads(await owner.type(f"/memory search {secret.value} --json"))
        [reference] = [hit["id"] for hit in found if secret.value in hit["text"]][:1] or [""]
        shown = await owner.type(f"/forget {reference}") if reference else ""
    code = _CODE.search(shown) or _CODE.search(shown := await owner.type(f'/forget "{secret.about}"'))
    return await owner.type(f"/forget {code[1]}") if code else shown


@pytest.mark.timeout(1200)
async def test_what_went_into_every_kind_of_place_is_in_no_byte_while_the_daemon_runs_nor_after_it(
    tmp_path: Path,
) -> None:
    secrets = dict(zip(WAYS, make_secrets(len(WAYS), SEED), strict=True))
    doubts: dict[str, str] = {}
    async with talking_daemon(tmp_path, secrets["voice"].sentence) as (owner, planting):
        numbers = {}
        for way, secret in secrets.items():
            before = len(owner.said)
            await getattr(planting, way)(secret)
            # What only asks for a file is not what told it.
            numbers[way] = owner.said[-1] if len(owner.said) == before + 1 and way != "added_file" else 0
            places = " ".join(HomeBytes(owner.home).places(secret.value))
            assert PLACES.get(way, "conversation.jsonl" * (way != "typed")) in places, (way, places)
        for event in EVENTS:
            await owner.type(event)
        for place, (way, secret) in enumerate(secrets.items()):
            report = await forget(owner, secret, numbers[way], METHODS[place % len(METHODS)])
            if "not done" in report or "not searched" in report:
                doubts[way] = report
        running = HomeBytes(owner.home)
    stopped = HomeBytes(owner.home)
    for held in (running, stopped):
        left = {way: held.places(secret.value) for way, secret in secrets.items()}
        assert {way: places for way, places in left.items() if places} == {}
    assert doubts == {}
