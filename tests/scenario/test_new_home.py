"""A new home: what its first request to a model holds, and what the app says of itself before anybody asked it
anything."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from assistant import daemon
from assistant.health.status_text import render_lines
from assistant.settings.home import Home
from assistant.settings.settings import load_settings
from assistant.web.metrics import render_metrics
from tests.bench.start import PROMPT_TOKENS, prompt_tokens
from tests.support.running_app import run_app


async def test_the_first_prompt_of_a_whole_app_is_small(tmp_path: Path) -> None:
    assert 1_000 < await prompt_tokens(tmp_path / "home") <= PROMPT_TOKENS


async def test_how_full_a_conversation_is_is_not_told_before_a_model_was_asked(tmp_path: Path) -> None:
    async with run_app(tmp_path, "fine") as it:
        await it.say("hello")
        await it.wait_idle()
        assert "% full)" in said_of_main(it.app.status())
    async with run_app(tmp_path, "fine") as it:
        (session,) = it.app.status()["sessions"]
        assert session["pressure"] is None and b"pressure_ratio{" not in render_metrics(it.app.daemon_status)
        assert "full" not in said_of_main(it.app.status())


async def test_the_log_says_once_who_answers_and_apart_from_that_how_it_is_counted(tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with daemon.serve_daemon(load_settings(Home(tmp_path / "home"), {})):
            (ready,) = [entry for entry in logs if entry["event"] == "ready"]
    assert ready["model"] == "offline" and ready["tokens"].startswith("characters / 4")


def said_of_main(status: dict[str, object]) -> str:
    return next(line for line in render_lines({**status, "running": True}) if line.startswith("Conversation main"))
