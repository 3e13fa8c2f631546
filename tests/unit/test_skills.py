"""Skills: the open format as it is written, and folders that are not what they should be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assistant.core.errors import UsageError
from assistant.core.messages import ToolCall
from assistant.core.plain_files import FileRefused
from assistant.documents.folders import FileFolders
from assistant.runtime.tool_registry import ToolRegistry
from assistant.store.home.skills import Skills, parse_skill
from tests.unit.test_registry import CONTEXT
from tools.skills import skill_tools

GOOD = "---\nname: invoices\ndescription: Writes invoices. Use it to bill a customer.\n---\n# How\nAdd the tax.\n"


def make(folder: Path, text: str = GOOD) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return folder


async def call(workspace: Path, called: str, **arguments: object) -> tuple[str, bool]:
    registry = ToolRegistry(skill_tools(Skills(workspace), FileFolders(workspace, workspace), 4000), timeout_seconds=60)
    return await registry.run(ToolCall("c1", called, arguments), CONTEXT, "owner")


@pytest.mark.parametrize(
    ("head", "description"),
    [
        ("name: a\ndescription: Plain text: with a colon", "Plain text: with a colon"),
        ('name: a\ndescription: "In \\"marks\\""', 'In "marks"'),
        ("name: 'a'\ndescription: 'It''s so'", "It's so"),
        ("name: a\ndescription: >-\n  Over\n  two lines\nlicense: MIT", "Over two lines"),
        ("name: a\ndescription: |\n  One\n\n  two", "One two"),
        ("name: a\nmetadata:\n  author: x\n  description: inner\ndescription: Outer", "Outer"),
    ],
)
def test_a_head_is_read_as_the_format_writes_it(head: str, description: str) -> None:
    skill = parse_skill(f"---\n{head}\n---\nText")
    assert (skill.name, skill.description) == ("a", description)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# No head",
        "---\nname: a\ndescription: never ends",
        "---\nname: A b\ndescription: x\n---\n",
        "---\nname: ../up\ndescription: x\n---\n",
        "---\nname: a--b\ndescription: x\n---\n",
        "---\nname: a\n---\n",
        f"---\nname: a\ndescription: {'x' * 1025}\n---\n",
        "---\n" + "x: &a [*a, *a]\n" * 10_000 + "---\n",
        "---\nname: a\ndescription: x\n" + "k: v\n" * 300 + "---\n",
    ],
)
def test_a_bad_head_is_refused_and_the_skill_listed_with_what_is_wrong(tmp_path: Path, text: str) -> None:
    with pytest.raises(FileRefused):
        parse_skill(text)
    make(tmp_path / "skills" / "a", text)
    skills = Skills(tmp_path)
    assert skills.list_offered() == [] and skills.list_all()[0].problem
    with pytest.raises(FileRefused):
        skills.require("a")


async def test_the_model_is_told_name_and_description_and_reads_the_rest_when_it_needs_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "skills" / "invoices")
    (folder / "references").mkdir()
    (folder / "references" / "tax.md").write_text("19 percent")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "run.sh").write_text("rm -rf /")
    listed, _ = await call(tmp_path, "list_skills")
    assert '"invoices": "Writes invoices. Use it to bill a customer."' in listed and "tax" not in listed
    text, ok = await call(tmp_path, "read_skill", name="invoices")
    assert ok and "> Add the tax." in text
    assert 'Its files: "references/tax.md", "scripts/run.sh". Nothing of them is run.' in text
    assert "> 19 percent" in (await call(tmp_path, "read_skill", name="invoices", file="references/tax.md"))[0]


async def test_a_long_skill_is_read_in_pages(tmp_path: Path) -> None:
    make(tmp_path / "skills" / "invoices", GOOD + "line\n" * 5000)
    text, _ = await call(tmp_path, "read_skill", name="invoices")
    assert len(text) < 8000 and 'More: read_skill(name="invoices", file="SKILL.md", offset=' in text


@pytest.mark.parametrize("file", ["../../private.txt", "/etc/passwd", "link.md", "linked/private.txt", "missing.md"])
async def test_nothing_outside_of_a_skill_is_read(tmp_path: Path, file: str) -> None:
    (tmp_path / "private.txt").write_text("kestrel")
    folder = make(tmp_path / "skills" / "invoices")
    (folder / "link.md").symlink_to(tmp_path / "private.txt")
    (folder / "linked").symlink_to(tmp_path)
    text, ok = await call(tmp_path, "read_skill", name="invoices", file=file)
    assert not ok and "kestrel" not in text
    assert "link" not in (await call(tmp_path, "read_skill", name="invoices"))[0]


@pytest.mark.parametrize("name", ["..", "../skills/invoices", "invoices/", "", "x" * 65, "none"])
async def test_a_name_that_is_none_reads_nothing(tmp_path: Path, name: str) -> None:
    make(tmp_path / "skills" / "invoices")
    assert not (await call(tmp_path, "read_skill", name=name))[1]


def test_a_folder_that_is_a_link_or_has_another_name_is_not_offered(tmp_path: Path) -> None:
    elsewhere = make(tmp_path / "elsewhere")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "invoices").symlink_to(elsewhere)
    assert Skills(tmp_path).list_all() == []
    make(tmp_path / "skills" / "bills")
    assert "another name" in Skills(tmp_path).list_all()[0].problem


def test_a_huge_skill_is_neither_read_nor_added(tmp_path: Path) -> None:
    make(tmp_path / "skills" / "invoices", GOOD + "x" * 300_000)
    assert "larger than 256 KB" in Skills(tmp_path).list_all()[0].problem
    source = make(tmp_path / "source")
    with (source / "big.bin").open("wb") as file:
        file.truncate(30 * 1024 * 1024)
    with pytest.raises(UsageError, match="more than 500 files or 20 MB"):
        Skills(tmp_path / "other").add(source)
    assert not (tmp_path / "other" / "skills" / "invoices").exists()


def test_ten_thousand_files_are_not_added(tmp_path: Path) -> None:
    source = make(tmp_path / "source")
    for number in range(600):
        (source / f"{number}.md").write_text("x")
    with pytest.raises(UsageError, match="more than 500 files"):
        Skills(tmp_path).add(source)


@pytest.mark.parametrize("what", ["link", "folder link", "pipe"])
def test_a_folder_with_a_link_or_a_pipe_is_not_added(tmp_path: Path, what: str) -> None:
    source = make(tmp_path / "source")
    if what == "pipe":
        os.mkfifo(source / "pipe")
    else:
        (source / "x").symlink_to("/etc/passwd" if what == "link" else "/etc")
    with pytest.raises(UsageError, match="no plain file; links are not followed"):
        Skills(tmp_path).add(source)


def test_what_is_added_is_a_copy_and_can_be_removed(tmp_path: Path) -> None:
    source = make(tmp_path / "downloaded")
    (source / "references").mkdir()
    (source / "references" / "tax.md").write_text("19 percent")
    skills = Skills(tmp_path / "workspace")
    assert skills.add(source).name == "invoices"
    assert (skills.folder / "invoices" / "references" / "tax.md").read_text() == "19 percent"
    with pytest.raises(UsageError, match="is there already"):
        skills.add(source)
    skills.remove("invoices")
    assert skills.list_all() == [] and source.exists()
    for name in ("invoices", "..", "."):
        with pytest.raises(UsageError, match="There is no skill"):
            skills.remove(name)
