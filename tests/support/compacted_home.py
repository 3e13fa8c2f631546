"""A home in which several conversations were compacted: made through the stores, looked at by the commands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from assistant.cli.aihistory.main import aihistory
from assistant.core.checkpoints import Checkpoint, Compaction, RequestKind
from assistant.core.messages import Message
from assistant.settings.settings import load_settings
from assistant.wire.stores import Stores
from tests.support.command_line import run_in_process
from tests.support.store_home import NOW, StoreHome, count_tokens

GUEST = "peer:test:ann"


def open_empty_home(path: Path) -> StoreHome:
    """A home with all its databases and nothing in it, open; what begins with "Please" is a task there."""
    settings = load_settings(None, {"ASSISTANT_HOME": str(path)})
    Stores(settings, NOW).close()
    return StoreHome(path, asked=lambda text: RequestKind(text.startswith("Please"))).open()


def compact_view(
    home: StoreHome,
    keep: int,
    summary: str,
    *,
    session: str = "main",
    tier: str = "full",
    trigger: str = "sleep",
    at: datetime = NOW,
    key_facts: Mapping[str, Any] | None = None,
    cost: float | None = 0.01,
    absorbs: tuple[int, ...] = (),
) -> Checkpoint:
    """All but the last `keep` messages of a view leave it; one summary row takes their place."""
    view = home.conversation.load_view(session)
    live = [m for m in view.messages if m.id is not None and "carried_from" not in m.metadata]
    gone = live[: len(live) - keep]
    first, last = gone[0].id or 0, gone[-1].id or 0
    row = Message("system", f"[CONTEXT SUMMARY]\n{summary}", metadata={"type": "compaction"})
    places = home.conversation.find_log_places([first, last])
    ranges = [[places[first].path, places[first].span.start, places[last].span.end]]
    return home.conversation.commit_compaction(
        Compaction(
            session,
            view.prefix_rev,
            trigger,
            tier,
            first,
            last,
            len(gone),
            (row,),
            summary,
            sum(count_tokens(message) for message in gone),
            count_tokens(row),
            {"byte_ranges": ranges, **(key_facts or {})},
            cost_usd=cost,
            model="small",
            attempts=1,
            absorbed_ids=absorbs,
        ),
        at,
    )


def days_later(days: float) -> datetime:
    return NOW + timedelta(days=days)


def json_output(home: Path, *arguments: str, command: click.Command = aihistory, **settings: str) -> Any:
    """What `aihistory ... --json` (or another command) printed, read."""
    done = run_in_process(home, *arguments, "--json", command=command, **settings)
    assert (done.returncode, done.err) == (0, "")
    return json.loads(done.out)
