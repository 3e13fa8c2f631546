"""Commands that only a shell has, over the web API: what a shell would check and say, and nothing else is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assistant.web.shell_commands import ShellCommands
from tests.support.telegram_bridge import ThreadedTelegram
from tests.support.web_api import LiveApi, run_web_api

KEY = "sk-ant-api03-0123456789abcdef0123456789abcdef"


async def run(it: LiveApi, *argv: str, typed: str = "") -> tuple[int, Any]:
    body = {"argv": list(argv), "typed": typed}
    answer = await it.tcp.request("POST", "/v1/commands", json=body, timeout=120)
    return answer.status_code, answer.json()


async def test_a_setting_is_changed_as_in_a_shell_and_refused_as_there(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        status, answer = await run(it, "config", "set", "budget.daily_usd", "$3")
        assert status == 200 and answer["value"][0]["key"] == "budget.daily_usd"
        assert "daily_usd = 3" in (tmp_path / "config.toml").read_text()
        status, answer = await run(it, "config", "set", "budget.daily_usd", "lots")
        assert status == 400 and "budget.daily_usd" in answer["error"] and "Traceback" not in answer["error"]
        assert "daily_usd = 3" in (tmp_path / "config.toml").read_text()


async def test_a_key_is_kept_and_no_answer_shows_it(tmp_path: Path) -> None:
    async with run_web_api(tmp_path) as it:
        status, answer = await run(it, "config", "secret", "set", "ANTHROPIC_API_KEY", "--file", typed=KEY)
        assert status == 200 and answer["value"]["set"] and KEY not in str(answer)
        assert KEY in (tmp_path / "secrets.toml").read_text()
        assert KEY not in str(await run(it, "config", "show"))


@pytest.mark.parametrize(
    "argv",
    [
        ["config"],
        ["config", "edit"],
        ["run"],
        ["stop"],
        ["chat", "-m", "hi"],
        ["service", "install"],
        ["config", "path"],
    ],
)
def test_what_is_not_listed_is_not_run(argv: list[str], tmp_path: Path) -> None:
    assert not ShellCommands(tmp_path).includes(argv)


async def test_a_bridge_is_set_up_and_its_token_is_in_no_answer_and_no_argument(tmp_path: Path) -> None:
    with ThreadedTelegram() as telegram:
        (tmp_path / "config.toml").write_text(f'[telegram]\nbase_url = "{telegram.url}"\n')
        async with run_web_api(tmp_path) as it:
            add = ("bridge", "add", "telegram", "--token-stdin", "--no-wait", "--file")
            status, answer = await run(it, *add, typed="654321:wrong")
            assert (status, answer["exit_code"]) == (200, 1) and "654321:wrong" not in str(answer), answer
            assert not (tmp_path / "secrets.toml").exists()
            status, answer = await run(it, *add, typed=telegram.token)
            assert (status, answer["exit_code"]) == (200, 0), answer
            assert "enabled = true" in (tmp_path / "config.toml").read_text()
            assert telegram.token in (tmp_path / "secrets.toml").read_text() and telegram.token not in str(answer)
