"""The table of notices: everything that is sent is in it, and the page of it says what the program says."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from assistant.core.notices import NoticeKind
from docs.generate import DOCS, PAGES

ROOT = Path(__file__).parents[2]
# Their own words: what a turn or a command says is no template.
_FREE_TEXT = {
    "TURN_ENDED",
    "COMMAND_ANSWER",
    "APPROVAL_ENDED",
    "DISK_TROUBLE",
    "RESET_PROGRESS",
    "DETACHED",
    "ASKING_ANOTHER",
}


@cache
def _sources() -> dict[str, str]:
    """The program, by file."""
    paths = [path for root in ("assistant", "sleep", "tools") for path in (ROOT / root).rglob("*.py")]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def _calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call of that name in the program, with its file."""
    for where, source in _sources().items():
        for node in ast.walk(ast.parse(source)) if name in source else ():
            called = getattr(node, "func", None)
            if isinstance(node, ast.Call) and getattr(called, "id", getattr(called, "attr", "")) == name:
                yield where, node


def _is_notice(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "notice"


def test_the_page_is_the_table() -> None:
    page = (DOCS / "notices.md").read_text(encoding="utf-8")
    assert page == PAGES["notices.md"]().rstrip() + "\n"
    flat = " ".join(page.replace("> ", "").split())
    for kind in NoticeKind:
        assert f"### {kind.name.lower()}\n" in page and " ".join(kind.form.template.split()) in flat


def test_no_notice_is_sent_that_is_not_declared() -> None:
    made = [where for where, call in _calls("OutgoingMessage") if any(map(_is_notice, call.args))]
    made += [
        where for where, call in _calls("OutgoingMessage") if any(_is_notice(word.value) for word in call.keywords)
    ]
    assert made == ["assistant/core/notices.py"]


def test_what_terminals_are_shown_is_declared_too() -> None:
    """The text of each such event is that of a `Notice`, or of a model's own progress."""
    texts = [
        (where, ast.unparse(call)) for where, call in _calls("TurnEvent") if call.args and _is_notice(call.args[0])
    ]
    assert texts and all("NoticeKind" in text or "notice.text" in text for _, text in texts)


@pytest.mark.parametrize("kind", NoticeKind, ids=lambda kind: kind.name.lower())
def test_each_is_used_and_says_something_without_the_words_of_the_machinery(kind: NoticeKind) -> None:
    assert any(f"NoticeKind.{kind.name}" in source for source in _sources().values())
    fields = [name for _, name, _, _ in string.Formatter().parse(kind.form.template) if name]
    notice = kind.fill("x", **dict.fromkeys(fields, "y"))
    assert "{" not in notice.text and notice.mark == f"{kind.name.lower()}:x"
    assert kind.name in _FREE_TEXT or len(kind.form.template.split()) >= 4
    assert kind.form.when and "\n" not in kind.form.template
