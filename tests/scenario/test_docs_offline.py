"""What docs/offline.md says that offline mode answers, it answers: the table of the page, said from top to bottom."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from assistant.models.offline.model import OfflineModel
from tests.support.docs_pages import read_page
from tests.support.running_app import run_app, use_model

EXAMPLES = re.findall(r"^\| (?!You say|-)(.+?) \| (.+?) \|$", read_page("offline.md"), re.MULTILINE)


async def test_every_example_of_the_page_is_answered_as_it_says(tmp_path: Path) -> None:
    assert len(EXAMPLES) >= 15
    async with run_app(tmp_path, ASSISTANT_HOME__TIMEZONE="Europe/Berlin") as it:
        use_model(it.app, OfflineModel())
        it.clock.now = datetime(2026, 3, 9, 8, 0, tzinfo=UTC)
        wrong = []
        for said, answer in EXAMPLES:
            await it.say(said)
            await it.wait_idle()
            wrong += [] if answer in it.bridge.bodies[-1] else [f"{said}: {it.bridge.bodies[-1]}"]
        assert not wrong, "\n".join(wrong)
