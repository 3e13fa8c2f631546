"""`assistant service`: installing, looking, taking away, with managers whose programs are a list of what was asked."""

from __future__ import annotations

import json
import os
import pwd
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from assistant.cli.service import command
from assistant.cli.service.install import (
    Launchd,
    ServiceDefinition,
    Systemd,
    check_reachable,
    create_system_home,
    define_service,
    describe_where_to_keep,
    install_service,
    remove_service,
    variables_hidden_from_service,
)
from assistant.core.errors import AssistantError, UsageError
from assistant.service.presence import detect_service_manager
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from tests.support.command_line import one_line_error, run_in_process


def ended(returncode: int, out: str = "", err: str = "") -> CompletedProcess[str]:
    return CompletedProcess([], returncode, out, err)


class ServiceProgram:
    """Answers to what managers ask; `said` by the beginning of the words."""

    def __init__(self, **said: CompletedProcess[str]) -> None:
        self.asked: list[str] = []
        self.said = said

    def __call__(self, words: Sequence[str]) -> CompletedProcess[str]:
        self.asked.append(" ".join(words))
        verb = next(word for word in words[1:] if not word.startswith("-"))
        return self.said.get(verb.replace("-", "_"), ended(0))


@pytest.fixture
def placed(tmp_path: Path) -> ServiceDefinition:
    settings = load_settings(Home(tmp_path / "home"), {})
    ours = define_service("systemd", "nocturne", settings)
    return ServiceDefinition(ours.name, tmp_path / "units" / "nocturne.service", ours.text, ours.home)


def test_an_install_writes_enables_and_may_be_repeated(
    placed: ServiceDefinition, capsys: pytest.CaptureFixture[str]
) -> None:
    program = ServiceProgram()
    manager = Systemd("nocturne", False, program)
    assert install_service(placed, manager, force=False)
    assert placed.file.read_text() == placed.text
    assert program.asked == ["systemctl --user daemon-reload", "systemctl --user enable nocturne"]
    assert not install_service(placed, manager, force=False)
    assert capsys.readouterr().err == f"Wrote {placed.file}.\n{placed.file} is up to date.\n"


def test_a_unit_of_an_earlier_version_is_brought_up_to_date_and_the_difference_shown(
    placed: ServiceDefinition, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = define_service(
        "systemd", "nocturne", load_settings(Home(tmp_path / "home"), {"ASSISTANT_DAEMON__DRAIN_SECONDS": "1"})
    )
    placed.file.parent.mkdir()
    placed.file.write_text(earlier.text)
    assert install_service(placed, Systemd("nocturne", False, ServiceProgram()), force=False)
    assert placed.file.read_text() == placed.text
    difference = capsys.readouterr().err
    assert "-TimeoutStopSec=34" in difference
    assert "+TimeoutStopSec=53" in difference


def test_what_a_person_changed_is_not_overwritten_unless_forced_and_then_kept(
    placed: ServiceDefinition, capsys: pytest.CaptureFixture[str]
) -> None:
    manager = Systemd("nocturne", False, ServiceProgram())
    install_service(placed, manager, force=False)
    mine = placed.text.replace("RestartSec=15", "RestartSec=1")
    placed.file.write_text(mine)
    with pytest.raises(UsageError, match="was changed manually, and was not overwritten"):
        install_service(placed, manager, force=False)
    assert "-RestartSec=1\n+RestartSec=15" in capsys.readouterr().err
    assert placed.file.read_text() == mine
    with pytest.raises(UsageError, match="was not removed"):
        remove_service(placed, manager, force=False)
    assert install_service(placed, manager, force=True)
    assert placed.file.read_text() == placed.text
    assert placed.file.with_name("nocturne.service.edited").read_text() == mine


def test_an_uninstall_ends_the_service_and_leaves_the_home(
    placed: ServiceDefinition, capsys: pytest.CaptureFixture[str]
) -> None:
    program = ServiceProgram()
    manager = Systemd("nocturne", True, program)
    placed.home.path.mkdir()
    install_service(placed, manager, force=False)
    remove_service(placed, manager, force=False)
    assert program.asked[-2:] == ["systemctl disable --now nocturne", "systemctl daemon-reload"]
    assert not placed.file.exists()
    assert placed.home.path.is_dir()
    remove_service(placed, manager, force=False)
    assert capsys.readouterr().err.endswith("the service is not installed.\n")


def test_with_json_a_command_prints_how_the_service_is_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = "ActiveState=active\nSubState=running\nMainPID=41\nNRestarts=2\n"
    monkeypatch.setattr(command, "detect_service_manager", lambda: "systemd")
    monkeypatch.setattr(command, "run_subprocess", ServiceProgram(show=ended(0, shown)))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for verb, running in (("install", True), ("restart", True), ("stop", True), ("uninstall", False)):
        done = run_in_process(tmp_path / "home", "service", verb, "--json")
        report = json.loads(done.out)
        assert (done.returncode, report["ok"], report["installed"]) == (0, running, running), verb
        assert (report["process"], report["restarts"]) == ((41, 2) if running else (None, 0))


@pytest.mark.parametrize("verb", [(), ("status",), ("start",), ("logs",)])
@pytest.mark.parametrize(
    ("manager", "told"),
    [("systemd", "The service is not installed"), ("", "There is no service: neither systemd nor launchd")],
)
def test_on_a_new_machine_it_says_what_a_service_is_for_and_how_to_have_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manager: str, told: str, verb: tuple[str, ...]
) -> None:
    monkeypatch.setattr(command, "detect_service_manager", lambda: manager)
    monkeypatch.setattr(command, "run_subprocess", ServiceProgram())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    done = run_in_process(tmp_path / "home", "service", *verb)
    said = done.out + done.err
    assert done.returncode == 1 and told in said and "missing;" not in said
    assert ("`assistant service install` installs it" if manager else "`assistant run`") in said
    assert not (tmp_path / "home").exists()


def test_a_manager_that_refuses_is_quoted(placed: ServiceDefinition) -> None:
    program = ServiceProgram(start=ended(1, err="Failed to connect to bus: No medium found\n"))
    with pytest.raises(AssistantError, match=r"`systemctl --user start nocturne` failed: Failed to connect to bus"):
        Systemd("nocturne", False, program).start(placed.file)


def test_the_condition_is_told_in_systemds_words() -> None:
    shown = "ActiveState=active\nSubState=running\nMainPID=41\nNRestarts=2\nResult=success\nStatusText=Serves a=b.\n"
    condition = Systemd("nocturne", False, ServiceProgram(show=ended(0, shown))).read_status()
    assert (condition.running, condition.pid, condition.restarts) == (True, 41, 2)
    assert condition.detail == "active (running); Serves a=b."
    dead = "ActiveState=failed\nSubState=failed\nMainPID=0\nNRestarts=0\nResult=watchdog\nStatusText=Serves.\n"
    condition = Systemd("nocturne", False, ServiceProgram(show=ended(0, dead))).read_status()
    assert (condition.running, condition.detail) == (False, "failed (failed); last result: watchdog")


def test_who_is_logged_out_at_times_is_told_of_lingering() -> None:
    assert "enable-linger" in Systemd("nocturne", False, ServiceProgram(show_user=ended(0, "no\n"))).hint()
    assert Systemd("nocturne", False, ServiceProgram(show_user=ended(0, "yes\n"))).hint() == ""
    assert Systemd("nocturne", True, ServiceProgram()).hint() == ""


def test_launchd_takes_an_agent_in_before_it_starts_it_and_lets_it_go_for_good(tmp_path: Path) -> None:
    file = tmp_path / "nocturne.plist"
    file.touch()
    program = ServiceProgram(print=ended(113, err="Could not find service"))
    Launchd("nocturne", tmp_path / "log", program).start(file)
    assert [asked.split()[1] for asked in program.asked] == ["print", "bootstrap", "kickstart"]
    assert str(file) in program.asked[1]
    program = ServiceProgram(
        print=ended(0, "gui/501/nocturne = {\n\tstate = running\n\tpid = 77\n\tsub = {\n\t\tstate = active\n")
    )
    launchd = Launchd("nocturne", tmp_path / "log", program)
    assert (launchd.read_status().running, launchd.read_status().pid) == (True, 77)
    launchd.disable(file)
    assert program.asked[-1].startswith("launchctl bootout gui/")
    assert not file.exists()


def test_the_logs_are_the_managers_own(tmp_path: Path) -> None:
    assert Systemd("n", False, ServiceProgram()).logs_command(5, True) == [
        "journalctl",
        "--user-unit",
        "n",
        "--lines",
        "5",
        "--follow",
    ]
    assert Systemd("n", True, ServiceProgram()).logs_command(5, False) == [
        "journalctl",
        "--unit",
        "n",
        "--lines",
        "5",
        "--no-pager",
    ]
    assert Launchd("n", tmp_path, ServiceProgram()).logs_command(5, False) == ["tail", "-n", "5", str(tmp_path)]


def test_a_machine_without_a_manager_is_known_as_such(tmp_path: Path) -> None:
    assert detect_service_manager(booted=tmp_path / "no", platform="linux") == ""


def test_without_a_manager_one_line_tells_and_print_still_works(tmp_path: Path) -> None:
    home = tmp_path / "ho me"
    if not detect_service_manager():
        for verb in ("install", "uninstall", "start", "stop", "restart", "status", "logs"):
            done = run_in_process(home, "service", verb)
            assert done.returncode == 1
            assert "`assistant run` runs the assistant in the foreground" in one_line_error(done)
    unit = run_in_process(home, "service", "print", "--systemd")
    assert (unit.returncode, unit.err) == (0, "")
    assert f'Environment="ASSISTANT_HOME={home}"' in unit.out
    agent = run_in_process(home, "service", "print", "--launchd")
    assert f"<string>{home}</string>" in agent.out
    system = run_in_process(home, "service", "--system", "print", "--systemd")
    assert f'ReadWritePaths="{home}"' in system.out
    assert run_in_process(home, "service", "--system", "print", "--launchd").returncode == 2


def test_the_seconds_of_a_unit_come_from_the_settings(tmp_path: Path) -> None:
    home, words = tmp_path / "home", ("service", "print", "--systemd")
    unit = run_in_process(home, *words, ASSISTANT_DAEMON__DRAIN_SECONDS="100", ASSISTANT_DAEMON__WATCHDOG_SECONDS="60")
    assert "TimeoutStopSec=133\n" in unit.out
    assert "WatchdogSec=60\n" in unit.out


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "a b", "ü", "a/b"])
def test_a_name_that_is_no_files_name_is_refused(name: str, tmp_path: Path) -> None:
    done = run_in_process(tmp_path / "home", "service", "--name", name, "print")
    assert done.returncode == 2
    assert "is not a service name" in one_line_error(done)


def test_a_program_that_the_services_user_cannot_reach_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "open" / "assistant"
    program.parent.mkdir()
    program.touch()
    others = [folder for folder in program.parents if not folder.stat().st_mode & 0o001]
    if not others:
        check_reachable([program], "nocturne")
    program.parent.chmod(0o700)
    with pytest.raises(UsageError, match="which the user nocturne cannot enter"):
        check_reachable([program], "nocturne")


def test_the_home_of_a_system_unit_is_made_for_its_user_alone(placed: ServiceDefinition) -> None:
    user = pwd.getpwuid(os.getuid()).pw_name
    create_system_home(replace(placed, user=user))
    assert stat.S_IMODE(placed.home.path.stat().st_mode) == 0o700


def test_what_this_shell_alone_knows_is_told(tmp_path: Path) -> None:
    environ = {
        "OPENAI_BASE_URL": "http://localhost:1",
        "ASSISTANT_TURN__MAX_STEPS": "9",
        "ASSISTANT_HOME": str(tmp_path),
    }
    assert variables_hidden_from_service(load_settings(None, environ)) == [
        "ASSISTANT_TURN__MAX_STEPS",
        "OPENAI_BASE_URL",
    ]


@pytest.mark.parametrize(
    ("name", "secret"),
    [("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"), ("ASSISTANT_TELEGRAM__TOKEN", "telegram.token")],
)
def test_a_key_that_the_service_would_not_see_is_kept_by_a_command(
    placed: ServiceDefinition, name: str, secret: str
) -> None:
    assert f"`assistant config secret set {secret}`" in describe_where_to_keep(name, placed)
    of_its_own = replace(placed, user="nocturne")
    named = f"`sudo -u nocturne env ASSISTANT_HOME={placed.home.path} assistant config secret set {secret} --file`"
    assert named in describe_where_to_keep(name, of_its_own)


def test_what_is_no_secret_belongs_into_the_settings(placed: ServiceDefinition) -> None:
    assert describe_where_to_keep("ASSISTANT_TURN__MAX_STEPS", placed) == f"write it into {placed.home.config}"
