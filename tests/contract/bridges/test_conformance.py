"""What comes in over every bridge, whatever its network: one suite over all of them, each in a whole app.

What a network or a bridge cannot do is declared (`Facts`, `Capabilities`), and the fallback is asserted then.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from assistant.core.bridge_api import PollableBridge
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.store.database import Database
from assistant.store.home.inventory import SCRIPT_DB
from assistant.store.script.inbox import BridgeStates
from tests.support.networks.conformance_app import ConformanceApp, run_conformance_app
from tests.support.networks.network import RED_DOT, Network, NetworkRefused


def files_with(home: Path, words: bytes) -> list[str]:
    return [path.name for path in home.rglob("*") if path.is_file() and words in path.read_bytes()]


async def has_news(it: ConformanceApp) -> bool | None:
    """Whether the network has anything for an app that does not run; None for one that cannot be asked."""
    settings = load_settings(Home(it.home), ring=None)
    bridge = it.network.bridge(settings, it.clock)
    if not isinstance(bridge, PollableBridge):
        return None
    try:
        with closing(Database.open_reader(it.home / SCRIPT_DB)) as script:
            return await bridge.has_news(BridgeStates(script).load_position(bridge.name))
    finally:
        await bridge.aclose()


async def check_both_answered_once(it: ConformanceApp) -> None:
    """Apples, and then pears."""
    await it.wait_for_answer("You said: pears")
    assert it.model_user_texts() == ["apples", "pears"]
    assert it.texts() == ["You said: apples", "You said: pears"]


# ------------------------------------------------------------------------------------------------------- being answered


async def test_what_is_said_is_answered_in_its_order(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        for word in ("apples", "pears", "plums"):
            await network.say("owner", word)
            await it.wait_for_answer(f"You said: {word}")
        assert it.texts() == [f"You said: {word}" for word in ("apples", "pears", "plums")]
        assert it.logged_user_texts() == ["apples", "pears", "plums"]


async def test_what_was_said_while_nobody_was_home_is_answered_once(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        await it.stop()
        if not network.abilities.outages:
            with pytest.raises(NetworkRefused):
                await network.say("owner", "pears")
            await it.start()
            await network.say("owner", "pears")
        else:
            assert await has_news(it) in (False, None)
            await network.say("owner", "pears")
            # However often somebody asks, the next run gets it.
            assert await has_news(it) in (True, None) and await has_news(it) in (True, None)
            await it.start()
        await check_both_answered_once(it)


async def test_the_same_message_again_is_answered_once(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        first = await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        await network.redeliver(first)
        await it.restart()
        await network.redeliver(first)
        await network.say("owner", "pears")
        await check_both_answered_once(it)


async def test_a_command_is_answered_once_and_by_no_model(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        typed = await network.say("owner", "/todo add buy milk")
        await it.wait_until(lambda: len(it.texts()) == 1)
        await it.wait_idle()
        if network.abilities.redelivers:
            await network.redeliver(typed)
        await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        assert [todo.text for todo in it.app.stores.todos.list_todos("owner")] == ["buy milk"]
        assert it.model_user_texts() == ["apples"]
        assert len(it.texts()) == 2


# ----------------------------------------------------------------------------------------------------- who is there


async def test_a_guest_is_answered_in_a_conversation_of_their_own(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.strangers:
            with pytest.raises(NetworkRefused):
                await network.say("guest", "pears")
            return
        await network.say("owner", "apples")
        await network.say("guest", "pears")
        await it.wait_for_answer("You said: apples")
        await it.wait_for_answer("You said: pears", "guest")
        assert it.texts("owner") == ["You said: apples"]
        assert it.texts("guest") == ["You said: pears"]
        assert it.logged_user_texts(it.session("guest")) == ["pears"]


async def test_who_was_not_let_in_is_not_answered_and_nothing_of_theirs_is_kept(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if network.abilities.strangers:
            await network.say("stranger", "the marmalade plan")
        else:
            with pytest.raises(NetworkRefused):
                await network.say("stranger", "the marmalade plan")
        await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        assert it.model_user_texts() == ["apples"]
        assert network.visible_messages("stranger") == ()
    assert files_with(home, b"apples") and not files_with(home, b"marmalade")


async def test_a_room_is_answered_when_it_speaks_to_the_assistant(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.rooms:
            with pytest.raises(NetworkRefused):
                await network.say("owner", "apples", where="room")
            return
        await network.say("guest", "the marmalade plan", where="room", addressed=False)
        await network.say("guest", "pears", where="room")
        await it.wait_for_answer("pears", "guest", "room")
        assert len(it.texts("owner", "room")) == 1
        (kept,) = it.logged_user_texts(it.session("guest", "room"))
        assert "pears" in kept
        assert it.texts("guest") == []


async def test_a_room_may_be_answered_whatever_it_says(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home, ASSISTANT_ROOM__ANSWERS="everything") as it:
        if not network.abilities.rooms:
            with pytest.raises(NetworkRefused):
                await network.say("guest", "pears", where="room", addressed=False)
            return
        await network.say("guest", "pears", where="room", addressed=False)
        await it.wait_for_answer("pears", "guest", "room")
        assert len(it.texts("guest", "room")) == len(it.model.requests) == 1


async def test_a_thread_is_answered_within_it(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        first = await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        if not network.abilities.threads:
            with pytest.raises(NetworkRefused):
                await network.say("owner", "pears", thread=first)
            return
        await network.say("owner", "pears", thread=first)
        assert (await it.wait_for_answer("You said: pears")).thread == first
        assert it.visible_with("You said: apples")[0].thread == ""


# ------------------------------------------------------------------------------------------------- what they change


async def test_an_edit_becomes_a_fact_and_is_not_answered(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        message = await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        if not network.abilities.edits:
            with pytest.raises(NetworkRefused):
                await network.edit("owner", message, "oranges")
            return
        await network.edit("owner", message, "oranges")
        await it.wait_until(lambda: len(it.watch.changes()) == 1)
        await network.say("owner", "plums")
        await it.wait_for_answer("You said: plums")
        assert len(it.model.requests) == 2
        assert "oranges" in str(it.model.requests[1].messages)
        assert [change.kind for change in it.watch.changes()] == ["edit"]
        assert len(it.texts()) == 2


async def test_a_deletion_becomes_a_fact(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        message = await network.say("owner", "apples")
        await it.wait_for_answer("You said: apples")
        if not network.abilities.deletes:
            with pytest.raises(NetworkRefused):
                await network.delete("owner", message)
            return
        await network.delete("owner", message)
        await it.wait_until(lambda: len(it.watch.changes()) == 1)
        assert it.watch.changes()[0].kind == "delete"
        kinds = [record.kind for record in it.app.stores.history.recent("owner")]
        assert kinds == ["message", "message", "delete"]


# --------------------------------------------------------------------------------------------------- files and pictures


async def test_a_picture_reaches_the_model_and_the_workspace(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.pictures:
            with pytest.raises(NetworkRefused):
                await network.send_picture("owner", RED_DOT, "what is this")
            return
        await network.send_picture("owner", RED_DOT, "what is this")
        await it.wait_for_answer("what is this")
        (medium,) = it.model.requests[0].messages[-1].media
        assert (medium.kind, medium.size) == ("image", len(RED_DOT)) and medium.data is not None
        assert (it.app.settings.home.workspace / (medium.path or "")).read_bytes() == RED_DOT


async def test_a_file_comes_into_the_workspace_and_the_model_is_told_its_name(network: Network, home: Path) -> None:
    async with run_conformance_app(network, home) as it:
        if not network.abilities.files:
            with pytest.raises(NetworkRefused):
                await network.send_file("owner", "plan.txt", b"marmalade", "read this")
            return
        await network.send_file("owner", "plan.txt", b"marmalade", "read this")
        await it.wait_for_answer("read this")
        (medium,) = it.model.requests[0].messages[-1].media
        assert medium.path is not None and medium.path.endswith("plan.txt")
        assert (it.app.settings.home.workspace / medium.path).read_bytes() == b"marmalade"
