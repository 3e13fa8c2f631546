"""What `/forget` shows before it asks: what people said, and of everything made of it only how much."""

from __future__ import annotations

from pathlib import Path

from assistant.models.offline.model import OfflineModel
from tests.support.running_app import run_app


async def test_the_preview_shows_what_was_said_and_no_words_of_the_machinery(tmp_path: Path) -> None:
    async with run_app(tmp_path / "home", model=OfflineModel()) as it:
        for text in (
            "Remember that Anna has the spare key",
            "Where is the spare key?",
            "add a label for the spare key to my list",
        ):
            await it.say(text)
            await it.wait_idle()
        told = await it.app.commands.run("/forget spare key", "main")
    assert "2026-03-01: Remember that Anna has the spare key; 2026-03-01: Where is the spare key?" in told
    assert not [word for word in ('{"', "read_history", "Quoted words") if word in told]
    (copies,) = [line for line in told.splitlines() if line.startswith("- copies, and what was made of it: ")]
    assert "what the model sees " in copies and "tool calls " in copies
    assert "\n\nValues that nothing else said" in told
