"""F33: everything is tried as a guest and as a room, in a home where everybody has a secret in everything that keeps
words. No secret comes back to another, and nothing of another changes; guests and rooms are tried among themselves."""

from __future__ import annotations

import inspect
import itertools
import shutil
import tomllib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assistant.agenda.day_phrases import DayRange
from assistant.commands.table import leaf_commands
from assistant.core.erasure import ErasureRequest
from assistant.core.errors import AssistantError
from assistant.core.messages import ToolCall
from assistant.core.ports import ToolContext
from assistant.core.records import IncomingMessage
from assistant.core.sessions import MAIN_SESSION, session_role, session_scope
from tests.support import api_surface as reach
from tests.support.intrusion_attempts import ASKED, tool_attempts
from tests.support.planted_secrets import (
    ANN_SESSION,
    BOAT_THREAD,
    IVO_SESSION,
    ROOM_SESSION,
    SECRETS,
    ForeignIds,
    foreign_ids,
    foreign_secrets,
    foreign_snapshot,
    make_home_with_secrets,
    open_with_grants,
    result_text,
)
from tests.support.running_app import ANN, ROOM, BridgePeople, LiveApp

TABLE: dict[str, Any] = tomllib.loads((Path(__file__).parent / "scopes.toml").read_text(encoding="utf-8"))
VISITORS = [ANN_SESSION, ROOM_SESSION]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_home_with_secrets(tmp_path_factory.mktemp("planted"))


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "home", ignore=shutil.ignore_patterns("run")))


class IntrusionAttempt:
    """What somebody tried in a home, and what they were told. At its end nothing of the others' came out, and nothing
    changed."""

    def __init__(self, home: Path, session: str) -> None:
        self.home, self.session = home, session
        self.loot = foreign_ids(home, session)
        self._before = foreign_snapshot(home, session)

    def look(self, what: str, result: object) -> None:
        said = result_text(result)
        assert [secret for secret in foreign_secrets(self.session) if secret in said] == [], what

    def nothing_changed(self) -> None:
        after = foreign_snapshot(self.home, self.session)
        assert {name for name, rows in self._before.items() if after.get(name) != rows} == set()


# ------------------------------------------------------------------------------------------------------------- planted


async def test_what_is_planted_is_found_by_whom_it_belongs_to(home: Path) -> None:
    """Else nothing below would prove anything."""
    async with open_with_grants(home) as it:
        for known in (foreign_ids(home, MAIN_SESSION), foreign_ids(home, ANN_SESSION)):
            kinds = (
                known.messages,
                known.entries,
                known.memories,
                known.todos,
                known.jobs,
                known.profiles,
                known.edits,
            )
            assert all(len(set(kind)) >= 4 for kind in kinds)
        for session in (ANN_SESSION, ROOM_SESSION):
            asked = ToolContext(session, session, "t-own", "own", it.clock.now)
            for name, arguments in (
                ("search_history", {"query": ASKED}),
                ("search_memory", {"query": ASKED}),
                ("list_reminders", {}),
                ("manage_todo_list", {"action": "list"}),
                ("read_history", {"start": 0, "end": 10**9}),
            ):
                text, _ = await it.app.toolbox.run(ToolCall("own", name, arguments), asked, session_role(session))
                assert SECRETS[session] in text, name
        assert [archive.session for archive in it.app.stores.archive.list_archives("owner")] == [BOAT_THREAD]


# --------------------------------------------------------------------------------------------------------------- tools


def own_words(arguments: dict[str, Any], text: str) -> str:
    """The answer without what was asked for, which may be said back."""
    for value in arguments.values():
        if isinstance(value, str) and value:
            text = text.replace(value, "")
    return text


@pytest.mark.parametrize("session", VISITORS)
async def test_f33_no_tool_gives_or_changes_anything_of_anybody_elses(home: Path, session: str) -> None:
    async with open_with_grants(home) as it:
        visit = IntrusionAttempt(home, session)
        attempts = tool_attempts(visit.loot, session)
        assert attempts.keys() == it.app.toolbox.allowed_roles.keys(), "each tool is tried"
        numbers = itertools.count()
        for name, arguments in ((name, one) for name, several in attempts.items() for one in several):
            key = f"visit:{next(numbers)}"
            context = ToolContext(session, session_scope(session), "t-visit", key, it.clock.now)
            text, _ = await it.app.toolbox.run(ToolCall(key, name, arguments), context, session_role(session))
            visit.look(f"{name} {arguments}", own_words(arguments, text))
            if name in TABLE["tools"]["owner"]:
                assert "may not be used in this conversation" in text
        visit.nothing_changed()


# ------------------------------------------------------------------------------------------------------------ commands


def command_attempts(loot: ForeignIds) -> dict[str, list[str]]:
    numbers = [*loot.messages, *loot.todos]
    return {
        "help": [""],
        "todo list": [""],
        "todo add": [""],
        "todo done": [str(one) for one in loot.todos],
        "todo remove": [str(one) for one in loot.todos],
        "todo reopen": [str(one) for one in loot.todos],
        "todo edit": [f"{one} Another text --due friday" for one in loot.todos],
        "todo clear": ["to-do", "boat"],
        "agenda": ["", "90 days"],
        "requests list": ["", "--all"],
        "requests done": [str(one) for one in numbers],
        "requests drop": [str(one) for one in numbers],
        "remind add": [""],
        "remind list": [""],
        "remind history": ["", "--limit 1000"],
        "remind cancel": [str(one) for one in loot.jobs],
        "remind done": [str(one) for one in loot.jobs],
        "remind change": [f"{one} Another --at tomorrow" for one in loot.jobs],
        "remind skip": [str(one) for one in loot.jobs],
        "remind again": [f"{one} tomorrow" for one in loot.jobs],
        "undo": ["", "1"],
        **{name: [""] for name in ("retry", "stop")},
    }


@pytest.mark.parametrize("session", VISITORS)
async def test_f33_no_command_gives_or_changes_anything_of_anybody_elses(home: Path, session: str) -> None:
    async with open_with_grants(home) as it:
        visit = IntrusionAttempt(home, session)
        attempts = command_attempts(visit.loot)
        for path, leaf in leaf_commands(it.app.commands.root):
            name, admitted = " ".join(path), session_role(session) in leaf.roles
            assert not admitted or name in attempts, f"/{name} is tried"
            for rest in attempts[name] if admitted else ["", *foreign_secrets(session), "1", "main", ANN_SESSION]:
                answer = await typed(it, f"/{name} {rest}", session)
                visit.look(f"/{name} {rest}", answer.replace(rest, "") if rest else answer)
                assert admitted or answer.startswith(f"/{name.split()[0]} cannot be used here.")
        await it.wait_idle()
        visit.nothing_changed()


async def typed(it: LiveApp, text: str, session: str) -> str:
    try:
        return await it.app.commands.run(text, session, bridge="kept", target=ANN, sender=ANN)
    except AssistantError as error:
        return str(error)


# -------------------------------------------------------------------------------------------------------------- stores


def arguments(loot: ForeignIds, session: str, now: Any) -> dict[str, list[Any]]:
    """What each parameter of a scoped method is tried with."""
    secrets, later = foreign_secrets(session), now + timedelta(days=1)
    return {
        "scope": [session_scope(session)],
        "query": [*secrets, ASKED],
        "words": [[*secrets, "secret"]],
        "question": [*secrets, ASKED],
        "text": [*secrets, ASKED],
        "name": [f"Code {secret}" for secret in secrets],
        "session": loot.sessions,
        "sessions": [loot.sessions],
        "message_id": loot.messages,
        "memory_id": loot.memories,
        "entry_ids": [loot.entries],
        "ids": [[one] for one in loot.todos],
        "reference": [*(one[:8] for one in loot.memories), *(f"entry {one}" for one in loot.entries)],
        "before_reference": [*(one[:8] for one in loot.memories), *(f"entry {one}" for one in loot.entries)],
        "texts": [[ASKED, *secrets]],
        "key": ["visit"],
        "keys": [loot.deliveries],
        "now": [now],
        "at": [later],
        "after": [now - timedelta(days=9)],
        "before": [later],
        "after_name": [""],
        "before_entry": [(later, 10**9)],
        "start": [0],
        "end": [10**9],
        "neighbours": [10],
        "limit": [50],
        "day": [now.date()],
        "job_id": loot.jobs,
        "due": [None],
        "zone": ["UTC"],
        "list_name": ["", "boat"],
        "days": [DayRange(now.date(), now.date() + timedelta(days=60))],
        "until": ["9999-12-31"],
        "since": [now - timedelta(days=9)],
        "kind": ["reminder", "schedule"],
        "edit_id": loot.edits,
        "cycle": [*range(1, 5)],
        "profile_id": loot.profiles,
        "code": ["ABCDEF"],
        "beginning": [""],
        "new": [{b"a digest": "[]"}],
    }


# Who is given a scope and words of their own changes only what is of the scope: tried with the tools and commands.
WRITING = {"append_daily_note", "add", "accept", "begin", "import_text"}


def scoped(it: LiveApp, session: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every method of the table that takes a scope itself; those that start a process, for a guest alone."""
    things = reach.reachable_methods(it.app)
    for thing, kinds in TABLE["methods"].items():
        for name in kinds.get("scope", ()):
            method = things[thing][name]
            slow = f"{thing}.{name}" == "stores.memories.nearest" and session != ANN_SESSION
            takes = "scope" in inspect.signature(method).parameters
            if takes and name not in WRITING and not slow:
                yield f"{thing}.{name}", method


def calls(method: Callable[..., Any], known: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """The method with everything it can be asked for, once with and once without what may be left out."""
    parameters = inspect.signature(method).parameters.values()
    needed = [one for one in parameters if one.default is one.empty or one.name == "scope"]
    for wanted in (needed, list(parameters)):
        names = [one.name for one in wanted if one in needed or one.name in known]
        assert known.keys() >= set(names), f"{names}: say in `arguments` what each is tried with"
        for values in itertools.product(*(known[name] for name in names)):
            yield dict(zip(names, values, strict=True))


@pytest.mark.parametrize("session", VISITORS)
async def test_f33_no_store_gives_or_changes_anything_beyond_the_scope(home: Path, session: str) -> None:
    async with open_with_grants(home) as it:
        visit = IntrusionAttempt(home, session)
        known = arguments(visit.loot, session, it.clock.now)
        tried = set()
        for name, method in scoped(it, session):
            for call in calls(method, known):
                tried.add(name)
                try:
                    result = method(**call)
                    result = await result if inspect.isawaitable(result) else result
                    result = [line async for line in result] if inspect.isasyncgen(result) else result
                except AssistantError as error:
                    result = str(error)
                visit.look(f"{name} {call}", own_words(call, result_text(result)))
        assert {"stores.history.search", "stores.todos.remove", "stores.files.undo_edit", "memory.why"} <= tried
        await it.app.stores.memories.aclose()
        visit.nothing_changed()


@pytest.mark.parametrize("session", VISITORS)
async def test_f33_help_describes_no_command_that_cannot_be_used_here(home: Path, session: str) -> None:
    async with open_with_grants(home) as it:
        commands, role = it.app.commands, session_role(session)
        for name, roles in commands.grantable_roles().items():
            try:
                answer = await commands.run(f"/help {name}", session)
            except AssistantError as error:
                assert str(error).startswith(f"There is no command /{name} here."), name
                assert role not in roles, name
            else:
                assert answer.startswith("`/") and role in roles, name


@pytest.mark.parametrize("session", VISITORS)
async def test_f33_nothing_can_be_marked_to_be_forgotten_beyond_the_scope(home: Path, session: str) -> None:
    async with open_with_grants(home) as it:
        visit, scope = IntrusionAttempt(home, session), session_scope(session)
        for wanted in (
            *(ErasureRequest(scope, text=secret) for secret in foreign_secrets(session)),
            *(ErasureRequest(scope, messages=(one,)) for one in visit.loot.messages),
            *(ErasureRequest(scope, memories=(one,)) for one in visit.loot.memories),
        ):
            try:
                found, code = await it.app.erasure.request_code(wanted, it.clock.now)
            except AssistantError as error:
                visit.look(str(wanted), str(error).replace(wanted.text or "\0", ""))
                continue
            visit.look(str(wanted), result_text(found).replace(wanted.text or "\0", ""))
            assert not code, "there is nothing to forget"
        await it.app.stores.memories.aclose()
        visit.nothing_changed()


# ------------------------------------------------------------------------------------------------------------- prompts


@pytest.mark.parametrize(("session", "room"), [(ANN_SESSION, None), (ROOM_SESSION, ROOM)])
async def test_f33_no_prompt_has_anything_of_anybody_elses(home: Path, session: str, room: str | None) -> None:
    async with open_with_grants(home) as it:
        visit, them = IntrusionAttempt(home, session), BridgePeople(it, itertools.count(1000))
        for text in (
            ASKED,
            *(f"Do you know {secret[:-4]}?" for secret in foreign_secrets(session)),
            "And Code, who is that?",
        ):
            await them.write(text, ANN, room=room)
            visit.look(text, it.model.requests[-1])
        assert SECRETS[session] in result_text(it.model.requests[-1]), "what is theirs is there"
        await it.app.sleep.scheduler.run_now("manual")
        visit.nothing_changed()


async def test_f33_the_owner_reads_nothing_of_others_in_their_own_conversation(home: Path) -> None:
    async with open_with_grants(home) as it:
        them = BridgePeople(it, itertools.count(1000))
        it.app.stores.places.choose_session("kept", "100", MAIN_SESSION, it.clock.now)
        for text in (ASKED, "Do you know saffron, walnut, cardamom, juniper?"):
            await them.write(text, "100")
            said = result_text(it.model.requests[-1])
            assert SECRETS[MAIN_SESSION] in said
            assert [
                SECRETS[other] for other in (ANN_SESSION, IVO_SESSION, ROOM_SESSION) if SECRETS[other] in said
            ] == []


async def test_f33_a_message_cannot_name_the_scope_of_another_session(home: Path) -> None:
    async with open_with_grants(home) as it:
        visit = IntrusionAttempt(home, ANN_SESSION)
        for session, scope in (
            (MAIN_SESSION, ANN_SESSION),
            (BOAT_THREAD, ANN_SESSION),
            (IVO_SESSION, ANN_SESSION),
            (ANN_SESSION, "owner"),
        ):
            with pytest.raises(AssistantError, match="is not of scope"):
                await it.app.runtime.accept(IncomingMessage("kept", "x", session, scope, ANN, "guest", "hello"))
        visit.nothing_changed()
