"""`assistant people`: what it shows, what it changes, and that every command of docs/people.md does what it says."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from assistant.core.bridge_api import InboundMessage
from assistant.core.calendar import utc_now
from assistant.settings.settings import load_settings
from assistant.wire.app import build_app
from tests.support.command_line import ROOT, TELEGRAM_SET_UP, FinishedCommand, run_in_process
from tests.support.running_app import OWNER, STRANGER, BridgePeople, run_app
from tests.support.scripted import RecordingBridge, ScriptedModel

DOCUMENT = ROOT / "docs" / "people.md"
COMMANDS = re.findall(r"^assistant people.*$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)


def run_people(home: Path, *arguments: str) -> FinishedCommand:
    return run_in_process(home, *arguments, **TELEGRAM_SET_UP)


async def knocked(home: Path) -> str:
    """Somebody wrote and was given a code."""
    settings = load_settings(None, {"ASSISTANT_HOME": str(home)})
    bridge = RecordingBridge("telegram")
    app = build_app(settings, utc_now, bridges={"telegram": bridge}, model=ScriptedModel())
    try:
        await app.inbound.receive(InboundMessage("telegram", "1", "77", "may I come in", "Ann", target="77"))
        (item,) = app.stores.outbox.pending_items("telegram")
        return item.outgoing.body.rpartition(" ")[2]
    finally:
        await app.models.aclose()
        app.close()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The owner has an account, Ann is number 2, and a room is let in."""
    home = tmp_path_factory.mktemp("people") / "home"
    assert run_people(home, "people", "link", "telegram", "42").returncode == 0
    assert run_people(home, "people", "allow", "telegram", "7").returncode == 0
    assert run_people(home, "people", "rename", "2", "Ann").out == "2 is called Ann from now on.\n"
    assert run_people(home, "people", "allow", "room", "telegram", "-7654321").returncode == 0
    return home


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "home", ignore=shutil.ignore_patterns("run")))


@pytest.mark.parametrize("line", dict.fromkeys(COMMANDS))
def test_every_command_of_the_document_works(home: Path, line: str) -> None:
    if "unlink" in line:
        assert run_people(home, "people", "link", "telegram", "1234567").returncode == 0
    done = run_people(home, *shlex.split(line)[1:])
    if "pair" in line:
        assert (done.returncode, done.err.strip()) == (
            2,
            "Error: No code is waiting: it was used, or it has expired. They get another by writing again.",
        )
    else:
        assert (done.returncode, done.err) == (0, "")


def test_who_knocked_is_listed_without_their_code_and_let_in_with_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    code = asyncio.run(knocked(home))
    listed = run_people(home, "people")
    assert "Ann" in listed.out and "77" in listed.out and code not in listed.out
    assert code not in run_people(home, "people", "list", "--json").out
    done = run_people(home, "people", "pair", code, "--name", "Ann Lee")
    assert done.out == "Ann Lee on telegram is approved, as a guest.\n"


def test_json_tells_who_is_known_then(home: Path) -> None:
    done = run_people(home, "people", "deny", "Ann", "--json")
    told = json.loads(done.out)
    assert told["text"] == "Ann is not answered any more."
    assert [(one["name"], one["role"], one["state"]) for one in told["people"]] == [
        ("owner", "owner", "allowed"),
        ("Ann", "guest", "denied"),
    ]
    assert told["rooms"][0]["room"] == "-7654321"
    link = json.loads(run_people(home, "people", "link", "telegram", "--json").out)["text"]
    assert re.search(r"Send [A-Z2-9]{8} to the assistant from telegram", link)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("deny", "owner"), "That is you."),
        (("allow", "Nobody"), "Nobody is called 'Nobody'."),
        (("unlink", "telegram", "1"), "Nobody has the account 1 on telegram."),
        (("rename", "2", "\n"), "A name needs letters."),
        (("rename", "room", "telegram", "1", "Club"), "There is no room '1' on telegram."),
        (("allow", "a", "b", "c"), "WHO is a number"),
        (("pair", "ABC"), "A code has 8 letters and digits"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(home: Path, arguments: tuple[str, ...], why: str) -> None:
    before = run_people(home, "people", "list", "--json").out
    done = run_people(home, "people", *arguments)
    assert done.returncode == 2 and why in done.err
    assert run_people(home, "people", "list", "--json").out == before


def test_the_owner_keeps_an_account_that_a_guest_had(home: Path) -> None:
    assert run_people(home, "people", "link", "telegram", "7").returncode == 0
    told = json.loads(run_people(home, "people", "--json").out)
    assert [one["role"] for one in told["people"]] == ["owner"]
    assert [one["id"] for one in told["people"][0]["identities"]] == ["42", "7"]


async def test_an_owner_who_mistyped_their_code_does_not_wait_as_a_stranger_once_it_fits(tmp_path: Path) -> None:
    async with run_app(tmp_path, "hello") as it:
        them = BridgePeople(it)
        code = (await them.command("/people link kept")).split()[1]
        await them.write(f"here it is: {code}", OWNER)
        await them.write("let me in, too", STRANGER)
        await them.write(code, OWNER)
        waiting = it.app.stores.pairings.pending_pairings(it.clock.now)
        assert [one.sender for one in waiting] == [STRANGER]


@pytest.mark.parametrize(
    "words",
    [
        ("link", "foo"),
        ("link", "foo", "12"),
        ("deny", "foo", "12"),
        ("allow", "foo", "12"),
        ("deny", "room", "foo", "12"),
        ("link", "matrix"),
        ("link", "telegram", "--owner"),
    ],
)
def test_a_network_that_is_not_set_up_and_what_is_no_account_are_refused_with_a_list(
    home: Path, words: tuple[str, ...]
) -> None:
    before = run_people(home, "people", "--json").out
    done = run_people(home, "people", *words)
    assert done.returncode == 2 and "Nothing was changed" in done.err and "is you" not in done.out
    if "telegram" not in words:
        assert "these are set up: telegram" in done.err and "telegram, matrix" in done.err
    assert run_people(home, "people", "--json").out == before


def test_without_any_network_set_up_it_says_how_to_set_one_up(tmp_path: Path) -> None:
    done = run_in_process(tmp_path / "home", "people", "link", "telegram")
    assert done.returncode == 2 and "none is set up yet. `assistant bridge add`" in done.err
