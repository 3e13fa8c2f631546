"""What the doctor finds, thing by thing."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assistant.cli.status import check_service_file, wrap_finding
from assistant.context.tokens import choose_tier
from assistant.core.errors import BridgeError, StoreError
from assistant.core.records import IntegrityProblem
from assistant.health.doctor_checks import (
    DaemonState,
    Finding,
    check_bridges,
    check_clock,
    check_daemon,
    check_databases,
    check_disk,
    check_log_chain,
    check_permissions,
    check_provider,
    check_provider_answer,
    check_settings,
    check_stale_socket,
    check_tokenizer,
    check_versions,
    run_check,
)
from assistant.health.installed_extras import list_installed_extras
from assistant.service.unit_files import ServiceSpec, render_systemd_unit
from assistant.settings.settings import Settings, load_settings
from assistant.store.home.guard import check_database_pages, measure_sync_seconds
from assistant.store.verify.verifier import Verifier
from tests.support.store_home import StoreHome

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)


def settings(home: Path, **environ: str) -> Settings:
    return load_settings(None, {"ASSISTANT_HOME": str(home), **environ})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Closed, with what homes have in them."""
    home = tmp_path / "home"
    for folder in (home, home / "log", home / "workspace"):
        folder.mkdir(mode=0o700)
    for name in ("config.toml", "log/conversation.jsonl", "workspace/run.sh"):
        (home / name).touch(mode=0o600)
    (home / "workspace" / "run.sh").chmod(0o755)
    return home


def test_a_closed_home_is_ok_and_what_a_workspace_shares_is_nobodys_business(home: Path) -> None:
    assert [found.verdict for found in check_permissions(home, fix=False)] == ["ok"]


def test_what_others_can_read_is_named_and_closed_by_fix_alone(home: Path) -> None:
    (home / "config.toml").chmod(0o644)
    (home / "log").chmod(0o755)
    (found,) = check_permissions(home, fix=False)
    assert found.verdict == "problem" and "config.toml (644)" in found.text and "--fix" in found.to_do
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o644
    (fixed,) = check_permissions(home, fix=True)
    assert fixed.verdict == "ok" and "2 files" in fixed.fixed
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o600
    assert (home / "log").stat().st_mode & 0o777 == 0o700
    assert (home / "workspace" / "run.sh").stat().st_mode & 0o777 == 0o755


def test_a_database_that_is_hurt_is_a_problem_and_one_that_is_none_too(home: Path) -> None:
    (home / "script.db").write_bytes(b"SQLite format 3\0" + bytes(5000))
    (home / "memory.db").write_text("no database at all, and long enough to be read as if it were one" * 20)
    found = list(check_databases(home))
    assert [one.verdict for one in found] == ["problem", "problem"]
    assert all("verify --repair" in one.text + one.to_do for one in found)


def test_a_log_that_does_not_prove_right_names_the_place() -> None:
    def recent(last: int) -> Sequence[IntegrityProblem]:
        return [
            IntegrityProblem("chain", "log/main/conversation.jsonl", f"record {last} does not continue the one before")
        ]

    found = check_log_chain(recent, 1000)
    assert found.verdict == "problem" and "log/main" in found.text and "assistant verify" in found.to_do
    assert check_log_chain(lambda last: [], 1000).verdict == "ok"


def test_the_end_of_a_log_is_proved_by_itself_and_what_stands_before_is_not_read(tmp_path: Path) -> None:
    stores = StoreHome(tmp_path).open()
    stores.chat(10)
    stores.say("short", "short too", "thread:other")
    verifier = Verifier(stores.path, stores.db, stores.log, stores.conversation)
    assert verifier.verify_recent(3) == ()
    log = stores.log.path("main")
    log.write_bytes(log.read_bytes().replace(b"question 0", b"question X"))
    assert verifier.verify_recent(3) == () and not verifier.verify().ok
    log.write_bytes(log.read_bytes().replace(b"answer 9", b"answer X"))
    assert [one.kind for one in verifier.verify_recent(3)] == ["commitment"]
    stores.close()


def test_a_disk_that_is_full_slow_or_refuses_is_told(home: Path) -> None:
    assert [one.verdict for one in check_disk(str(home), 10**10, lambda: 0.001)] == ["ok", "ok"]
    assert [one.verdict for one in check_disk(str(home), 10**6, lambda: 0.001)] == ["problem", "ok"]
    assert [one.verdict for one in check_disk(str(home), 10**10, lambda: 2.0)] == ["ok", "note"]

    def refuses() -> float:
        raise StoreError("It cannot be written.")

    found = list(run_check("disk", lambda: check_disk(str(home), 10**10, refuses), "Make room."))
    assert [one.verdict for one in found] == ["ok", "problem"] and found[1].text == "It cannot be written."


def test_what_a_store_says_of_itself_is_told_without_other_advice(home: Path) -> None:
    (home / "script.db").write_text("no database at all, and long enough to be read as if it were one" * 20)
    with pytest.raises(StoreError) as refused:
        check_database_pages(home / "script.db")

    def refuses() -> list[Finding]:
        raise refused.value

    (told,) = check_databases(home)
    (again,) = run_check("home", refuses, "Restore a backup.")
    assert told.text == again.text == str(refused.value) and (told.verdict, again.verdict) == ("problem", "problem")
    assert told.to_do == again.to_do == ""


def test_the_disk_is_really_tried_and_nothing_is_left_behind(home: Path) -> None:
    before = sorted(home.rglob("*"))
    assert measure_sync_seconds(home) > 0
    assert sorted(home.rglob("*")) == before
    with pytest.raises(StoreError):
        measure_sync_seconds(home / "missing")


@pytest.mark.parametrize(("ahead", "verdict"), [(timedelta(0), "ok"), (timedelta(hours=2), "problem")])
def test_a_clock_before_the_newest_message_is_wrong(home: Path, ahead: timedelta, verdict: str) -> None:
    zone, clock = check_clock(NOW + ahead, settings(home, ASSISTANT_HOME__TIMEZONE="Europe/Oslo"), NOW)
    assert (zone.verdict, zone.text, clock.verdict) == ("ok", "Europe/Oslo", verdict)


def test_a_time_zone_that_nobody_knows_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tzlocal.get_localzone_name", lambda: None)
    zone, _ = check_clock(None, settings(home), NOW)
    assert zone.verdict == "problem" and "home.timezone" in zone.to_do


@dataclass
class SocketState:
    removed: list[str] = field(default_factory=list)

    def serving(self, *, served: bool, answers: bool, has_socket: bool) -> DaemonState:
        return DaemonState(served, 42 if served else None, answers, has_socket, lambda: self.removed.append("socket"))


def test_a_socket_that_was_left_behind_is_taken_away_by_fix_alone_and_never_one_that_is_served() -> None:
    door = SocketState()
    left = door.serving(served=False, answers=False, has_socket=True)
    (found,) = check_stale_socket(left, fix=False)
    assert found.verdict == "note" and not door.removed
    (fixed,) = check_stale_socket(left, fix=True)
    assert fixed.fixed and door.removed == ["socket"]
    for served, answers, has_socket in (
        (True, False, True),
        (True, True, True),
        (False, True, True),
        (False, False, False),
    ):
        one = door.serving(served=served, answers=answers, has_socket=has_socket)
        assert list(check_stale_socket(one, fix=True)) == []
    assert door.removed == ["socket"]


def test_whoever_serves_and_does_not_listen_is_a_problem() -> None:
    door = SocketState()
    assert check_daemon(door.serving(served=True, answers=True, has_socket=True)).verdict == "ok"
    assert check_daemon(door.serving(served=False, answers=False, has_socket=False)).verdict == "note"
    assert check_daemon(door.serving(served=True, answers=False, has_socket=True)).verdict == "problem"


def test_settings_that_are_not_understood_are_problems_one_by_one(home: Path) -> None:
    found = list(check_settings(("context.target: 5 is too much.", "no.such: is no key."), None))
    assert [one.verdict for one in found] == ["problem", "problem"]
    (fine,) = check_settings((), settings(home))
    assert fine.verdict == "ok"


def test_a_secret_that_others_can_read_is_told_of(home: Path) -> None:
    (home / "secrets.toml").write_text('[file]\nOPENAI_API_KEY = "sk-123456789"\n')
    (home / "secrets.toml").chmod(0o644)
    (found,) = check_settings((), settings(home))
    assert found.verdict == "problem" and "can be read by others" in found.text and "sk-" not in found.text


def test_a_provider_without_a_key_is_a_problem_and_the_built_in_model_is_none(home: Path) -> None:
    assert check_provider(settings(home)).verdict == "note"
    assert check_provider(settings(home, ANTHROPIC_API_KEY="sk-1")).verdict == "ok"
    bare = check_provider(settings(home, ASSISTANT_MODEL__PROVIDER="anthropic"))
    assert bare.verdict == "problem" and "ANTHROPIC_API_KEY" in bare.text


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic at https://api.anthropic.com, with a key"),
        ({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://proxy"}, "anthropic at http://proxy, with a key"),
        ({"OPENAI_API_KEY": "k", "ASSISTANT_MODEL__PROVIDER": "openai"}, "openai at https://api.openai.com/v1, with a"),
        ({"OPENAI_BASE_URL": "http://me:pass@here/v1"}, "openai at http://***@here/v1, without a key"),
    ],
)
def test_the_address_that_is_asked_is_named_and_whether_it_gets_a_key(
    home: Path, environ: dict[str, str], told: str
) -> None:
    assert told in check_provider(settings(home, **environ)).text


def test_a_model_that_says_nothing_is_a_problem() -> None:
    assert [found.verdict for found in check_provider_answer(lambda: "Hello!")] == ["ok"]
    assert [found.verdict for found in check_provider_answer(lambda: " ")] == ["problem"]


def test_tokens_that_are_estimated_are_no_problem_and_say_how_to_do_better() -> None:
    found = check_tokenizer(choose_tier("claude-sonnet", None), "characters / 4 x 1.2", has_extra=False)
    assert found.verdict == "note" and "`tokens` extra" in found.to_do
    assert "characters / 4" not in " ".join(wrap_finding(found, 80))
    assert "characters / 4 x 1.2" in " ".join(wrap_finding(found, 200, verbose=True))
    assert check_tokenizer(choose_tier("claude-sonnet", None, toksum=True), "toksum").verdict == "ok"
    # An extra is advised where it is missing and helps: not in offline mode, and not where it is installed.
    for model, has_extra in (("offline", False), ("claude-sonnet", True)):
        assert check_tokenizer(choose_tier(model, None), "estimated", has_extra=has_extra).to_do == ""


@dataclass
class CheckedBridge:
    said: str = ""
    error: str = ""
    hangs: bool = False
    closed: bool = False

    async def check(self) -> str:
        if self.hangs:
            await asyncio.Event().wait()
        if self.error:
            raise BridgeError(self.error)
        return self.said

    async def aclose(self) -> None:
        self.closed = True


async def test_f39_each_bridge_is_asked_by_itself_and_one_that_hangs_keeps_no_other() -> None:
    tried = {
        "telegram": CheckedBridge("@nocturne_bot"),
        "matrix": CheckedBridge(error="The token is wrong."),
        "slow": CheckedBridge(hangs=True),
    }
    found = await check_bridges(tried, 0.01)
    assert [one.verdict for one in found] == ["ok", "problem", "problem"]
    assert "@nocturne_bot" in found[0].text and "The token is wrong." in found[1].text
    assert "did not answer" in found[2].text and all(one.closed for one in tried.values())


@pytest.mark.parametrize(
    ("python", "sqlite", "full_text", "subjects"),
    [
        ((3, 12, 1), "3.45.0", True, {"versions": "ok"}),
        ((3, 9, 2), "3.45.0", True, {"python": "problem", "versions": "ok"}),
        ((3, 12, 1), "3.30.1", True, {"sqlite": "problem", "versions": "ok"}),
        ((3, 12, 1), "3.45.0", False, {"sqlite": "problem", "versions": "ok"}),
    ],
)
def test_programs_that_are_too_old_are_told(
    python: tuple[int, int, int], sqlite: str, full_text: bool, subjects: dict[str, str]
) -> None:
    found = check_versions(python, sqlite, full_text=full_text)
    assert {one.subject: one.verdict for one in found} == subjects


def test_the_file_of_a_service_is_current_or_older_or_somebodys_own() -> None:
    template = "ExecStart=$program\nTimeoutStopSec=$stop_seconds\n"

    def unit(seconds: int) -> str:
        return render_systemd_unit(template, ServiceSpec(Path("/bin/assistant"), Path("/srv/ada"), "n", seconds, 60))

    file = Path("n.service")
    assert check_service_file(file, unit(30), unit(30)).verdict == "ok"
    older = check_service_file(file, unit(20), unit(30))
    assert older.verdict == "problem" and "service install" in older.to_do
    assert check_service_file(file, unit(20).replace("20", "25", 1), unit(30)).verdict == "note"


def test_a_finding_fits_a_terminal_and_ends_with_what_to_do() -> None:
    found = Finding(
        "permissions", "problem", "Others may get at 3 files: " + "config.toml (644), " * 3, "`assistant doctor --fix`."
    )
    lines = list(wrap_finding(found, 80))
    assert max(map(len, lines)) <= 80 and lines[0].startswith("problem  permissions    Others")
    assert lines[-1].strip().endswith("--fix`.")
    assert list(wrap_finding(Finding("disk", "ok", "62.3 GB free"), 80)) == ["ok       disk           62.3 GB free"]


def test_the_extras_that_are_installed_are_named_and_no_others() -> None:
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        known = tomllib.load(file)["project"]["optional-dependencies"]
    found = list_installed_extras()
    assert {"calendar", "mail", "mcp", "notify", "telemetry"} <= set(found) <= set(known)
