"""What people get it with: recipes for containers, Homebrew and Debian, the man pages, the completion of shells."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from platformdirs import user_data_path

from assistant import __version__
from assistant.cli.main import assistant
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from docs.system_packages import render_formula
from tests.support.docs_pages import parse_command, read_page

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "packaging" / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "packaging" / "compose.yaml").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def docker_runs() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True).returncode == 0


def test_the_container_has_extras_that_there_are_and_a_command_that_there_is() -> None:
    (extras,) = re.findall(r"\.\[([\w,]+)\]", DOCKERFILE)
    known = PROJECT["project"]["optional-dependencies"].keys()
    # In a package nothing is added later: what reaches the networks, mail and calendars of a person is there.
    reaching = {"matrix", "discord", "slack", "mail", "calendar", "mcp", "notify"}
    assert reaching <= set(extras.split(",")) <= known
    assert [name for name in known if f"`{name}`" not in read_page("operations.md")] == []
    (command,) = re.findall(r'^CMD \["(\w+)"\]$', DOCKERFILE, re.M)
    assert parse_command([command]).callback is not None
    for line in re.findall(r"(?:run -it .* nocturne|exec nocturne assistant) (\w+)", DOCKERFILE + str(COMPOSE)):
        assert parse_command([line]).callback is not None


def test_the_settings_of_the_compose_file_are_understood(tmp_path: Path) -> None:
    environment = COMPOSE["services"]["nocturne"]["environment"]
    own = {name: value for name, value in environment.items() if name.startswith("ASSISTANT_")}
    web = load_settings(Home(tmp_path), own).values.web
    assert web.host == "0.0.0.0" and web.behind_proxy and web.port == 8484


def test_the_page_of_a_container_is_published_to_this_machine_alone() -> None:
    assert COMPOSE["services"]["nocturne"]["ports"] == ["127.0.0.1:8484:8484"]
    assert "USER nocturne" in DOCKERFILE and COMPOSE["services"]["nocturne"]["cap_drop"] == ["ALL"]


@pytest.mark.skipif(not docker_runs(), reason="no Docker daemon runs on this machine")
def test_the_container_is_built_and_answers(tmp_path: Path) -> None:
    tag = "nocturne-test"
    subprocess.run(["docker", "build", "-q", "-f", "packaging/Dockerfile", "-t", tag, "."], cwd=ROOT, check=True)
    run = ["docker", "run", "--rm", "-i", tag, "chat", "-m", "hello"]
    answer = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0 and answer.stdout.strip(), answer.stderr


@pytest.mark.parametrize("name", ["assistant", "aihistory"])
def test_the_man_page_is_plain_roff_and_has_every_command(name: str) -> None:
    page = (ROOT / "docs" / "man" / f"{name}.1").read_text(encoding="utf-8")
    assert page.isascii() and page.startswith(f".TH {name.upper()} 1")
    requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests <= {".TH", ".SH", ".SS", ".PP", ".TP", ".EX", ".EE", ".I", ".BR"}
    # Where the program puts it where nothing else is said, as a person of a Linux machine sees it.
    assert f"~/.local/share/{user_data_path('assistant', appauthor=False).name}\n" in page
    if name == "assistant":
        assert all(f".SS assistant {command}" in page for command in ("chat", "remind add", "approvals revoke"))


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff formats man pages; CI has it")
@pytest.mark.parametrize("name", ["assistant", "aihistory"])
def test_groff_has_nothing_to_say_about_a_man_page(name: str) -> None:
    page = ROOT / "docs" / "man" / f"{name}.1"
    done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", str(page)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_recipes_for_homebrew_and_debian_install_every_program_with_its_man_page_and_completions() -> None:
    """That they are as `pyproject.toml` has it is looked at by `python -m docs.generate --check`."""
    formula = (ROOT / "packaging" / "homebrew" / "nocturne.rb").read_text(encoding="utf-8")
    rules = ROOT / "packaging" / "debian" / "rules"
    dry = subprocess.run(["make", "-n", "-f", str(rules), "binary"], capture_output=True, text=True, check=True)
    for name in PROJECT["project"]["scripts"]:
        assert (ROOT / "docs" / "man" / f"{name}.1").exists()
        assert f'bin.install_symlink libexec/"bin/{name}"' in formula
        assert f"ln -s ../../opt/nocturne/bin/{name} debian/nocturne/usr/bin/{name}" in dry.stdout
        for shell in ("bash", "zsh", "fish"):
            assert f'"completion", "{shell}", "--program", "{name}"' in formula
            assert f"completion {shell} --program {name} >" in dry.stdout
    # The interpreter of the package is Debian's, by a link, whichever is first on the PATH of who builds it.
    interpreters = re.findall(r"^(\S*python3) -m venv(.*)", dry.stdout, re.M)
    assert {name for name, _ in interpreters} == {"/usr/bin/python3"} and "--symlinks" in interpreters[0][1]
    assert os.access(rules, os.X_OK) and "sha256" not in formula
    assert f'sha256 "{"0" * 64}"' in render_formula("0" * 64)


@pytest.mark.skipif(shutil.which("dpkg-parsechangelog") is None, reason="Debian's tools are not on this machine")
def test_debian_understands_which_version_it_builds() -> None:
    changelog = ROOT / "packaging" / "debian" / "changelog"
    done = subprocess.run(
        ["dpkg-parsechangelog", "-l", str(changelog), "-S", "Version"], capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == (__version__, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("program", ["assistant", "aihistory"])
def test_a_shell_is_given_what_completes_a_program(shell: str, program: str) -> None:
    shown = CliRunner().invoke(assistant, ["completion", shell, "--program", program])
    assert shown.exit_code == 0
    assert f"_{program.upper()}_COMPLETE={shell}_complete" in shown.output


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    script = CliRunner().invoke(assistant, ["completion", "bash"]).output
    (tmp_path / "assistant").write_text(script)
    ask = (
        f"source {tmp_path / 'assistant'}; COMP_WORDS=(assistant remind a); COMP_CWORD=2;"
        ' _assistant_completion assistant; echo "${COMPREPLY[@]}"'
    )
    bin_folder = ROOT / ".venv" / "bin"
    done = subprocess.run(
        ["bash", "-c", ask], capture_output=True, text=True, env={"PATH": f"{bin_folder}:/usr/bin:/bin"}
    )
    assert done.stdout.split() == ["add", "again"], done.stderr


@pytest.mark.parametrize(
    ("typed", "incomplete", "expected"),
    [
        ("import", "--d", ["--dry-run"]),
        ("import --kind", "tele", ["telegram"]),
        ("import export.zip --kind", "tele", ["telegram"]),
        ("import", "li", ["list", "li"]),  # a command, or a file that begins so
        ("add", "~/lea", ["~/lea"]),
        ("files", "--i", ["--in"]),
        ("config", "--j", ["--json"]),
        ("config get", "context.tar", ["context.target"]),
        ("config secret set", "OPEN", ["OPENAI_API_KEY"]),
        ("remind", "", ["add", "again", "cancel"]),
    ],
)
def test_a_shell_completes_files_settings_and_what_a_command_takes_that_is_implied(
    typed: str, incomplete: str, expected: list[str]
) -> None:
    completer = ShellComplete(assistant, {}, "assistant", "_ASSISTANT_COMPLETE")
    found = [item.value for item in completer.get_completions(typed.split(), incomplete)]
    assert found[: len(expected)] == expected


@pytest.mark.parametrize("extra", ["calendar", "discord", "mail", "mcp", "notify", "slack"])
def test_each_library_of_what_it_reaches_has_its_reason(extra: str) -> None:
    reasons = read_page("developing/reach.md")
    libraries = [re.split(r"[\[<>=]", line)[0] for line in PROJECT["project"]["optional-dependencies"][extra]]
    assert [name for name in libraries if not re.search(rf"^\|[^|]*\b{name}\b[^|]*\|", reasons, re.M)] == []
