"""Long lists in a conversation come page by page."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.commands.paging import PAGE_LINES, page_of
from assistant.core.errors import UsageError
from tests.support.running_app import run_app


def test_a_short_answer_is_given_whole_and_a_long_one_in_pages_that_leave_nothing_out() -> None:
    assert page_of("a\nb", 1, "todo") == "a\nb"
    lines = [f"line {n}" for n in range(PAGE_LINES * 2 + 1)]
    pages = [page_of("\n".join(lines), number, "todo").split("\n") for number in (1, 2, 3)]
    assert [line for page in pages for line in page[:-2]] == lines
    assert pages[0][-1] == "Page 1 of 3; `/todo --page 2` shows the next." and pages[2][-1] == "Page 3 of 3."
    with pytest.raises(UsageError, match="There are 3 pages"):
        page_of("\n".join(lines), 4, "todo")


async def test_every_list_in_a_conversation_is_paged(tmp_path: Path) -> None:
    async with run_app(tmp_path) as it:
        for number in range(500):
            it.app.stores.todos.add("owner", [f"thing {number}"], f"k{number}", it.clock())
        first = await it.app.commands.run("/todo", "main")
        assert first.count("\n- ") < PAGE_LINES and first.endswith("Page 1 of 5; `/todo --page 2` shows the next.")
        last = await it.app.commands.run("/todo list --page 5", "main")
        assert last.endswith("Page 5 of 5.") and "thing 499" in last and 'thing 1"' not in last
        # Programs get all of it.
        assert len((await it.app.commands.run_argv(["todo", "list"], "main")).value) == 500
