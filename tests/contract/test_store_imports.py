"""Many messages that are appended at once are as if they had been said, and their view stays small."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from assistant.core.messages import Message
from tests.support.imports import import_messages
from tests.support.store_home import NOW, StoreHome


@pytest.fixture
def home(tmp_path: Path) -> Iterator[StoreHome]:
    home = StoreHome(tmp_path).open()
    yield home
    assert home.verify().problems == ()
    home.close()


def test_ingested_messages_are_as_if_said(home: StoreHome) -> None:
    said = [Message("user", f"m{number}", ts=NOW - timedelta(days=1)) for number in range(10)]
    placed = import_messages(home.conversation, "main", "owner", said, NOW)
    assert [message.content for message in placed] == home.view_contents() == home.add_message()
    assert all(record.ts == NOW - timedelta(days=1) for record in home.log.scan("main"))


def test_bulk_ingest_keeps_the_view_small_and_covered(home: StoreHome) -> None:
    for batch in range(10):
        roles = [Message("user" if n % 2 == 0 else "assistant", f"m{batch}-{n}") for n in range(20)]
        import_messages(home.conversation, "main", "owner", roles, NOW, keep=15)
    view = home.conversation.load_view("main")
    assert len(view.messages) <= 30
    assert view.messages[0].role == "user"
    assert view.messages[-1].content == "m9-19"
    assert {one.tier for one in home.conversation.checkpoints("main")} == {"reference"}
