"""Settings that cannot hold together, or name what does not exist: told when they are set, at start, and by the doctor,
with the numbers and a suggestion.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assistant.core.errors import SettingsError
from assistant.settings.home import Home
from assistant.settings.settings import load_settings, settings_problems
from assistant.wire.app import build_app
from tests.support.command_line import run_in_process
from tools.toolbox import tool_roles

CONTRADICTIONS: Mapping[str, tuple[str, str]] = {
    "target and reserve reach the sleep threshold": (
        "[context]\ntarget = 0.4\n",
        "`context.target` (40.0%) and `context.reserve_tokens` (20,000, 12.5% of the context) come to 52.5%; that "
        "has to be below `compaction.sleep_threshold` (50.0%), or one compaction would follow the other.",
    ),
    "a large reserve": ("[context]\nreserve_tokens = 60000\n", "(60,000, 37.5% of the context) come to 67.5%"),
    "sleep after emergencies": (
        "[context]\nemergency_threshold = 0.6\n[compaction]\nsleep_threshold = 0.7\n",
        "`compaction.sleep_threshold` (70%) is above `context.emergency_threshold` (60%)",
    ),
    "a window larger than the target": (
        "[context]\npreserve_share = 0.4\n",
        "`context.preserve_share` (40%) is more than `context.target` (30%)",
    ),
    "own words larger than the target": (
        "[compaction]\nuser_messages_max_tokens = 60000\n",
        "`compaction.user_messages_max_tokens` (60,000, 37.5% of the context) is more than `context.target` (30%)",
    ),
    "summaries that fill the target": (
        "[compaction]\nsummary_max_tokens = 20000\nrestored_max_tokens = 8000\n",
        "come to 17.5% of the context; summaries may take half of `context.target` (15.0%)",
    ),
    "fewer messages than always stay": (
        "[compaction]\nmax_messages = 15\n",
        "`compaction.max_messages` (15) is less than `context.preserve_messages` (20)",
    ),
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.path.mkdir(mode=0o700)
    return home


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_settings_that_contradict_each_other_are_refused_with_the_numbers(home: Home, name: str) -> None:
    text, said = CONTRADICTIONS[name]
    (problem,) = settings_problems(home, text)
    assert said in problem and problem.startswith(f"{home.config}: ")
    home.config.write_text(text)
    for command in (("config", "check"), ("chat", "-m", "hello")):
        done = run_in_process(home.path, *command)
        assert done.returncode == 2 and said in " ".join(done.err.split())
    assert said in " ".join(run_in_process(home.path, "doctor").out.split())


def test_a_contradiction_is_refused_as_it_is_set_and_what_mends_it_is_not(home: Home) -> None:
    refused = run_in_process(home.path, "config", "set", "context.target", "0.4")
    assert refused.returncode == 2 and "come to 52.5%" in refused.err and "Nothing was changed." in refused.err
    assert run_in_process(home.path, "config", "set", "compaction.sleep_threshold", "0.6").returncode == 0
    assert run_in_process(home.path, "config", "set", "context.target", "0.4").returncode == 0


def test_in_a_larger_context_the_fixed_numbers_are_smaller_shares(home: Home) -> None:
    assert settings_problems(home, "[context]\nmax_context_tokens = 1000000\nreserve_tokens = 60000\n") == ()


NAMES = {
    "compaction.protected_tools": (
        '["manage_todo"]',
        "'manage_todo', which does not exist; did you mean 'manage_todo_list'?",
    ),
    "guest.tools": ('["serch_history"]', "'serch_history', which does not exist; did you mean 'search_history'?"),
    "room.commands": ('["config"]', "'config', which "),
}


@pytest.mark.parametrize("key", NAMES)
def test_a_name_that_no_tool_or_command_has_is_refused_with_a_suggestion(home: Home, key: str) -> None:
    value, said = NAMES[key]
    refused = run_in_process(home.path, "config", "set", key, value)
    assert refused.returncode == 2 and f"`{key}` names {said}" in refused.err and "Nothing was changed." in refused.err
    section, _, name = key.partition(".")
    home.config.write_text(f"[{section}]\n{name} = {value}\n")
    with pytest.raises(SettingsError, match="Nothing was started"):
        build_app(load_settings(home, {}), lambda: datetime.now(UTC))
    assert run_in_process(home.path, "config", "check").returncode == 2
    assert f"`{key}` names" in " ".join(run_in_process(home.path, "doctor").out.split())


def test_the_names_that_settings_are_checked_against_are_those_of_the_running_app(home: Home) -> None:
    everything = {
        "ASSISTANT_WEB_SEARCH__PROVIDER": "brave",
        "ASSISTANT_RUN_COMMAND__ENABLED": "true",
        "ASSISTANT_MAIL_ACCOUNT__ADDRESS": "ada@example.org",
        "ASSISTANT_MAIL_ACCOUNT__IMAP_HOST": "mail.example.org",
        "ASSISTANT_MAIL_ACCOUNT__SMTP_HOST": "mail.example.org",
        "ASSISTANT_CALENDAR__SOURCES": '[{ name = "Home", kind = "ics", url = "https://example.org/home.ics" }]',
    }
    app = build_app(load_settings(home, everything), lambda: datetime.now(UTC))
    try:
        assert app.toolbox.allowed_roles == tool_roles()
    finally:
        app.close()
