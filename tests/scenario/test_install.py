"""The wheel, built and installed into a clean environment, is the whole program."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from assistant import __version__
from tests.support.backup_home import unpack_tar

ROOT = Path(__file__).parents[2]


def hatchling(folder: Path, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *arguments], cwd=folder, check=True, capture_output=True
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    hatchling(ROOT, "-t", "sdist", "-t", "wheel", "-d", str(folder))
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel and, borrowed from this one, the packages that it depends on."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    (site / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return folder


def run(installed: Path, home: Path, command: str, *arguments: str) -> str:
    environ = {"PATH": os.environ["PATH"], "ASSISTANT_HOME": str(home), "LANG": "C.UTF-8"}
    words = [installed / "bin" / command, *arguments]
    done = subprocess.run(
        words, cwd=home.parent, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_three_packages_and_the_shipped_data(wheel: Path) -> None:
    names = files(wheel)
    ours = {name.partition("/")[0] for name in names if ".dist-info" not in name and ".data/" not in name}
    assert ours == {"assistant", "sleep", "tools"}
    shared = {name.partition(".data/data/")[2] for name in names if ".data/" in name}
    assert shared == {"share/man/man1/assistant.1", "share/man/man1/aihistory.1"}
    shipped = {
        f"assistant/config/{path.relative_to(ROOT / 'config')}"
        for path in (ROOT / "config").rglob("*")
        if path.is_file()
    }
    assert "assistant/config/default.toml" in shipped
    assert shipped <= names
    pages = {name.removeprefix("assistant/") for name in names if name.startswith("assistant/docs/")}
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} <= pages
    assert {page for page in pages if page.startswith("docs/developing/")} == {
        f"docs/developing/reference/{name}.md" for name in ("settings", "exit-codes", "json")
    }
    assert not [name for name in names if "test" in name.lower()]


def test_the_source_archive_builds_itself_and_the_wheel_again_to_the_byte(built: Path, tmp_path: Path) -> None:
    unpack_tar(next(built.glob("*.tar.gz")), tmp_path)
    (unpacked,) = tmp_path.iterdir()
    hatchling(unpacked, "-t", "sdist", "-t", "wheel", "-d", str(tmp_path / "again"))
    first, again = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in (built, tmp_path / "again")
    )
    assert len(first) == 2 and first == again


def test_the_installed_commands_are_those_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert __version__ in run(installed, home, "assistant", "--version")
    assert "Usage" in run(installed, home, "aihistory", "--help")
    where = run(
        installed, home, "python", "-c", "import assistant, sleep, tools; print(assistant.__file__, tools.__file__)"
    )
    assert all(Path(path).is_relative_to(installed) for path in where.split())


def test_the_installed_program_answers_and_keeps_what_was_said(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert run(installed, home, "assistant", "chat", "-m", "remember that the boiler code is 4711").strip()
    assert "4711" in run(installed, home, "assistant", "chat", "-m", "what is the boiler code?")
    assert "4711" in (home / "log" / "main" / "conversation.jsonl").read_text(encoding="utf-8")
    run(installed, home, "assistant", "verify")


def test_the_installed_program_finds_its_settings(installed: Path, tmp_path: Path) -> None:
    assert "emergency_threshold" in run(installed, tmp_path / "home", "assistant", "config", "show")


def test_the_installed_program_has_the_pages_that_its_texts_name(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    names = [line.partition(": ")[0] for line in run(installed, home, "assistant", "docs").splitlines()]
    assert {"telegram", "replica", "settings"} <= set(names)
    page = run(installed, home, "assistant", "docs", "replica")
    assert page == (ROOT / "docs" / "replica.md").read_text(encoding="utf-8")
