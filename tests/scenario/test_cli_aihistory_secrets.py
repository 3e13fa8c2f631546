"""`aihistory` leaves out what looks like a password, key, PIN or card number, unless it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant.cli.aihistory.main import aihistory
from tests.support.command_line import run_in_process
from tests.support.compacted_home import compact_view, json_output, open_empty_home

SECRETS = ("hunter2-Cerulean", "4111 1111 1111 1111", "90417")
HARMLESS = ("Byparken", "TK-4471-Q", "+49 151 2345 6789")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("secrets") / "home"
    stores = open_empty_home(path)
    stores.say("My wifi password is hunter2-Cerulean, they say at Byparken.", "The tram stops at Byparken.")
    stores.say("My card number is 4111 1111 1111 1111, the PIN is 90417", "I will keep hunter2-Cerulean in mind.")
    stores.say("Ticket TK-4471-Q, ring +49 151 2345 6789 with Ada Berg", "Noted, Ada Berg.")
    stores.chat(2)
    facts = {"restored": ["My wifi password is hunter2-Cerulean"], "identifiers": ["TK-4471-Q"]}
    compact_view(stores, 6, "A tram, and that the PIN is 90417.", key_facts=facts)
    stores.close()
    return path


def _run(home: Path, *arguments: str) -> str:
    done = run_in_process(home, *arguments, command=aihistory)
    assert done.returncode == 0
    return done.out + done.err


@pytest.mark.parametrize("command", [("show", "1"), ("recover", "1"), ("diff", "1"), ("search", "Byparken")])
def test_what_looks_like_a_secret_is_left_out_of_what_is_shown_unasked(home: Path, command: tuple[str, ...]) -> None:
    shown = _run(home, *command)
    assert not [secret for secret in SECRETS if secret in shown]
    assert " left out]" in shown and "`--secrets` shows it" in shown
    assert any(word in shown for word in HARMLESS)


def test_a_value_is_left_out_also_where_nothing_says_what_it_is(home: Path) -> None:
    assert "I will keep [password left out] in mind." in _run(home, "recover", "1")


@pytest.mark.parametrize("command", [("show", "1"), ("recover", "1"), ("diff", "1"), ("search", "Byparken")])
def test_whoever_asks_is_shown_it(home: Path, command: tuple[str, ...]) -> None:
    for asked in (_run(home, *command, "--secrets"), json.dumps(json_output(home, *command))):
        assert any(secret in asked for secret in SECRETS) and "left out" not in asked


def test_a_search_that_names_such_a_thing_shows_it(home: Path) -> None:
    assert "hunter2-Cerulean" in _run(home, "search", "wifi password")


def test_data_say_what_is_a_secret(home: Path) -> None:
    kinds = {fact["text"]: fact["secret"] for fact in json_output(home, "diff", "1")}
    assert kinds["hunter2-Cerulean"] == "password" and "" in kinds.values(), kinds


def test_no_remark_stands_where_nothing_was_left_out(home: Path) -> None:
    assert "--secrets" not in _run(home, "search", "Ada Berg")
