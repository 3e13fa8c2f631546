"""config.toml edited while the daemon runs: nonsense changes nothing and is told, repaired is green, a few keys hold at
once, the others are told of until the next start."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from assistant.core.bridge_api import Bridge
from assistant.core.errors import BudgetExceeded, SettingsError, StoreError
from assistant.core.model_api import ModelCall
from assistant.health.status_text import render_lines
from assistant.settings.home import Home
from assistant.settings.layers import read_file_layer
from assistant.settings.settings import Settings, load_settings
from assistant.settings.watch import SettingsWatch
from assistant.wire.app import App, build_app
from tests.support.scripted import ScriptedModel, SteppingClock

CALL = ModelCall("chat", "anthropic", "m", 1_000, 1_000, 0.5, "main")


@dataclass
class CountingReader:
    """Reads the settings again, and counts."""

    home: Home
    times: int = 0

    def __call__(self) -> Settings:
        self.times += 1
        return load_settings(self.home, {}, ring=None)


@dataclass
class ServedApp:
    """An app that is served, as `status` sees it; every look is one of the daemon's."""

    home: Home
    app: App
    reading: CountingReader

    def edit(self, text: str) -> None:
        self.home.config.write_text(text)

    def look(self) -> dict[str, object]:
        self.app.check_due()
        return dict(self.app.status())

    def problems(self) -> list[str]:
        found = self.look()["problems"]
        assert isinstance(found, list)
        return [problem for problem in found if "config.toml" in problem]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[ServedApp]:
    home = Home(tmp_path / "home")
    home.path.mkdir(mode=0o700)
    home.config.write_text("[budget]\ndaily_usd = 1.0\n[context]\ntarget = 0.25\n")
    reading = CountingReader(home)
    configured = structlog.get_config()
    app = build_app(load_settings(home, {}), SteppingClock(), model=ScriptedModel("ok"), reread=reading)
    try:
        yield ServedApp(home, app, reading)
    finally:
        asyncio.run(app.models.aclose())
        app.close()
        structlog.configure(**configured)


async def test_nonsense_keeps_the_old_settings_and_names_file_key_and_what_is_allowed(running: ServedApp) -> None:
    assert running.look()["ok"]
    running.edit("[budget]\ndaily_usd = 9.0\n[context]\ntarget = 0.9\n")
    (problem,) = running.problems()
    assert problem.startswith(
        f"{running.home.config}: `context.target` is 0.9; allowed: a number from 0.10 to 0.50. The settings that the "
        "daemon was started with stay"
    )
    assert running.app.settings.values.budget.daily_usd == 1.0
    assert running.app.settings.values.context.target == 0.25
    assert not running.look()["ok"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[context\n", "is not valid TOML"),
        ("[context]\ntarged = 0.2\n", "did you mean `context.target`?"),
        ("[model]\napi_key = 4711\n", "a value that is not shown"),
    ],
)
async def test_every_kind_of_nonsense_is_told_and_green_again_when_it_is_mended(
    running: ServedApp, text: str, words: str
) -> None:
    good = running.home.config.read_text()
    running.edit(text)
    (problem,) = running.problems()
    assert words in problem
    assert "4711" not in problem
    running.edit(good)
    with capture_logs() as logs:
        assert running.problems() == []
        assert running.look()["ok"]
    assert [(one["log_level"], one["event"]) for one in logs] == [("info", "settings are understood again")]


async def test_a_file_that_is_taken_away_and_one_that_is_no_text_are_noticed(running: ServedApp) -> None:
    running.home.config.write_bytes(b"\xff\xfe")
    assert "is not UTF-8 text" in running.problems()[0]
    running.home.config.unlink()
    assert running.problems() == []
    assert running.look()["changed_settings"] == ["context.target"]


async def test_a_status_that_is_asked_for_between_two_looks_knows_already(running: ServedApp) -> None:
    running.edit("[context]\ntarget = 5\n")
    assert not running.app.status()["ok"]


async def test_a_changed_budget_holds_at_once(running: ServedApp) -> None:
    ledger, now = running.app.stores.ledger, SteppingClock()()
    ledger.reserve(CALL, now)
    ledger.reserve(CALL, now)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(CALL, now)
    running.edit("[budget]\ndaily_usd = 2.0\n[context]\ntarget = 0.25\n")
    report = running.look()
    ledger.reserve(CALL, now)
    assert report["changed_settings"] == []
    assert running.app.settings.values.budget.daily_usd == 2.0
    assert running.app.settings.origins["budget.daily_usd"] == str(running.home.config)
    assert "of $2.00" in "\n".join(render_lines({**report, "running": True}))


async def test_a_changed_log_level_holds_at_once(running: ServedApp, capsys: pytest.CaptureFixture[str]) -> None:
    running.edit("[log]\nlevel = 'error'\n[context]\ntarget = 0.25\n[budget]\ndaily_usd = 1.0\n")
    running.app.check_due()
    capsys.readouterr()
    structlog.get_logger().warning("not worth a word")
    assert "not worth a word" not in "".join(capsys.readouterr())
    assert running.look()["changed_settings"] == []


class RefusingBridges:
    """It refuses the bridges that are wanted."""

    async def put(self, name: str, bridge: Bridge) -> None:
        raise StoreError("The disk is full.")

    async def drop(self, name: str) -> None:
        raise StoreError("The disk is full.")


async def test_f39_a_bridge_that_could_not_be_taken_up_is_at_the_next_look(running: ServedApp) -> None:
    wanted = load_settings(running.home, {"ASSISTANT_TELEGRAM__ENABLED": "true"})
    await running.app.networks.apply_settings(wanted, RefusingBridges())
    assert "telegram" not in running.app.dispatcher.bridges
    running.app.check_due()
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
    assert "telegram" in running.app.dispatcher.bridges


async def test_other_changes_are_told_until_the_next_start_and_are_no_trouble(running: ServedApp) -> None:
    running.edit("[budget]\ndaily_usd = 3.0\n[context]\ntarget = 0.2\n[home]\ntimezone = 'Europe/Oslo'\n")
    report = running.look()
    assert report["changed_settings"] == ["home.timezone", "context.target"]
    assert report["ok"]
    assert (running.app.settings.values.context.target, running.app.settings.values.budget.daily_usd) == (0.25, 3.0)
    told = "changed ones take effect at the next start: home.timezone, context.target"
    assert told in "\n".join(render_lines({**report, "running": True}))
    running.edit("[budget]\ndaily_usd = 3.0\n[context]\ntarget = 0.25\n")
    assert running.look()["changed_settings"] == []


async def test_a_new_persona_or_secret_is_told_until_the_next_start(running: ServedApp) -> None:
    running.home.persona.write_text("You are somebody else.")
    running.home.secrets.write_text("[file]\nOPENAI_API_KEY = 'sk-123456789'\n")
    assert running.look()["changed_settings"] == ["OPENAI_API_KEY", "PERSONA.md"]


async def test_a_file_that_did_not_change_is_not_read_again(running: ServedApp) -> None:
    for _ in range(5):
        running.look()
    assert running.reading.times == 0
    running.edit("[context]\ntarget = 5\n")
    for _ in range(5):
        running.look()
    assert running.reading.times == 1


def test_a_change_between_the_reading_and_the_start_is_noticed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    read = load_settings(home, {})
    home.config.write_text("[turn]\nmax_steps = 3\n")
    watch = SettingsWatch(read, partial(load_settings, home, {}, ring=None), lambda _: None)
    watch.check_files()
    assert watch.keys_for_next_start() == ["turn.max_steps"]


async def test_a_secret_that_cannot_be_had_is_red(tmp_path: Path) -> None:
    settings = replace(load_settings(Home(tmp_path / "home"), {}), warnings=("The keyring is locked.",))
    app = build_app(settings, SteppingClock(), model=ScriptedModel("ok"))
    try:
        report = app.status()
        assert (report["ok"], "The keyring is locked." in report["problems"]) == (False, True)
    finally:
        await app.models.aclose()
        app.close()


def test_what_the_keyring_has_does_not_count_as_changed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    started = load_settings(home, {"ASSISTANT_ARCHIVE__KEY": "of the keyring"})
    origins = {**started.origins, "archive.key": "the keyring"}
    watch = SettingsWatch(
        replace(started, origins=origins), partial(load_settings, home, {}, ring=None), lambda _: None
    )
    home.config.write_text("[turn]\nmax_steps = 3\n")
    watch.check_files()
    assert watch.keys_for_next_start() == ["turn.max_steps"]


async def test_what_was_last_understood_is_kept_for_whoever_looks(running: ServedApp) -> None:
    running.edit("[budget]\ndaily_usd = 3.0\n")
    running.look()
    assert running.home.last_valid_config.read_text() == "[budget]\ndaily_usd = 3.0\n"
    assert running.home.last_valid_config.stat().st_mode & 0o777 == 0o600
    running.edit("[budget\n")
    assert running.problems() != []
    assert (
        load_settings(
            running.home, {}, config=read_file_layer(running.home.last_valid_config, "")
        ).values.budget.daily_usd
        == 3.0
    )
    with pytest.raises(SettingsError):
        load_settings(running.home, {})


def test_a_machine_that_is_set_to_another_time_zone_is_told_of_until_it_is_set_back(
    running: ServedApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    localtime = tmp_path / "localtime"
    before = running.app.settings.zone.key
    monkeypatch.setattr("assistant.settings.watch._ZONE_FILES", (localtime,))
    for zone, shown in (("Asia/Tokyo", 1), (before, 0)):
        monkeypatch.setenv("TZ", zone)
        localtime.write_text(zone)
        found = [line for line in running.look()["problems"] if "time zone" in line]  # type: ignore[attr-defined]
        assert len(found) == shown and all(zone in line and before in line for line in found)
    assert running.reading.times == 0
