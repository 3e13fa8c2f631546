"""What service managers are given to read: filled rightly whatever is in a path, and checked by their own programs."""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import stat
import subprocess
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.core.errors import UsageError
from assistant.core.shutdown import (
    EXIT_SECONDS,
    SHUTDOWN_TIMEOUTS,
    ShutdownTimeouts,
    service_manager_timeout,
    shutdown_seconds,
)
from assistant.service.unit_files import (
    ServiceSpec,
    quote_unit_word,
    render_launchd_plist,
    render_systemd_unit,
    was_edited_by_hand,
)
from assistant.settings.settings import shipped_config_dir

ODD = '/srv/my ho\'me "q" %n $x \\ ünï'
PLAIN = ServiceSpec(Path("/usr/bin/env"), Path("/srv/home"), "nocturne", 53, 180, user="daemon", log=Path("/var/log/n"))
UNITS = ("systemd-user.service", "systemd-system.service")


def template(name: str) -> str:
    return (shipped_config_dir() / "service" / name).read_text(encoding="utf-8")


def values(unit: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", unit, re.M)


# -------------------------------------------------------------------------------------------------------------- systemd


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_says_what_the_daemon_does(name: str) -> None:
    unit = render_systemd_unit(template(name), PLAIN)
    assert values(unit, "ExecStart") == [':"/usr/bin/env" run']
    assert values(unit, "Environment") == ['"ASSISTANT_HOME=/srv/home"']
    said = {key: values(unit, key) for key in ("Type", "NotifyAccess", "Restart", "WatchdogSec", "TimeoutStopSec")}
    assert said == {
        "Type": ["notify"],
        "NotifyAccess": ["main"],
        "Restart": ["on-failure"],
        "WatchdogSec": ["180"],
        "TimeoutStopSec": ["53"],
    }


def test_a_program_whose_path_systemd_does_not_take_is_started_by_another() -> None:
    unit = render_systemd_unit(template(UNITS[0]), replace(PLAIN, program=Path(ODD)))
    assert values(unit, "ExecStart") == [r':/usr/bin/env "/srv/my ho' + r"'me \"q\" %%n $x \\ ünï" + '" run']
    with pytest.raises(UsageError, match="Nothing was done"):
        render_systemd_unit(template(UNITS[0]), replace(PLAIN, program=Path("/srv/it's=1")))


def test_a_path_of_any_kind_is_one_word_without_specifiers() -> None:
    service = replace(PLAIN, home=Path(ODD))
    unit = render_systemd_unit(template("systemd-system.service"), service)
    assert values(unit, "Environment") == [r'"ASSISTANT_HOME=/srv/my ho' + r"'me \"q\" %%n $x \\ ünï" + '"']
    assert values(unit, "ReadWritePaths") == [r'"/srv/my ho' + r"'me \"q\" %%n $x \\ ünï" + '"']


@settings(max_examples=50)
@given(st.text(st.characters(min_codepoint=32, exclude_characters="\x7f", codec="utf-8"), min_size=1))
def test_a_quoted_word_is_read_back_as_it_was(word: str) -> None:
    inner = quote_unit_word(word)[1:-1]
    assert re.fullmatch(r'(?:[^"\\]|\\["\\])*', inner)
    assert re.sub(r"\\(.)", r"\1", inner).replace("%%", "%") == word
    assert not re.search(r"(?<!%)(?:%%)*%(?!%)", inner)


@pytest.mark.parametrize("path", ["/srv/a\nExecStart=/bin/sh", "/srv/\x00", "/srv/\udcff"])
def test_a_path_that_no_file_can_hold_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="Nothing was done"):
        replace(PLAIN, home=Path(path))


@pytest.mark.parametrize(
    ("name", "folder"), [(UNITS[0], "a %n $x ü"), (UNITS[1], "plain"), (UNITS[0], "a pro'g\\r\"am %n")]
)
def test_systemd_itself_finds_nothing_wrong_with_a_unit(name: str, folder: str, tmp_path: Path) -> None:
    program = tmp_path / folder / "assistant"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "nocturne-assistant.service"
    unit.write_text(render_systemd_unit(template(name), replace(PLAIN, program=program, home=tmp_path / "ho me")))
    verifier = shutil.which("systemd-analyze")
    if verifier is None:
        # Where there is no systemd, its own words can still be looked at.
        assert all(re.fullmatch(r"\[\w+\]|[A-Z]\w+=.*|#.*|", line) for line in unit.read_text().splitlines())
        return
    where = ["--user"] if name == UNITS[0] else []
    done = subprocess.run(
        [verifier, *where, "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_unit_of_the_system_is_kept_to_its_home() -> None:
    unit = render_systemd_unit(template("systemd-system.service"), PLAIN)
    assert (values(unit, "User"), values(unit, "ProtectSystem")) == (["daemon"], ["strict"])
    assert values(unit, "CapabilityBoundingSet") == [""]
    assert {values(unit, key)[0] for key in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome")} == {
        "yes"
    }
    assert values(unit, "RestrictAddressFamilies") == ["AF_UNIX AF_INET AF_INET6 AF_NETLINK"]


# -------------------------------------------------------------------------------------------------------------- launchd

_KINDS = {
    "Label": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "RunAtLoad": bool,
    "KeepAlive": dict,
    "ThrottleInterval": int,
    "ProcessType": str,
    "Umask": int,
    "HardResourceLimits": dict,
    "StandardErrorPath": str,
    "StandardOutPath": str,
    "ExitTimeOut": int,
}


def test_a_launchd_agent_has_the_keys_that_launchd_knows_and_their_kinds() -> None:
    agent = plistlib.loads(render_launchd_plist(template("launchd.plist"), PLAIN).encode())
    assert {key: type(value) for key, value in agent.items()} == _KINDS
    assert agent["ProgramArguments"] == ["/usr/bin/env", "run"]
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["ExitTimeOut"] == 53
    assert agent["EnvironmentVariables"] == {"ASSISTANT_HOME": "/srv/home", "WATCHDOG_USEC": "180000000"}
    assert agent["Umask"] == stat.S_IRWXG | stat.S_IRWXO


def test_an_agent_holds_any_path_as_it_is() -> None:
    text = render_launchd_plist(template("launchd.plist"), replace(PLAIN, home=Path(ODD + " <&>")))
    assert plistlib.loads(text.encode())["EnvironmentVariables"]["ASSISTANT_HOME"] == ODD + " <&>"


# ----------------------------------------------------------------------------------------------------- what was written


@pytest.mark.parametrize(
    "text", [render_systemd_unit(template(UNITS[0]), PLAIN), render_launchd_plist(template("launchd.plist"), PLAIN)]
)
def test_a_file_knows_whether_a_person_has_changed_it(text: str) -> None:
    assert not was_edited_by_hand(text)
    assert was_edited_by_hand(text.replace("180", "5").replace("15", "5"))
    assert was_edited_by_hand(text + "# mine\n")
    assert was_edited_by_hand("[Service]\nExecStart=/bin/true\n")


# ------------------------------------------------------------------------------------------------------------- the end


@given(st.floats(0, 600))
def test_f38_the_end_is_always_over_before_the_manager_kills(drain_seconds: float) -> None:
    steps = {field.name: getattr(SHUTDOWN_TIMEOUTS, field.name) for field in fields(ShutdownTimeouts)}
    # What is being sent gets the time of a flush, and what waits then another.
    together = drain_seconds + sum(steps.values()) + steps["flush"]
    assert shutdown_seconds(drain_seconds) >= together - 1e-9
    assert service_manager_timeout(drain_seconds) > shutdown_seconds(drain_seconds) + EXIT_SECONDS
