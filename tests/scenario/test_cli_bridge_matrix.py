"""`assistant bridge add matrix` against a real homeserver: a device of its own, and nothing half."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assistant.bridges.configured import find_homeserver, find_matrix_device
from assistant.core.errors import BridgeError
from assistant.core.notices import NoticeKind
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from tests.support.command_line import TIMEOUT_SECONDS, run_bridge_command
from tests.support.matrix_users import MatrixUser
from tests.support.synapse import Synapse

TEST_MESSAGE = NoticeKind.BRIDGE_TEST.fill().text


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.path.mkdir(mode=0o700)
    made.config.write_text('[model]\nprovider = "offline"\n[matrix]\nencryption = false\n')
    return made


async def meet(server: Synapse, bot: str, known: Future[str]) -> list[str]:
    """Somebody who invites the assistant, and writes once it has come; what they read then."""
    ada = await MatrixUser(server, "ada").log_in()
    known.set_result(ada.user)
    room = await ada.create_room(bot, is_direct=True)
    await ada.sync_until(lambda: any(_joined(event, bot) for event in ada.events.get(room, [])))
    await ada.say(room, "hello")
    await ada.sync_until(lambda: any(TEST_MESSAGE in text for text in _texts(ada, room, bot)))
    await ada.http.aclose()
    return _texts(ada, room, bot)


def _joined(event: dict[str, Any], user: str) -> bool:
    return event.get("state_key") == user and event["content"].get("membership") == "join"


def _texts(person: MatrixUser, room: str, sender: str) -> list[str]:
    return [event["content"]["body"] for event in person.messages(room, sender)]


def test_a_password_becomes_a_device_of_its_own_and_is_kept_nowhere(home: Home, homeserver: Synapse) -> None:
    bot, password = homeserver.register("bot")
    known: Future[str] = Future()
    with ThreadPoolExecutor() as threads:
        meeting = threads.submit(lambda: asyncio.run(meet(homeserver, bot, known)))
        owner = known.result(TIMEOUT_SECONDS)
        done = run_bridge_command(
            home, "bridge", "add", "matrix", said=f"{bot}\n{homeserver.url}\n{owner}\npassword\n{password}\n"
        )
        assert (done.returncode, done.err) == (0, "")
        assert TEST_MESSAGE in meeting.result(TIMEOUT_SECONDS)
    assert f"{owner} on matrix is you from now on." in done.out
    assert f"matrix answers, as {bot}, and took the test message." in done.out
    matrix = load_settings(home, {}).values.matrix
    assert (matrix.enabled, matrix.homeserver, matrix.user) == (True, homeserver.url, bot)
    assert matrix.device
    kept = home.config.read_text() + home.secrets.read_text()
    assert password not in kept + done.out
    again = run_bridge_command(home, "bridge", "add", "matrix", said="\n\n\n\n")
    assert (again.returncode, "How does it log in? [set]" in again.out) == (0, True)
    assert load_settings(home, {}).values.matrix.device == matrix.device


def test_a_wrong_password_changes_nothing(home: Home, homeserver: Synapse) -> None:
    bot, _ = homeserver.register("bot")
    before = home.config.read_text()
    options = ("--user", bot, "--homeserver", homeserver.url, "--password-stdin")
    done = run_bridge_command(home, "bridge", "add", "matrix", *options, said="another password\n")
    assert (done.returncode, done.out) == (1, "")
    assert "another password" not in done.err
    assert home.config.read_text() == before
    assert not home.secrets.exists()


async def test_a_token_is_taken_with_the_device_that_it_belongs_to(homeserver: Synapse) -> None:
    ada = await MatrixUser(homeserver, "ada").log_in()
    assert (await find_matrix_device(homeserver.url, ada.user, ada.token)).device == ada.device
    with pytest.raises(BridgeError, match="refuses this access token"):
        await find_matrix_device(homeserver.url, ada.user, "nonsense")
    with pytest.raises(BridgeError, match=f"is one of {ada.user}, not of @bob"):
        await find_matrix_device(homeserver.url, "@bob:test.example", ada.token)
    with pytest.raises(BridgeError, match="cannot be reached"):
        await find_matrix_device("http://127.0.0.1:9", ada.user, ada.token)
    await ada.http.aclose()


async def test_a_domain_that_names_no_homeserver_is_its_own() -> None:
    assert await find_homeserver("127.0.0.1:9") == "https://127.0.0.1:9"
