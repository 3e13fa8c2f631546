"""`assistant docs` shows the pages for people, and texts of the program name no other files of docs/."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pexpect
import pytest

from assistant.commands.docs import load_pages
from assistant.core.errors import UsageError
from tests.support.command_line import ROOT, TIMEOUT_SECONDS, command_environment, run_in_process
from tests.support.forked_terminal import AssistantTerminal
from tests.support.running_app import run_app

NAMED = re.compile(r"\bassistant docs ([\w-]+)")
FILE = re.compile(r"\bdocs/[\w/-]+\.md")
PAGES = sorted(load_pages())


def texts(path: Path) -> list[str]:
    """The texts of a module that people may read: not what describes functions, unless they are commands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    described = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    inner = {
        id(node.body[0].value)
        for node in described
        if node.body
        and isinstance(node.body[0], ast.Expr)
        and not (isinstance(node, ast.FunctionDef) and node.decorator_list)
    }
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in inner]
    return [node.value for node in constants if isinstance(node.value, str)]


def test_no_text_names_a_file_that_an_installed_program_does_not_have() -> None:
    sources = [path for package in ("assistant", "sleep", "tools") for path in (ROOT / package).rglob("*.py")]
    telling = {path: path.read_text(encoding="utf-8") for path in sources}
    named = [text for path, source in telling.items() if FILE.search(source) for text in texts(path)]
    assert len(named) > 10
    assert not [text for text in named if FILE.search(text)]
    naming = [path for path, source in telling.items() if "assistant docs" in source and path.name != "docs.py"]
    pages = {name for path in naming for text in texts(path) for name in NAMED.findall(text)}
    assert {"replica", "slack", "service"} <= pages and pages <= set(PAGES)


def test_the_list_has_a_line_for_each_page_and_what_it_explains(tmp_path: Path) -> None:
    lines = run_in_process(tmp_path / "home", "docs").out.splitlines()
    assert sorted(line.partition(": ")[0] for line in lines) == PAGES
    assert "telegram: how to set up your own bot" in lines
    listed = json.loads(run_in_process(tmp_path / "home", "docs", "--json").out)
    assert {"name": "telegram", "title": "Telegram", "about": "how to set up your own bot"} in listed
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["telegram", "docs/telegram.md", "Telegram", "settings"])
def test_a_pipe_gets_the_page_as_it_is(name: str, tmp_path: Path) -> None:
    shown = run_in_process(tmp_path / "home", "docs", name)
    stem = name.lower().rpartition("/")[2].removesuffix(".md")
    (file,) = (ROOT / "docs").rglob(f"{stem}.md")
    assert shown.returncode == 0 and shown.out == file.read_text(encoding="utf-8").rstrip() + "\n"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("telegramm", "Did you mean `assistant docs telegram`?"),
        ("quiet hours", "These mention it: "),
        ("zzzzz", "`assistant docs` lists the pages."),
        ("../../etc/zzzzz", "`assistant docs` lists the pages."),
    ],
)
def test_a_page_that_is_not_there_leads_to_one(asked: str, said: str, tmp_path: Path) -> None:
    shown = run_in_process(tmp_path / "home", "docs", asked)
    assert shown.returncode == 2 and not shown.out
    assert said in " ".join(shown.err.split())


async def test_a_conversation_shows_the_pages_too_and_names_them_as_one_types_them_there(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        assert "- `telegram`: how to set up your own bot" in await it.app.commands.run("/docs", "main")
        shown = await it.app.commands.run("/docs brief", "main")
        assert shown.startswith("# ") and "](" not in shown and re.search(r"See also: `/docs [\w-]+`", shown)
        first = await it.app.commands.run("/docs settings", "main")
        assert "`/docs settings --page 2` shows the next." in first
        assert (await it.app.commands.run("/docs settings --page 2", "main")).splitlines()[0] not in first
        with pytest.raises(UsageError, match="Did you mean `/docs telegram`"):
            await it.app.commands.run("/docs telegramm", "main")


@pytest.mark.parametrize(("columns", "name"), [(100, "spending"), (40, "brief")])
def test_a_terminal_gets_it_drawn_in_a_pager_and_is_told_where_its_links_lead(
    columns: int, name: str, tmp_path: Path
) -> None:
    child = AssistantTerminal(
        "docs",
        name,
        env=command_environment(tmp_path / "home", PAGER="cat", COLUMNS="", NO_COLOR="1"),
        timeout=TIMEOUT_SECONDS,
        encoding="utf-8",
        dimensions=(20, columns),
    )
    child.expect(pexpect.EOF)
    shown = re.sub(r"\x1b\[[\d;]*m", "", child.before)
    child.close()
    assert child.exitstatus == 0
    assert "](" not in shown and "See also: assistant docs" in shown
    assert max(map(len, shown.splitlines())) <= columns
