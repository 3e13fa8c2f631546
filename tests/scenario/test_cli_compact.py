"""`assistant compact`, `requests` and `pins`: slash commands, run by whoever serves the home."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from assistant.cli.main import assistant as assistant_command
from assistant.cli.open_link import open_home_locally, run_once
from assistant.core.errors import HomeLocked, UsageError
from assistant.service.home_lock import home_lock, is_home_served
from assistant.settings.settings import Settings, load_settings
from tests.support.command_line import one_line_error, run_daemon, run_in_process
from tests.support.compacted_home import json_output, open_empty_home


def settings_of(home: Path) -> Settings:
    return load_settings(None, {"ASSISTANT_HOME": str(home)})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    stores = open_empty_home(tmp_path / "home")
    stores.chat(2)
    stores.close()
    return tmp_path / "home"


# ----------------------------------------------------------------------------------------- whoever serves the home


def test_a_command_is_run_by_this_process_where_nobody_serves(home: Path) -> None:
    assert "milk" in run_once(settings_of(home), ["pins", "add", "milk"]).text
    assert "milk" in run_once(settings_of(home), ["pins", "list"]).text
    assert not is_home_served(settings_of(home).home.path)
    assert not settings_of(home).home.socket.exists()


def test_a_command_is_run_by_the_daemon_where_one_serves(home: Path) -> None:
    with run_daemon(home):
        assert "milk" in run_once(settings_of(home), ["pins", "add", "milk"]).text
        assert is_home_served(settings_of(home).home.path)
    assert "milk" in run_once(settings_of(home), ["pins", "list"]).text


def test_what_a_command_refuses_is_told_either_way(home: Path) -> None:
    with pytest.raises(UsageError, match="nonsense"):
        run_once(settings_of(home), ["nonsense"])
    with run_daemon(home), pytest.raises(UsageError, match="nonsense"):
        run_once(settings_of(home), ["nonsense"])


def test_a_home_that_another_process_holds_is_left_alone(home: Path) -> None:
    async def open_it(settings: Settings) -> None:
        async with open_home_locally(settings):
            raise AssertionError("opened without the lock")

    settings = settings_of(home)
    with home_lock(settings.home.path), pytest.raises(HomeLocked):
        asyncio.run(open_it(settings))


# --------------------------------------------------------------------------------------------------------- wrong use


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compact", "--dry-run", "--undo"], "Give one of"),
        (["compact", "the move", "--undo", "3"], "Give one of"),
        (["compact", "--undo", "three"], "'three' is not the number"),
        (["compact", "--session", "nowhere", "--json"], "Conversations: main"),
        (["requests", "--session", "nowhere"], "Conversations: main"),
        (["pins", "--session", "nowhere"], "Conversations: main"),
        (["pins", "add", " "], "nothing in that"),
    ],
)
def test_wrong_use_is_one_line_that_says_what_to_do(home: Path, arguments: list[str], words: str) -> None:
    done = run_in_process(home, *arguments)
    assert done.returncode == 2
    assert words in one_line_error(done)


# ----------------------------------------------------------------------------------------------- compacting and back

SMALL = {"ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS": "16000"}


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A home whose conversation is worth compacting."""
    stores = open_empty_home(tmp_path / "home")
    for number in range(60):
        stores.say(f"walk {number}: {'we went along the shore and back over the hill. ' * 8}", "A fine walk.")
    stores.close()
    return tmp_path / "home"


@pytest.mark.parametrize("served", [False, True])
def test_compact_makes_room_and_undo_brings_the_view_back(long: Path, served: bool) -> None:
    with run_daemon(long, **SMALL) if served else nullcontext():
        (before,) = json.loads(run_in_process(long, "sessions", "--json").out)
        planned = run_in_process(long, "compact", "--dry-run", **SMALL)
        assert (planned.returncode, planned.err) == (0, "")
        assert json_output(long) == []
        (made,) = json_output(long, "compact", command=assistant_command, **SMALL)["compactions"]
        assert (made["state"], made["session"]) == ("live", "main")
        assert made["summary_token_count"] < made["original_token_count"]
        assert json_output(long) == [made]
        (undone,) = json_output(long, "compact", "--undo", command=assistant_command, **SMALL)["compactions"]
        assert (undone["id"], undone["state"]) == (made["id"], "undone")
        (after,) = json.loads(run_in_process(long, "sessions", "--json").out)
        assert (after["view_messages"], after["view_tokens"]) == (before["view_messages"], before["view_tokens"])


def test_an_undo_of_nothing_says_so(home: Path) -> None:
    done = run_in_process(home, "compact", "--undo")
    assert done.returncode == 2
    assert one_line_error(done)


@pytest.mark.parametrize("served", [False, True])
def test_a_task_stays_open_until_it_is_said_to_be_done(tmp_path: Path, served: bool) -> None:
    stores = open_empty_home(tmp_path / "home")
    stores.say("Please water the plants on Sunday", "I will remember it.")
    stores.say("Please order new boots", "I will.")
    stores.say("What is the capital of Norway?", "Oslo.")
    stores.close()
    path = tmp_path / "home"
    with run_daemon(path) if served else nullcontext():
        boots, plants = json_output(path, "requests", command=assistant_command)
        assert (plants["text"], plants["state"], plants["task"]) == ("Please water the plants on Sunday", "open", True)
        (closed,) = json_output(path, "requests", "done", str(plants["id"]), command=assistant_command)
        assert (closed["id"], closed["state"]) == (plants["id"], "done")
        assert [row["id"] for row in json_output(path, "requests", command=assistant_command)] == [boots["id"]]
        assert run_in_process(path, "requests", "drop", str(boots["id"])).returncode == 0
        assert "No request is open" in run_in_process(path, "requests").out
        asked = json_output(path, "requests", "--all", command=assistant_command)
        assert [row["state"] for row in asked] == ["done", "superseded", "done"]
        assert [row["closed_by"] for row in asked] == ["answer", "user", "user"]
        wrong = run_in_process(path, "requests", "done", "99")
        assert wrong.returncode == 2
        assert "99" in one_line_error(wrong)


@pytest.mark.parametrize("served", [False, True])
def test_a_text_or_a_message_is_pinned_and_taken_off(home: Path, served: bool) -> None:
    with run_daemon(home) if served else nullcontext():
        assert "Nothing is pinned" in run_in_process(home, "pins").out
        assert run_in_process(home, "pins", "add", "The dog is", "allergic to chicken").returncode == 0
        message = json_output(home, "pins", "add", "1", command=assistant_command)
        text, again = json_output(home, "pins", command=assistant_command)
        assert again == message
        assert (text["text"], text["message_id"]) == ("The dog is allergic to chicken", None)
        assert (message["text"], message["message_id"], message["role"]) == ("question 0", 1, "user")
        assert "allergic" in run_in_process(home, "pins").out
        assert json_output(home, "pins", "remove", str(text["id"]), command=assistant_command) == [text]
        assert json_output(home, "pins", command=assistant_command) == [message]
        wrong = run_in_process(home, "pins", "remove", "99")
        assert wrong.returncode == 2
        assert "99" in one_line_error(wrong)
