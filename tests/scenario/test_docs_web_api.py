"""Every command of docs/web-api.md does what the page says: run in order, as one script of a shell, with an app that
listens where the page says."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from assistant.settings.home import Home
from assistant.settings.settings import settings_problems
from tests.support.command_line import ROOT, command_environment, run_in_process
from tests.support.web_api import run_web_api

PAGE = (ROOT / "docs" / "web-api.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
# Streams end after a second here.
BEFORE = 'set -eu; curl() { command curl --max-time 1 "$@" || [ $? = 28 ]; echo; }\n'


async def run(script: str, home: Path, folder: Path, **settings: str) -> str:
    """What a script prints; it has to end well."""
    ours = folder / "assistant"
    ours.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from assistant.cli.main import main; main()" "$@"\n')
    ours.chmod(0o755)
    known = command_environment(home, **settings)
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        BEFORE + script,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**known, "PATH": f"{folder}:{known['PATH']}"},
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, *blocks = BLOCK.findall(PAGE)
    done = run_in_process(home, *first.split()[1:])
    assert done.returncode == 0 and "8484" in done.out, done.err
    async with run_web_api(home, "Nothing is on your list.", WEB__TOKEN="") as it:
        script = "".join(blocks).replace("8484", str(it.port))
        assert script.count("curl") >= 14
        await it.tcp.get("/openapi.json")  # the first one to ask waits until it is made
        # Here the first command of a shell waits for what starts them (`tests/support/forked_modules.py`).
        await it.tcp.request("POST", "/v1/commands", json={"argv": ["config", "check"]})
        printed = await run(script, home, tmp_path, ASSISTANT_WEB__PORT=str(it.port))
    assert '"inbox_id":1' in printed
    assert "call Ada" in printed
    assert printed.count("event: hello") == 2
    assert "Nothing is on your list." in printed.partition("event: hello")[2]
    assert '{"alive":true}' in printed
    assert '"openapi":"3.1' in printed


def test_the_example_of_settings_is_accepted(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert settings_problems(Home(tmp_path), example) == ()
