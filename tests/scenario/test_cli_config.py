"""`assistant config`: settings changed by command keep their file's comments; what starting refuses is refused."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from keyring.backends.fail import Keyring as NoKeyring

from assistant.health.doctor_checks import check_provider
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from tests.support.command_line import FinishedCommand, run_assistant, run_daemon, run_in_process
from tests.support.keyring import use_keyring

TEXT = "# mine\n[context]\n# less is more\ntarget = 0.2 # a fifth\n\n[turn]\nmax_steps = 3\n"
SECRET = "sk-ant-0123456789abcdef"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.path.mkdir()
    home.config.write_text(TEXT)
    return home


@pytest.fixture(autouse=True)
def no_keyring() -> Iterator[None]:
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        yield


def config(home: Home, *arguments: str, **settings: str) -> FinishedCommand:
    return run_in_process(home.path, "config", *arguments, **settings)


def _put(home: Home, name: str, secret: str) -> FinishedCommand:
    said: dict[str, str] = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    return run_assistant(home.path, "config", "secret", "set", name, said=f"{secret}\n".encode(), **said)


def edited(home: Home, *changes: str, said: bytes = b"") -> FinishedCommand:
    """`config edit` with an editor that replaces text, one pair ("old=>new") each time it is opened."""
    editor = home.path.parent / "editor.py"
    editor.write_text(
        "import pathlib, sys\n"
        "pairs, file = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])\n"
        "first, *rest = pairs.read_text().split('|')\n"
        "old, new = first.split('=>')\n"
        "file.write_text(file.read_text().replace(old, new))\n"
        "pairs.write_text('|'.join(rest))\n"
    )
    pairs = home.path.parent / "pairs"
    pairs.write_text("|".join(changes))
    return run_assistant(home.path, "config", "edit", said=said, VISUAL=f"{sys.executable} {editor} {pairs}")


# --- set, unset, get


def test_a_value_is_set_and_the_comments_stay(home: Home) -> None:
    done = config(home, "set", "context.target", "0.25")
    assert (done.returncode, done.out, done.err) == (0, "context.target: 0.2 -> 0.25\n", "")
    assert home.config.read_text() == TEXT.replace("0.2 #", "0.25 #")
    assert stat.S_IMODE(home.config.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("home.timezone", "Europe/Oslo", 'home.timezone: "" (the default) -> "Europe/Oslo"'),
        ("budget.daily_usd", "2", "budget.daily_usd: 5.0 (the default) -> 2"),
        ("compaction.auto", "false", "compaction.auto: true (the default) -> false"),
        ("model.fallback", '["openai:x"]', 'model.fallback: ["offline"] (the default) -> ["openai:x"]'),
        ("model.name", "007", 'model.name: "" (the default) -> "007"'),
        ("model.name", 'a"b', 'model.name: "" (the default) -> "a\\"b"'),
        ("turn.max_steps", "3", "Nothing changed."),
    ],
)
def test_every_kind_of_value_is_set_and_the_change_is_told(home: Home, key: str, value: str, told: str) -> None:
    assert config(home, "set", key, value).out == f"{told}\n"
    assert config(home, "get", key).out.strip() == {"budget.daily_usd": "2.0"}.get(key, value)


@pytest.mark.parametrize(
    ("key", "typed", "kept"),
    [
        ("sleep.at", "4am", "04:00"),
        ("backup.at", "at 5 in the morning", "05:00"),
        ("sleep.at", "never", ""),
        ("agenda.quiet", "10pm to 7am", "22:00-07:00"),
        ("budget.daily_usd", "$3", "3.0"),
        ("home.timezone", "oslo", "Europe/Oslo"),
    ],
)
def test_a_setting_is_understood_as_setup_understands_it(home: Home, key: str, typed: str, kept: str) -> None:
    done = config(home, "set", key, typed)
    assert (done.returncode, config(home, "get", key).out.strip()) == (0, kept), done.err


def test_an_address_that_no_model_is_asked_at_is_told_where_it_is_set_and_by_doctor(home: Home) -> None:
    claude = {"ANTHROPIC_API_KEY": "sk-ant-1"}
    done = config(home, "set", "model.base_url", "https://proxy.example/v1", **claude)
    assert "Nothing is sent to model.base_url (https://proxy.example/v1)" in done.err
    assert "ANTHROPIC_BASE_URL" in done.err
    assert "pass" not in config(home, "set", "model.base_url", "https://me:pass@proxy.example/v1", **claude).err
    settings = load_settings(home, claude)
    assert "ANTHROPIC_BASE_URL" in check_provider(settings).to_do
    # A fallback that is asked there makes it an address that is used.
    assert config(home, "set", "model.fallback", '["openai:qwen3", "offline"]', **claude).err == ""
    assert load_settings(home, claude).unused_address == ""


def test_a_time_zone_is_kept_as_the_database_spells_it(home: Home) -> None:
    assert config(home, "set", "home.timezone", "europe/oslo").out.endswith(' -> "Europe/Oslo"\n')
    assert 'timezone = "Europe/Oslo"' in home.config.read_text()


@pytest.mark.parametrize(
    ("key", "value"), [("context.target", "0.9"), ("turn.max_steps", "five"), ("home.timezone", "Atlantis")]
)
def test_what_starting_would_refuse_is_refused_in_the_same_words(home: Home, key: str, value: str) -> None:
    done = config(home, "set", key, value)
    assert (done.returncode, home.config.read_text()) == (2, TEXT)
    section, _, name = key.partition(".")
    shown = value if value == "0.9" else f'"{value}"'
    home.config.write_text(f"[{section}]\n{name} = {shown}\n")
    (words,) = config(home, "check").err.splitlines()[:-1]
    assert done.err == f"{words}\nNothing was changed.\n"


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_what_is_no_amount_is_refused_in_the_same_words(home: Home, value: str) -> None:
    assert "allowed: a number from 0 to 1000000" in config(home, "set", "budget.daily_usd", value).err


def test_what_is_no_text_is_refused(home: Home) -> None:
    done = config(home, "set", "model.name", "a\udcffb")
    assert (done.returncode, home.config.read_text()) == (2, TEXT)
    assert "is not valid UTF-8 text" in done.err


def test_what_is_no_setting_is_refused_with_the_nearest(home: Home) -> None:
    for command in (("set", "context.targed", "1"), ("unset", "context.targed"), ("get", "context.targed")):
        done = config(home, *command)
        assert done.returncode == 2
        assert "`context.targed` is not a setting; did you mean `context.target`?" in done.err


def test_a_file_with_two_problems_is_mended_one_by_one_and_gets_no_third(home: Home) -> None:
    home.config.write_text("[context]\ntarget = 0.9\n[turn]\nmax_steps = 0\n")
    assert config(home, "set", "log.level", "loud").returncode == 2
    assert config(home, "set", "context.target", "0.2").returncode == 0
    assert config(home, "check").returncode == 2
    done = config(home, "set", "turn.max_steps", "9")
    assert (done.returncode, done.err) == (0, "")
    assert config(home, "check").returncode == 0


def test_unset_takes_a_key_out_and_its_default_holds(home: Home) -> None:
    assert config(home, "unset", "context.target").out == "context.target: 0.2 -> 0.3 (the default)\n"
    assert config(home, "unset", "context.target").out == "Nothing changed.\n"
    assert "# mine\n[context]\n# less is more\n" in home.config.read_text()


def test_a_variable_that_wins_is_told(home: Home) -> None:
    done = config(home, "set", "context.target", "0.25", ASSISTANT_CONTEXT__TARGET="0.35")
    assert "ASSISTANT_CONTEXT__TARGET overrides config.toml" in done.err
    found = json.loads(config(home, "get", "context.target", "--json", ASSISTANT_CONTEXT__TARGET="0.35").out)
    assert (found["value"], found["origin"]) == ("0.35", "ASSISTANT_CONTEXT__TARGET")


def test_the_first_setting_makes_home_and_file(tmp_path: Path) -> None:
    home = Home(tmp_path / "new")
    assert config(home, "set", "turn.max_steps", "9").returncode == 0
    assert home.config.read_text().endswith("[turn]\nmax_steps = 9\n")
    assert home.config.read_text().startswith("# Your settings.")
    assert stat.S_IMODE(home.config.stat().st_mode) == 0o600


# --- edit


def test_an_edit_that_can_be_understood_takes_the_place_of_the_file(home: Home) -> None:
    done = edited(home, "0.2=>0.35")
    assert (done.returncode, done.out) == (0, "context.target: 0.2 -> 0.35\n")
    assert home.config.read_text() == TEXT.replace("0.2", "0.35")


def test_nonsense_never_replaces_the_file_and_editing_goes_on_where_it_was(home: Home) -> None:
    done = edited(home, "0.2=>0.9", "0.9=>0.25", said=b"y\n")
    assert "`context.target` is 0.9; allowed: a number from 0.10 to 0.50" in done.err
    assert (done.returncode, done.out) == (0, "context.target: 0.2 -> 0.25\n")
    done = edited(home, "max_steps = 3=>max_steps = = 3", said=b"n\n")
    assert "is not valid TOML" in done.err
    assert (done.returncode, home.config.read_text()) == (2, TEXT.replace("0.2", "0.25"))


def test_an_editor_that_changes_nothing_changes_nothing(home: Home) -> None:
    done = edited(home, "not there=>x")
    assert (done.returncode, done.out, home.config.read_text()) == (0, "Nothing changed.\n", TEXT)


# --- secrets


@pytest.mark.parametrize("key", ["archive.key", "ANTHROPIC_API_KEY"])
def test_a_secret_is_not_taken_from_the_command_line(home: Home, key: str) -> None:
    done = config(home, "set", key, SECRET)
    assert (done.returncode, home.config.read_text()) == (2, TEXT)
    assert f"assistant config secret set {key}" in done.err
    assert SECRET not in done.err


def test_a_secret_is_read_from_standard_input_and_never_printed(home: Home) -> None:
    done = _put(home, "anthropic_api_key", SECRET)
    assert done.out == "ANTHROPIC_API_KEY is in secrets.toml of your data folder, readable by you alone (0600).\n"
    assert load_settings(home, {}).anthropic_key.get_secret_value() == SECRET
    listed = config(home, "secret", "list")
    assert ["ANTHROPIC_API_KEY", "secrets.toml"] in [line.split() for line in listed.out.splitlines()]
    rows = json.loads(config(home, "secret", "list", "--json", OPENAI_API_KEY=SECRET).out)
    assert {row["name"]: row["origin"] for row in rows if row["set"]} == {
        "ANTHROPIC_API_KEY": "secrets.toml",
        "OPENAI_API_KEY": "OPENAI_API_KEY",
    }
    shown = config(home, "show").out
    assert "(set, not shown)  # secrets.toml" in shown
    assert config(home, "get", "ANTHROPIC_API_KEY").out == "(set, not shown)\n"
    assert SECRET not in f"{done.out}{done.err}{listed.out}{shown}{rows}"
    removed = json.loads(config(home, "secret", "remove", "ANTHROPIC_API_KEY", "--json").out)
    assert removed == {"name": "ANTHROPIC_API_KEY", "set": False, "origin": None}
    assert config(home, "secret", "remove", "ANTHROPIC_API_KEY").returncode == 2
    assert load_settings(home, {}).provider == "offline"


def test_with_json_only_the_value_is_on_standard_output_and_secrets_are_masked(home: Home) -> None:
    done = config(home, "set", "context.target", "0.3", "--json", ASSISTANT_CONTEXT__TARGET="0.35")
    assert json.loads(done.out) == [{"key": "context.target", "old": "0.2", "new": "0.3"}]
    assert "overrides config.toml" in done.err
    home.config.write_text(f'[web]\ntoken = "{SECRET}"\n')
    assert json.loads(config(home, "unset", "web.token", "--json").out) == [
        {"key": "web.token", "old": "(set, not shown)", "new": None}
    ]
    assert json.loads(config(home, "path", "--json").out) == str(home.config)
    assert json.loads(config(home, "check", "--json").out) == {"home": str(home.path), "provider": "offline"}
    refused = config(home, "set", "context.target", "7", "--json")
    assert (refused.returncode, refused.out) == (2, "")


# --- beside a daemon


def test_beside_a_daemon_it_is_told_when_a_change_holds_and_nonsense_turns_status_red(home: Home) -> None:
    with run_daemon(home.path):
        assert "within half a minute" in config(home, "set", "budget.daily_usd", "2").err
        assert "after a restart" in config(home, "set", "context.target", "0.3").err
        assert "within half a minute" in _put(home, "web.token", SECRET * 3).err
        assert "after a restart" in _put(home, "ANTHROPIC_API_KEY", SECRET).err
        status = run_in_process(home.path, "status")
        assert (status.returncode, status.err) == (0, "")
        assert "take effect at the next start: context.target" in status.out
        assert "$0.00 of $2.00" in status.out
        good = home.config.read_text()
        home.config.write_text(good.replace("0.3", "7"))
        status = run_in_process(home.path, "status")
        assert status.returncode == 1
        assert f"! {home.config}: `context.target` is 7; allowed: a number from 0.10 to 0.50." in status.out
        home.config.write_text(good)
        assert run_in_process(home.path, "status").returncode == 0
        home.config.write_text("[nonsense\n")
        assert run_in_process(home.path, "stop").returncode == 0
