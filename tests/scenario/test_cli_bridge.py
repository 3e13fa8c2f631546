"""`assistant bridge`: set up, followed, tested, paused and taken away, against a strict Bot API on this machine."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from keyring.backends.fail import Keyring as NoKeyring

from assistant.cli.bridge.settings import BridgeAnswers, save_bridge_answers
from assistant.core.calendar import utc_now
from assistant.core.errors import SettingsError
from assistant.core.notices import NoticeKind
from assistant.core.records import OutgoingMessage
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.wire.stores import Stores
from tests.support.command_line import (
    TELEGRAM_SET_UP,
    TIMEOUT_SECONDS,
    command_environment,
    run_bridge_command,
    run_daemon,
    run_in_process,
)
from tests.support.forked_terminal import AssistantTerminal
from tests.support.keyring import InMemoryKeyring, use_keyring
from tests.support.telegram_bridge import ThreadedTelegram

WELCOME = NoticeKind.APPROVED.fill().text
WELCOME_OWNER = NoticeKind.ACCOUNT_LINKED.fill().text
TEST_MESSAGE = NoticeKind.BRIDGE_TEST.fill().text

NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
WRONG = "654321:some-other-token"
STRANGER = 77


@pytest.fixture
def desk() -> Iterator[ThreadedTelegram]:
    with ThreadedTelegram() as made:
        yield made


@pytest.fixture
def home(tmp_path: Path, desk: ThreadedTelegram) -> Home:
    """A home in which nothing was said yet; its Telegram is the desk."""
    made = Home(tmp_path / "home")
    made.path.mkdir(mode=0o700)
    made.config.write_text(f'[telegram]\n# Here.\nbase_url = "{desk.url}"\n\n[model]\nprovider = "offline"\n')
    return made


@pytest.fixture(autouse=True)
def no_keyring() -> Iterator[None]:
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        yield


def known(home: Home, desk: ThreadedTelegram) -> None:
    """The owner's account there is known, and writes as soon as somebody listens."""
    assert run_in_process(home.path, "people", "link", "telegram", "1001", **TELEGRAM_SET_UP).returncode == 0
    desk.say("hello")


def terminal(home: Home, *words: str) -> pexpect.spawn:
    return AssistantTerminal(
        *words,
        env=command_environment(home.path, **NO_KEYRING),
        timeout=TIMEOUT_SECONDS,
        encoding="utf-8",
        dimensions=(30, 160),
    )


# --- the whole way


def test_a_bridge_from_its_first_day_to_its_last_beside_a_daemon(home: Home, desk: ThreadedTelegram) -> None:
    with run_daemon(home.path, **NO_KEYRING):
        child = terminal(home, "bridge", "add", "telegram")
        try:
            child.expect("Token .*: $")
            child.sendline(desk.token)
            child.expect("as @nocturne_bot")
            child.expect(r"Send (\w{8}) to the assistant from telegram")
            said = child.before + child.after
            code = child.match[1]
            # Whoever finds the bot first is nobody: they have no code of the owner's.
            desk.say("hello, who is this?", STRANGER)
            (told,) = desk.wait_until(lambda texts: len(texts) == 1, STRANGER)
            desk.say(code)
            child.expect("took the test message")
            child.expect("The running assistant uses it")
            child.expect(pexpect.EOF)
            child.wait()
            assert child.exitstatus == 0
            assert desk.token not in said
        finally:
            child.close(force=True)
        assert desk.texts() == [WELCOME_OWNER, TEST_MESSAGE]
        (one,) = json.loads(run_in_process(home.path, "bridge", "list", "--json").out)
        assert (one["state"], one["account"], one["waiting"], one["error"]) == ("connected", "@nocturne_bot", 0, "")

        assert run_in_process(home.path, "bridge", "pause", "telegram").returncode == 0
        assert run_in_process(home.path, "people", "pair", told.rpartition(" ")[2], "--name", "Bob").returncode == 0
        listed = run_in_process(home.path, "bridge").out
        assert re.search(
            r"telegram as @nocturne_bot: paused .* 1 delivery waiting. `assistant bridge resume telegram`", listed
        )
        refused = run_in_process(home.path, "bridge", "test", "telegram")
        assert (refused.returncode, "paused, and nothing was sent" in refused.err) == (2, True)
        assert desk.texts(STRANGER) == [told]
        assert run_in_process(home.path, "bridge", "resume", "telegram").returncode == 0
        assert desk.wait_until(lambda texts: len(texts) == 2, STRANGER) == [told, WELCOME]

        removed = run_in_process(home.path, "bridge", "remove", "telegram", "--yes")
        assert (removed.returncode, removed.err) == (0, "")
        assert "No bridge is set up" in run_in_process(home.path, "bridge").out
        assert "# Here." in home.config.read_text()
        assert load_settings(home, {}).values.telegram.token.get_secret_value() == ""


def test_ctrl_c_while_it_waits_leaves_a_bridge_that_is_set_up(home: Home, desk: ThreadedTelegram) -> None:
    assert run_in_process(home.path, "people", "link", "telegram", "1001", **TELEGRAM_SET_UP).returncode == 0
    child = terminal(home, "bridge", "add", "telegram")
    try:
        child.expect("Token .*: $")
        child.sendline(desk.token)
        child.expect("Write anything to @nocturne_bot on Telegram, from your own account")
        child.expect("Waiting for your message")
        child.sendintr()
        child.expect("Stopped. telegram is set up; `assistant bridge add telegram` continues from here")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 130
    finally:
        child.close(force=True)
    settings = load_settings(home, {})
    assert (settings.values.telegram.enabled, settings.values.telegram.token.get_secret_value()) == (True, desk.token)
    assert "telegram" in run_in_process(home.path, "bridge").out


# --- adding


def test_where_none_runs_the_command_serves_the_home_until_the_test_has_arrived(
    home: Home, desk: ThreadedTelegram
) -> None:
    known(home, desk)
    done = run_bridge_command(home, "bridge", "add", "telegram", said=f"{desk.token}\n")
    assert (done.returncode, done.err) == (0, "")
    assert "start the assistant with `assistant run` or `assistant service install`" in done.out
    assert desk.token not in done.out
    assert TEST_MESSAGE in desk.texts()
    assert stat.S_IMODE(home.secrets.stat().st_mode) == 0o600
    assert desk.token not in home.config.read_text()
    again = run_bridge_command(home, "bridge", "add", "telegram", said="\n")
    assert "[the current one]" in again.out
    assert "Waiting for your message" not in again.out
    assert desk.texts().count(TEST_MESSAGE) == 2
    (one,) = json.loads(run_bridge_command(home, "bridge", "list", "--json").out)
    assert (one["state"], one["todo"]) == ("off", "`assistant run`, or `assistant service start`, connects it.")
    assert "took the test message" in run_bridge_command(home, "bridge", "test", "telegram").out


def test_a_script_is_told_the_code_and_waits_for_nobody(home: Home, desk: ThreadedTelegram) -> None:
    done = run_bridge_command(home, "bridge", "add", "telegram", "--token-stdin", "--no-wait", said=f"{desk.token}\n")
    assert (done.returncode, done.err) == (0, "")
    assert re.search(r"Send \w{8} to the assistant from telegram", done.out)
    assert "`assistant run` or `assistant service start` connects telegram" in done.out
    assert load_settings(home, {}).values.telegram.enabled


def test_a_wrong_token_is_told_and_never_kept(home: Home) -> None:
    before = home.config.read_text()
    done = run_bridge_command(home, "bridge", "add", "telegram", said=f"nonsense\n{WRONG}\nleave\n")
    assert "That is not a bot token" in done.out
    assert "does not accept the bot's token" in done.out
    assert (done.returncode, "Nothing was changed." in done.out) == (0, True)
    scripted = run_bridge_command(home, "bridge", "add", "telegram", "--token-stdin", said=WRONG)
    assert (scripted.returncode, "does not accept the bot's token" in scripted.err) == (1, True)
    assert home.config.read_text() == before
    assert not home.secrets.exists()
    assert WRONG not in done.out + done.err + scripted.out + scripted.err


def test_what_cannot_be_tried_may_be_kept_all_the_same(home: Home, desk: ThreadedTelegram) -> None:
    elsewhere = {"ASSISTANT_TELEGRAM__BASE_URL": "http://127.0.0.1:9"}
    done = run_bridge_command(home, "bridge", "add", "telegram", said=f"{desk.token}\nkeep\n", **elsewhere)
    assert "Telegram cannot be reached." in done.out
    assert "telegram is set up, but not tested" in done.out
    assert load_settings(home, {}).values.telegram.enabled


def test_a_token_of_the_environment_is_used_and_not_overwritten(home: Home, desk: ThreadedTelegram) -> None:
    known(home, desk)
    variable = {"ASSISTANT_TELEGRAM__TOKEN": desk.token}
    done = run_bridge_command(home, "bridge", "add", "telegram", **variable)
    assert "The environment (ASSISTANT_TELEGRAM__TOKEN) has telegram.token; it is used" in done.out
    assert (done.returncode, TEST_MESSAGE in desk.texts()) == (0, True)
    assert not home.secrets.exists()
    refused = run_bridge_command(home, "bridge", "add", "telegram", "--token-stdin", said=WRONG, **variable)
    assert (refused.returncode, "remove it there first" in refused.err) == (2, True)
    assert not home.secrets.exists()


def test_the_token_of_another_bot_begins_anew(home: Home, desk: ThreadedTelegram) -> None:
    run_bridge_command(home, "bridge", "add", "telegram", "--token-stdin", "--no-wait", said=desk.token)
    known(home, desk)
    assert run_bridge_command(home, "bridge", "add", "telegram", said="\n").returncode == 0
    assert max(desk.server.offsets) > 0
    desk.server.offsets.clear()
    desk.server.token = "777:another-bot"
    assert run_bridge_command(home, "bridge", "add", "telegram", said="777:another-bot\n").returncode == 0
    assert desk.server.offsets[0] == 0


def test_the_keyring_keeps_the_token_where_there_is_one(home: Home, desk: ThreadedTelegram) -> None:
    known(home, desk)
    with use_keyring(InMemoryKeyring()):
        done = run_bridge_command(home, "bridge", "add", "telegram", said=f"{desk.token}\n")
        assert "telegram.token is in the keyring of this machine" in done.out
        assert TEST_MESSAGE in desk.texts()
        run_bridge_command(home, "bridge", "remove", "telegram", "--yes")
        assert load_settings(home, {}).values.telegram.token.get_secret_value() == ""
    assert desk.token not in home.secrets.read_text()


def test_answers_that_end_before_anything_was_kept_change_nothing(home: Home) -> None:
    before = home.config.read_text()
    done = run_bridge_command(home, "bridge", "add", "telegram")
    assert (done.returncode, "Nothing was changed." in done.out) == (130, True)
    assert home.config.read_text() == before


@pytest.mark.parametrize("earlier", ["", "111:the-one-before"])
def test_settings_that_are_refused_leave_the_secret_as_it_was(home: Home, earlier: str) -> None:
    if earlier:
        save_bridge_answers(home, "telegram", BridgeAnswers(token=earlier), in_file=True)
    with pytest.raises(SettingsError):
        save_bridge_answers(home, "telegram", BridgeAnswers({"nonsense": "1"}, "222:new"), in_file=True)
    settings = load_settings(home, {})
    assert settings.values.telegram.token.get_secret_value() == earlier
    assert settings.values.telegram.enabled is bool(earlier)


# --- removing, and the rest


def test_a_bridge_that_is_not_there_is_told_so(home: Home) -> None:
    assert "telegram is not set up" in run_bridge_command(home, "bridge", "test", "telegram").err
    home.config.write_text("[telegram]\nenabled = true\n")
    for said in ("n\n", ""):
        done = run_bridge_command(home, "bridge", "remove", "telegram", said=said)
        assert done.returncode != 0 and "Nothing was changed." in done.err
    home.config.write_text("[model]\nprovider = 'offline'\n")
    for said in ((), ("--yes",)):
        done = run_bridge_command(home, "bridge", "remove", "telegram", *said)
        assert (done.returncode, "is off" in done.out) == (0, False)
        assert done.err == "telegram is not set up, so nothing was removed.\n"
    done = run_bridge_command(home, "bridge", "remove", "telegram", "--json")
    assert json.loads(done.out) == {"name": "telegram", "removed": False}


def test_what_may_have_arrived_is_listed_and_let_go(home: Home) -> None:
    assert "There is nothing in" in run_bridge_command(home, "deliveries").err
    stores = Stores(load_settings(home, {}), utc_now())
    item = stores.outbox.push(
        OutgoingMessage("a", "main", "owner", "telegram", "1001", "the boat leaves at nine"), utc_now()
    )
    stores.outbox.set_state(item.id, "ambiguous", utc_now(), error="it broke off")
    stores.close()
    (one,) = json.loads(run_bridge_command(home, "deliveries", "--json").out)
    assert (one["id"], one["state"], one["text"]) == (item.id, "ambiguous", "the boat leaves at nine")
    assert "`assistant deliveries` shows what" in run_bridge_command(home, "status").out
    assert "may or may not have arrived (it broke off)" in run_bridge_command(home, "deliveries").out
    assert json.loads(run_bridge_command(home, "deliveries", "drop", str(item.id), "--json").out) == [one]
    assert json.loads(run_bridge_command(home, "deliveries", "--json").out) == []
    assert "assistant deliveries" not in run_bridge_command(home, "status").out


def test_a_step_of_the_setup_sets_a_bridge_up(home: Home, desk: ThreadedTelegram) -> None:
    known(home, desk)
    done = run_bridge_command(home, "setup", "bridge", said=f"telegram\n{desk.token}\n")
    assert (done.returncode, TEST_MESSAGE in desk.texts()) == (0, True)
    assert "Saved: telegram.token, telegram.enabled." in done.out
    wrong = run_bridge_command(home, "setup", "bridge", said=f"telegram\n{WRONG}\nleave\n")
    assert (wrong.returncode, "Skipped." in wrong.out) == (0, True)
