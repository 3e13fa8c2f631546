"""Settings: what is refused, how it is told, where values come from, and that secrets stay unseen."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from assistant.core.errors import SettingsError
from assistant.settings.home import Home, home_from_environment
from assistant.settings.sections import SETTING_FIELDS, allowed_bounds, describe_allowed
from assistant.settings.settings import (
    ENVIRONMENT_VARIABLES,
    Settings,
    describe_settings,
    load_settings,
    shipped_config_dir,
)
from tests.support.settings import refused

SECRET = "sk-ant-0123456789abcdef"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def configured(home: Home, text: str, **environ: str) -> Settings:
    home.config.write_text(text, encoding="utf-8")
    return load_settings(home, environ)


def test_an_empty_home_runs_on_the_defaults(home: Home) -> None:
    settings = load_settings(home, {})
    assert settings.values.context.emergency_threshold == 0.80
    assert settings.values.model.fallback == ("offline",)
    assert set(settings.origins.values()) == {"default.toml"}
    assert settings.provider == "offline"


def test_the_environment_wins_over_the_home_and_the_home_over_the_defaults(home: Home) -> None:
    settings = configured(
        home,
        "[context]\ntarget = 0.2\nmax_context_tokens = 32000\n[model]\nname = 'mine'\n",
        ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS="16000",
    )
    assert settings.values.context.max_context_tokens == 16000
    assert settings.values.context.target == 0.2
    assert settings.values.context.preserve_messages == 20
    assert settings.origins["context.max_context_tokens"] == "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS"
    assert settings.origins["context.target"] == str(home.config)
    assert settings.origins["context.preserve_messages"] == "default.toml"


def test_only_the_given_environment_is_read(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSISTANT_TURN__MAX_STEPS", "7")
    assert load_settings(home, {}).values.turn.max_steps == 24
    assert load_settings(home).values.turn.max_steps == 7


def test_text_in_the_environment_needs_no_quotes_and_lists_are_toml(home: Home) -> None:
    settings = load_settings(
        home, {"ASSISTANT_MODEL__NAME": "007", "ASSISTANT_MODEL__FALLBACK": '["openai:qwen3", "offline"]'}
    )
    assert settings.values.model.name == "007"
    assert settings.values.model.fallback == ("openai:qwen3", "offline")


def test_a_file_that_an_editor_began_with_a_byte_order_mark_is_read(home: Home) -> None:
    home.config.write_bytes(b"\xef\xbb\xbf[turn]\nmax_steps = 3\n")
    assert load_settings(home, {}).values.turn.max_steps == 3


# --- what is refused

OUT_OF_RANGE = [
    ("context.target", "0.9", "a number from 0.10 to 0.50"),
    ("context.emergency_threshold", "0.1", "a number from 0.60 to 0.95"),
    ("context.max_context_tokens", "1999", "0, or a whole number from 2000 to 2000000"),
    ("turn.max_steps", "0", "a whole number from 1 to 200"),
    ("budget.daily_usd", "-1", "a number from 0 to 1000000"),
    ("budget.daily_usd", "nan", "a number from 0 to 1000000"),
    ("budget.monthly_usd", "inf", "a number from 0 to 1000000"),
    ("model.thinking", '"lots"', '"off" or "adaptive"'),
    ("model.base_url", '"localhost:11434"', 'an address that starts with http:// or https://, or ""'),
    ("model.fallback", '["gemini"]', 'a list of "anthropic", "openai" and "offline"'),
    ("model.fallback", '["openai:"]', 'a list of "anthropic", "openai" and "offline"'),
    ("home.timezone", '"Europe/Atlantis"', "a time zone by a large city in it"),
    ("home.timezone", '"../../etc/passwd"', "a time zone by a large city in it"),
]


@pytest.mark.parametrize(("key", "value", "words"), OUT_OF_RANGE)
def test_a_value_out_of_range_is_refused_with_file_key_found_and_the_whole_range(
    home: Home, key: str, value: str, words: str
) -> None:
    section, _, name = key.partition(".")
    told = refused(home, f"[{section}]\n{name} = {value}\n")
    assert told.startswith(f"{home.config}: `{key}` is {value}; allowed: {words}")
    assert told.endswith("correct it (`assistant config edit` opens config.toml) and start again.")


@pytest.mark.parametrize(("key", "value", "words"), OUT_OF_RANGE)
def test_the_same_is_refused_in_the_environment(home: Home, key: str, value: str, words: str) -> None:
    variable = f"ASSISTANT_{key.upper().replace('.', '__')}"
    text = value.strip('"')
    told = refused(home, **{variable: text})
    assert told.startswith(f"{variable}: `{key}` is {value}; allowed: {words}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("turn.max_steps", '"5"'),
        ("turn.max_steps", "5.0"),
        ("turn.max_steps", "true"),
        ("context.target", '"0.2"'),
        ("context.target", "true"),
        ("context.target", "2026-11-20"),
        ("model.name", "5"),
        ("model.provider", "false"),
        ("model.fallback", '"offline"'),
        ("model.fallback", "[1]"),
        ("log.level", '["info"]'),
    ],
)
def test_a_wrong_type_in_the_file_is_refused(home: Home, key: str, value: str) -> None:
    section, _, name = key.partition(".")
    told = refused(home, f"[{section}]\n{name} = {value}\n")
    assert f"`{key}` is {value}; allowed: {describe_allowed(SETTING_FIELDS[key])}." in told


@pytest.mark.parametrize("text", ["five", "", '"5"', "5.5", "true", "[5]", "5\nx = 1", "0x"])
def test_a_wrong_type_in_the_environment_is_refused(home: Home, text: str) -> None:
    told = refused(home, ASSISTANT_TURN__MAX_STEPS=text)
    assert "ASSISTANT_TURN__MAX_STEPS: `turn.max_steps` is " in told
    assert "allowed: a whole number from 1 to 200" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[context]\ntarged = 0.2\n", "`context.targed` is not a setting; did you mean `context.target`?"),
        ("[modle]\nname = 'x'\n", "`modle.name` is not a setting; did you mean `model.name`?"),
        (
            "[model]\nmax_steps = 3\n",
            "`model.max_steps` is not a setting; did you mean `delegation.max_steps` or `turn.max_steps`?",
        ),
        ("timezone = 'UTC'\n", "`timezone` is not a setting; did you mean `home.timezone`?"),
        ("[turn]\nzzz = 3\n", "`turn.zzz` is not a setting; known in [turn]: max_steps, max_seconds, "),
        ("zzz = 3\n", "`zzz` is not a setting; known sections: home, model, "),
        ("[zzz]\n", "`zzz` is not a setting; known sections: home, model, "),
        ("turn = 3\n", "`turn` is a section; its keys belong below a line [turn]."),
        ("[[turn]]\nmax_steps = 3\n", "`turn` is a section; its keys belong below a line [turn]."),
        ("[turn.max_steps]\nx = 3\n", "`turn.max_steps` is a table of 1 key; allowed: a whole number from 1 to 200."),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(home: Home, text: str, told: str) -> None:
    assert f"{home.config}: {told}" in refused(home, text)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("ASSISTANT_MODEL_NAME", "ASSISTANT_MODEL__NAME"),
        ("ASSISTANT_CONTEXT__MAX_CONTEXT_TOKEN", "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS"),
        ("ASSISTANT_MAX_CONTEXT_TOKENS", "ASSISTANT_CONTEXT__MAX_CONTEXT_TOKENS"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_one_that_was_meant(home: Home, variable: str, meant: str) -> None:
    assert refused(home, **{variable: "1"}).startswith(f"{variable} is not a setting; did you mean {meant}?")


def test_a_variable_that_resembles_nothing_is_refused_with_the_known_sections(home: Home) -> None:
    assert refused(home, ASSISTANT_QQ="1").startswith("ASSISTANT_QQ is not a setting; known sections: home, model")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[turn]\nmax_steps = = 3\n", "line 2, column 13"),
        ("[turn]\nmax_steps = 3\nmax_steps = 4\n", "line 3, column 14"),
        ('[turn]\nmax_steps = "3', "line 2"),
    ],
)
def test_a_toml_mistake_is_told_with_its_line(home: Home, text: str, place: str) -> None:
    told = refused(home, text)
    assert told.startswith(f"{home.config} is not valid TOML: ")
    assert place in told


def test_a_file_that_is_not_text_or_not_a_file_is_told(home: Home) -> None:
    home.config.write_bytes(b"[turn]\nmax_steps = \xff\n")
    with pytest.raises(SettingsError, match=r"is not UTF-8 text \(line 2\)"):
        load_settings(home, {})
    home.config.unlink()
    home.config.mkdir()
    with pytest.raises(SettingsError, match="is a directory"):
        load_settings(home, {})


def test_all_problems_of_all_layers_are_told_at_once(home: Home) -> None:
    told = refused(
        home,
        "[turn]\nmax_steps = 0\nmax_second = 5\n[context]\ntarget = 3\n",
        ASSISTANT_LOG__LEVEL="loud",
        ASSISTANT_NOPE__X="1",
    ).splitlines()
    for part in (
        "`turn.max_steps`",
        "`turn.max_second`",
        "`context.target`",
        "ASSISTANT_LOG__LEVEL",
        "ASSISTANT_NOPE__X",
    ):
        assert sum(part in line for line in told) == 1, part
    assert told[-1].startswith("Nothing was started; correct these 5 (`assistant config edit` opens config.toml)")


def test_a_syntax_mistake_does_not_hide_what_is_wrong_in_the_environment(home: Home) -> None:
    told = refused(home, "[turn\n", ASSISTANT_LOG__LEVEL="loud")
    assert "is not valid TOML" in told
    assert "ASSISTANT_LOG__LEVEL" in told


def test_a_home_that_names_nobody_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    for name in ("a file", "a file/below"):
        with pytest.raises(SettingsError, match=r"a file is a file\. Nothing was started; have ASSISTANT_HOME name"):
            home_from_environment({"ASSISTANT_HOME": str(tmp_path / name)})
    with pytest.raises(SettingsError, match="ASSISTANT_HOME: ~no-such-person/x is no directory"):
        home_from_environment({"ASSISTANT_HOME": "~no-such-person/x"})


# --- secrets


def test_secrets_are_in_no_representation_and_in_no_description(home: Home) -> None:
    settings = configured(
        home,
        f"[model]\napi_key = '{SECRET}'\nbase_url = 'http://me:hunter2hunter2@host/v1?api_key=hunter3'\n",
        ANTHROPIC_API_KEY=SECRET,
        OPENAI_API_KEY=SECRET,
        OPENAI_BASE_URL="http://me:hunter2hunter2@host/v1",
    )
    everything = f"{settings!r} {settings} {describe_settings(settings)} {settings.values.as_json()}"
    assert SECRET not in everything
    rows = {row.key: row for row in describe_settings(settings)}
    assert rows["model.api_key"].value == "(set, not shown)"
    assert rows["ANTHROPIC_API_KEY"].value == "(set, not shown)"
    assert rows["model.base_url"].value == '"http://***@host/v1?api_key=***"'
    assert "hunter" not in str(list(rows.values()))


@pytest.mark.parametrize(
    "text",
    [
        f"[model]\napi_key = ['{SECRET}']\n",
        f"[model]\napi_keys = '{SECRET}'\n",
        f"[model]\nprovider = '{SECRET}'\n",
        f"[model]\nthinking = ['{SECRET}']\n",
        f"[model]\nfallback = ['{SECRET}']\n",
        f"[model]\nbase_url = 'ftp://me:{SECRET}@host'\n",
        f"[web]\nhost = 'https://me:{SECRET}@host'\n",
        f"api_key = '{SECRET}'\n",
        f"[model]\napi_key = '{SECRET}\n",
    ],
)
def test_no_error_repeats_a_secret(home: Home, text: str) -> None:
    told = refused(home, text)
    assert SECRET not in told
    assert SECRET[3:] not in told


def test_a_key_of_the_wrong_type_is_not_repeated_whatever_it_looks_like(home: Home) -> None:
    assert "correct horse" not in refused(home, "[model]\napi_key = ['correct horse']\n")
    assert "4711" not in refused(home, "[model]\napi_key = 4711\n")


def test_a_secret_of_the_wrong_type_in_the_environment_is_not_repeated(home: Home) -> None:
    told = refused(home, ASSISTANT_MODEL__FALLBACK=SECRET, ASSISTANT_TURN__MAX_STEPS=SECRET)
    assert SECRET not in told


def test_a_long_value_is_cut_in_an_error(home: Home) -> None:
    assert len(refused(home, f"[turn]\nmax_steps = '{'x' * 10_000}'\n")) < 400


# --- what follows from it


@pytest.mark.parametrize(
    ("text", "environ", "provider"),
    [
        ("", {}, "offline"),
        ("", {"ANTHROPIC_API_KEY": "k"}, "anthropic"),
        ("", {"ANTHROPIC_API_KEY": "  "}, "offline"),
        ("", {"OPENAI_API_KEY": "k"}, "offline"),
        ("", {"OPENAI_BASE_URL": "http://h/v1"}, "openai"),
        ("[model]\nbase_url = 'http://h/v1'\n", {}, "openai"),
        ("[model]\nbase_url = 'http://h/v1'\n", {"ANTHROPIC_API_KEY": "k"}, "anthropic"),
        ("[model]\napi_key = 'k'\n", {}, "anthropic"),
        ("[model]\napi_key = 'k'\nbase_url = 'http://h/v1'\n", {}, "openai"),
        ("[model]\nprovider = 'offline'\n", {"ANTHROPIC_API_KEY": "k"}, "offline"),
    ],
)
def test_auto_takes_the_provider_that_is_configured(
    home: Home, text: str, environ: dict[str, str], provider: str
) -> None:
    assert configured(home, text, **environ).provider == provider


def test_a_configured_key_goes_to_its_own_provider_only(home: Home) -> None:
    settings = configured(home, "[model]\nprovider = 'openai'\napi_key = 'mine'\n", ANTHROPIC_API_KEY="theirs")
    assert settings.openai_key.get_secret_value() == "mine"
    assert settings.anthropic_key.get_secret_value() == "theirs"
    settings = configured(home, "[model]\nprovider = 'anthropic'\napi_key = 'mine'\n", OPENAI_API_KEY="theirs")
    assert settings.anthropic_key.get_secret_value() == "mine"
    assert settings.openai_key.get_secret_value() == "theirs"


def test_addresses_come_from_the_variables_of_the_providers(home: Home) -> None:
    both = {"ANTHROPIC_BASE_URL": "http://a", "OPENAI_BASE_URL": "http://o"}
    assert (load_settings(home, both).anthropic_url, load_settings(home, both).openai_url) == ("http://a", "http://o")
    assert configured(home, "[model]\nbase_url = 'http://mine'\n", **both).openai_url == "http://mine"


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"TIKTOKEN_CACHE_DIR": "/a", "DATA_GYM_CACHE_DIR": "/b"}, Path("/a")),
        ({"DATA_GYM_CACHE_DIR": "/b"}, Path("/b")),
        ({"TIKTOKEN_CACHE_DIR": ""}, None),
    ],
)
def test_tiktokens_vocabulary_is_sought_where_tiktoken_looks(
    home: Home, environ: dict[str, str], place: Path | None
) -> None:
    assert load_settings(home, environ).tiktoken_cache == place


def test_without_a_variable_tiktokens_own_default_is_taken(home: Home) -> None:
    cache = load_settings(home, {}).tiktoken_cache
    assert cache is not None
    assert cache.name == "data-gym-cache"


def test_the_time_zone_of_the_home_is_that_of_its_owner(home: Home) -> None:
    assert configured(home, "[home]\ntimezone = 'Europe/Oslo'\n").zone.key == "Europe/Oslo"
    assert load_settings(home, {}).zone.key


# --- file and classes agree


def test_every_setting_has_a_default_in_the_file_and_the_file_has_no_other_key() -> None:
    document = tomllib.loads((shipped_config_dir() / "default.toml").read_text(encoding="utf-8"))
    assert [f"{section}.{key}" for section, keys in document.items() for key in keys] == list(SETTING_FIELDS)


def test_every_number_has_a_smallest_and_a_largest_one() -> None:
    numbers = [spec for spec in SETTING_FIELDS.values() if spec.annotation in (int, float)]
    # Without them a number of 400 digits is taken, which no database and no calculation takes.
    assert [spec for spec in numbers if not (spec.description or all(allowed_bounds(spec)))] == []


@pytest.mark.parametrize("key", SETTING_FIELDS)
def test_the_comment_of_a_setting_tells_what_is_allowed(home: Home, key: str) -> None:
    row = {row.key: row for row in describe_settings(load_settings(home, {}))}[key]
    assert len(row.about) > 20
    low, high = allowed_bounds(SETTING_FIELDS[key])
    if low and not SETTING_FIELDS[key].description:
        assert f"{low} to {high}" in row.about
    for word in re.findall(r'"[^"]*"|\d+ to \d+|https?://', row.allowed):
        assert word in row.about, word


def test_a_description_names_key_value_origin_and_variable(home: Home) -> None:
    rows = {row.key: row for row in describe_settings(configured(home, "[turn]\nmax_steps = 3\n"))}
    row = rows["turn.max_steps"]
    assert (row.value, row.origin, row.variable) == ("3", str(home.config), "ASSISTANT_TURN__MAX_STEPS")
    assert row.allowed == "a whole number from 1 to 200"
    assert rows["model.fallback"].value == '["offline"]'
    assert rows["ASSISTANT_HOME"].value == f'"{home.path}"'
    assert set(rows) - set(SETTING_FIELDS) < set(ENVIRONMENT_VARIABLES)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 50_000, "a = " + "{a=" * 20_000, "[budget]\ndaily_usd = " + "9" * 6_000]
)
def test_settings_nested_without_end_or_with_an_endless_number_are_refused_in_words(home: Home, text: str) -> None:
    assert "config.toml is nested too deeply, or has a number that is too long." in refused(home, text)
