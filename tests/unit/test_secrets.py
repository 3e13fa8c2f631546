"""Secrets: where they are looked for and in which order, what a silent keyring means, and that they stay unseen."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from keyring.backends.fail import Keyring as NoKeyring

from assistant.core.errors import SettingsError, StoreError, UsageError
from assistant.settings.home import Home
from assistant.settings.secrets import IN_FILE, IN_KEYRING, SECRET_NAMES, SystemKeyring, canonical_secret_name
from assistant.settings.sections import WEB_TOKEN_KEY
from assistant.settings.settings import Settings, describe_settings, load_settings
from assistant.store.home.config_file import HomeSecretStore
from tests.support.keyring import InMemoryKeyring, PlainTextKeyring, use_keyring

SECRET = "sk-ant-0123456789abcdef"
KEY = "ANTHROPIC_API_KEY"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def ring() -> Iterator[InMemoryKeyring]:
    ring = InMemoryKeyring()
    with use_keyring(ring):
        yield ring


@pytest.fixture
def no_keyring() -> Iterator[None]:
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        yield


def put(home: Home, name: str, value: str, *, in_file: bool = False) -> str:
    return HomeSecretStore(home.secrets).put(name, value, in_file=in_file)


def key_of(settings: Settings) -> str:
    return settings.anthropic_key.get_secret_value()


# --- where they are kept


def test_a_secret_goes_to_the_keyring_and_the_list_in_the_home_only_names_it(home: Home, ring: InMemoryKeyring) -> None:
    assert put(home, KEY, SECRET) == IN_KEYRING
    assert list(ring.kept.values()) == [SECRET]
    assert KEY in home.secrets.read_text()
    assert SECRET not in home.secrets.read_text()
    settings = load_settings(home, {})
    assert (key_of(settings), settings.origins[KEY], settings.provider) == (SECRET, IN_KEYRING, "anthropic")


@pytest.mark.usefixtures("no_keyring")
def test_without_a_keyring_it_goes_to_a_file_for_the_owner_alone(home: Home) -> None:
    assert put(home, KEY, SECRET) == IN_FILE
    assert stat.S_IMODE(home.secrets.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    settings = load_settings(home, {})
    assert (key_of(settings), settings.origins[KEY], settings.warnings) == (SECRET, IN_FILE, ())


@pytest.mark.parametrize("kind", [InMemoryKeyring(locked=True), InMemoryKeyring(forgetful=True), PlainTextKeyring()])
def test_a_keyring_that_does_not_work_is_not_trusted(home: Home, kind: InMemoryKeyring) -> None:
    with use_keyring(kind):
        assert put(home, KEY, SECRET) == IN_FILE
        assert key_of(load_settings(home, {})) == SECRET
    assert kind.kept == {}


def test_a_secret_may_be_kept_in_the_file_beside_a_keyring_and_leaves_it(home: Home, ring: InMemoryKeyring) -> None:
    put(home, KEY, "old")
    assert put(home, KEY, SECRET, in_file=True) == IN_FILE
    assert ring.kept == {}
    assert key_of(load_settings(home, {})) == SECRET
    assert put(home, KEY, SECRET) == IN_KEYRING
    assert SECRET not in home.secrets.read_text()


def test_other_secrets_stay_when_one_is_removed(home: Home, ring: InMemoryKeyring) -> None:
    for number, name in enumerate(SECRET_NAMES):
        # One that could be guessed is no token.
        value = "q8W-3ZtV_7pLmX0sRyB5nKd2HfJc9GaUeToI4vEwQ1r" if name == WEB_TOKEN_KEY else f"value {number}"
        put(home, name, value, in_file=bool(number % 2))
    store = HomeSecretStore(home.secrets)
    assert store.remove(KEY)
    assert not store.remove(KEY)
    settings = load_settings(home, {})
    assert key_of(settings) == "value 2"  # model.api_key is the key of whoever answers
    assert settings.openai_key.get_secret_value() == "value 1"
    assert settings.values.archive.key.get_secret_value() == f"value {SECRET_NAMES.index('archive.key')}"
    assert store.remove("archive.key")
    assert load_settings(home, {}).values.archive.key.get_secret_value() == ""


@pytest.mark.usefixtures("no_keyring")
@pytest.mark.parametrize("value", ['a"b\\c', "über", "tab\there", "'''", "#[x]"])
def test_any_secret_comes_back_as_it_was(home: Home, value: str) -> None:
    put(home, "archive.key", value)
    assert load_settings(home, {}).values.archive.key.get_secret_value() == value


def test_a_name_is_known_in_any_case_of_letters_and_others_are_refused_with_the_nearest() -> None:
    assert canonical_secret_name("anthropic_api_key") == KEY
    with pytest.raises(UsageError, match=r"did you mean archive\.key"):
        canonical_secret_name("archiv.key")


# --- in which order


@pytest.mark.usefixtures("no_keyring")
def test_the_environment_wins_over_credentials_those_over_the_store_and_the_store_over_the_file(home: Home) -> None:
    handed = home.path / "credentials"
    handed.mkdir(parents=True)
    home.config.write_text("[archive]\nkey = 'from the file'\n")
    in_force = []
    for step in (
        lambda: None,
        lambda: put(home, "archive.key", "from the store"),
        lambda: (handed / "Archive.Key").write_text("from systemd\n"),
    ):
        step()
        settings = load_settings(home, {"CREDENTIALS_DIRECTORY": str(handed)})
        in_force.append((settings.values.archive.key.get_secret_value(), settings.origins["archive.key"]))
    settings = load_settings(
        home, {"CREDENTIALS_DIRECTORY": str(handed), "ASSISTANT_ARCHIVE__KEY": "from the environment"}
    )
    in_force.append((settings.values.archive.key.get_secret_value(), settings.origins["archive.key"]))
    assert in_force == [
        ("from the file", str(home.config)),
        ("from the store", IN_FILE),
        ("from systemd", "credential Archive.Key"),
        ("from the environment", "ASSISTANT_ARCHIVE__KEY"),
    ]


@pytest.mark.usefixtures("no_keyring")
def test_a_provider_s_key_is_looked_for_in_the_same_order(home: Home) -> None:
    handed = home.path / "credentials"
    handed.mkdir(parents=True)
    put(home, KEY, "stored")
    assert key_of(load_settings(home, {})) == "stored"
    (handed / "anthropic_api_key").write_text("handed\n")
    assert key_of(load_settings(home, {"CREDENTIALS_DIRECTORY": str(handed)})) == "handed"
    settings = load_settings(home, {"CREDENTIALS_DIRECTORY": str(handed), KEY: "mine"})
    assert (key_of(settings), settings.origins[KEY]) == ("mine", KEY)
    assert key_of(load_settings(home, {KEY: "  "})) == "stored"


def test_a_credential_that_cannot_be_read_is_told_without_its_words(home: Home, tmp_path: Path) -> None:
    handed = tmp_path / "credentials"
    handed.mkdir()
    (handed / KEY).write_bytes(b"\xffsecret")
    with pytest.raises(SettingsError, match=f"The credential {KEY} is not UTF-8 text") as caught:
        load_settings(home, {"CREDENTIALS_DIRECTORY": str(handed)})
    assert "secret" not in str(caught.value)
    with pytest.raises(SettingsError, match=r"CREDENTIALS_DIRECTORY: .* cannot be read"):
        load_settings(home, {"CREDENTIALS_DIRECTORY": str(tmp_path / "gone")})


# --- what can go wrong


def test_a_keyring_that_has_nothing_of_ours_is_not_asked(home: Home, ring: InMemoryKeyring) -> None:
    put(home, KEY, SECRET, in_file=True)
    load_settings(home, {})
    assert ring.asked == 0


def test_a_locked_keyring_starts_the_assistant_without_the_secret_and_says_so_once(
    home: Home, ring: InMemoryKeyring
) -> None:
    put(home, KEY, SECRET)
    put(home, "archive.key", "a")
    ring.locked = True
    asked = ring.asked
    settings = load_settings(home, {})
    assert (settings.provider, ring.asked - asked) == ("offline", 1)
    (warning,) = settings.warnings
    assert warning.startswith(f"The keyring has {KEY}, archive.key and cannot be read: The keyring refused")
    assert "config secret set" in warning


def test_a_keyring_that_waits_for_a_password_is_not_waited_for(home: Home, ring: InMemoryKeyring) -> None:
    put(home, KEY, SECRET)
    ring.unlocked.clear()
    settings = load_settings(home, {}, ring=SystemKeyring(read_seconds=0.01))
    ring.unlocked.set()
    assert settings.provider == "offline"
    assert "The keyring does not answer." in settings.warnings[0]


def test_a_secret_that_went_from_the_keyring_is_told(home: Home, ring: InMemoryKeyring) -> None:
    put(home, KEY, SECRET)
    ring.kept.clear()
    assert load_settings(home, {}).warnings == (
        f"{KEY} is no longer in the keyring. `assistant config secret set {KEY}` puts it there.",
    )


@pytest.mark.usefixtures("no_keyring")
def test_a_list_that_others_can_read_is_told(home: Home) -> None:
    put(home, KEY, SECRET)
    home.secrets.chmod(0o640)
    (warning,) = load_settings(home, {}).warnings
    assert warning == f"{home.secrets} can be read by others. `chmod 600 {home.secrets}` closes it."


@pytest.mark.parametrize("text", [f"[file]\nX = '{SECRET}", f"[file]\n{KEY} = ['{SECRET}']\n", f"file = '{SECRET}'\n"])
def test_a_damaged_list_is_told_without_its_words_and_left_as_it_is(home: Home, text: str) -> None:
    home.path.mkdir()
    home.secrets.write_text(text)
    home.secrets.chmod(0o600)
    with pytest.raises(SettingsError, match=r"secrets\.toml") as caught:
        load_settings(home, {})
    with pytest.raises(StoreError, match="Nothing was changed") as refused:
        put(home, KEY, "x", in_file=True)
    assert SECRET not in f"{caught.value}{refused.value}"
    assert home.secrets.read_text() == text


def test_no_secret_is_in_any_description(home: Home, ring: InMemoryKeyring) -> None:
    for number, name in enumerate(SECRET_NAMES):
        put(home, name, SECRET, in_file=bool(number % 2))
    settings = load_settings(home, {})
    assert SECRET not in f"{settings!r} {settings} {describe_settings(settings)} {settings.values.as_json()}"
    rows = {row.key: row for row in describe_settings(settings)}
    assert (rows[KEY].value, rows[KEY].origin) == ("(set, not shown)", IN_KEYRING)
    assert (rows["archive.key"].value, rows["archive.key"].origin) == ("(set, not shown)", IN_KEYRING)
    assert ring.kept
