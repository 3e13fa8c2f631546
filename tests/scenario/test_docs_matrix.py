"""docs/matrix.md: its commands are run in order, beside a real Synapse; its settings are accepted, and its figures are
those of the bridge."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from keyring.backends.fail import Keyring as NoKeyring

from assistant.bridges.matrix import bridge, client
from assistant.bridges.matrix import events as form
from assistant.bridges.matrix import receiver as inbound
from assistant.settings.home import Home
from assistant.settings.settings import load_settings, settings_problems
from tests.support.command_line import TIMEOUT_SECONDS, run_bridge_command
from tests.support.docs_pages import read_page, shell_lines
from tests.support.keyring import use_keyring
from tests.support.synapse import SECRET, SERVER, Synapse

PAGE = read_page("matrix.md")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    made.path.mkdir(mode=0o700)
    made.config.write_text('[model]\nprovider = "offline"\n')
    with use_keyring(NoKeyring()):  # type: ignore[no-untyped-call]
        yield made


def registered(line: str, folder: Path, server: Synapse) -> str:
    """The account that Synapse's own tool makes, beside the file of settings that the page names; its password is
    "a password"."""
    tool, *options = shlex.split(line)
    (folder / options[-1]).write_text(
        f"registration_shared_secret: {SECRET}\n"
        f"listeners: [{{port: {server.port}, type: http, resources: [{{names: [client]}}]}}]\n"
    )
    name = "page"
    subprocess.run(
        [sys.executable, "-m", f"synapse._scripts.{tool}", *options],
        cwd=folder,
        input=f"{name}\na password\na password\nno\n",
        text=True,
        check=True,
        timeout=TIMEOUT_SECONDS,
        # Without a terminal it reads the password from where it reads the rest.
        start_new_session=True,
        capture_output=True,
    )
    return f"@{name}:{SERVER}"


def test_every_command_of_the_page_works(home: Home, homeserver: Synapse) -> None:
    registering, installing, adding = shell_lines(PAGE)
    assert installing.startswith("pipx install") and installing.endswith("[matrix]'")
    bot = registered(registering, home.path.parent, homeserver)
    said = f"{bot}\n{homeserver.url}\n@ada:{SERVER}\npassword\na password\n"
    done = run_bridge_command(home, *shlex.split(adding)[1:], "--no-wait", said=said)
    assert (done.returncode, done.err) == (0, "") and f"Invite {bot}" in done.out
    kept = load_settings(home, {}, ring=None).values.matrix
    assert (kept.user, kept.enabled) == (bot, True) and kept.token.get_secret_value()
    assert "a password" not in "".join(file.read_text() for file in home.path.glob("*.toml"))


def test_its_settings_are_accepted(tmp_path: Path) -> None:
    examples = re.findall(r"^ *```toml\n(.*?)^ *```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        assert settings_problems(Home(tmp_path), textwrap.dedent(example)) == ()


def test_its_figures_are_those_of_the_bridge() -> None:
    words = " ".join(PAGE.split())
    for told in (
        f"of up to {inbound._MAX_FILE_BYTES // 1_000_000} MB come along",
        f"up to {inbound._PAGE_SIZE * inbound._MAX_PAGES:,} events of each room are read",
        f"An answer of more than {form.MAX_TEXT_BYTES:,} bytes comes in several messages",
        f"After {bridge._DEDUPE_SECONDS / 3600:g} hours it is not repeated automatically",
        f"Up to {form._MAX_UNDECRYPTED} such messages are remembered",
        f"one of more than {client._MAX_ANSWER_BYTES // 1_000_000} MB is never taken for the server's word",
        "`device not verified`",
    ):
        assert told in words, told
