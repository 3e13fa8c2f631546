"""The `aihistory` command: what was compacted, and what it said; read-only, whether a daemon runs or not."""

from __future__ import annotations

import json
from typing import Any

import click

from assistant import __version__
from assistant import settings as settings_module
from assistant.cli.lazy import start
from assistant.cli.plain import as_json, say
from assistant.cli.stored import opened
from assistant.cli.tables import local, table
from assistant.compactions import Checkpoint
from assistant.errors import UsageError
from assistant.ports import Conversation
from assistant.settings import Settings


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="aihistory")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, not only its line.")
@click.option("--json", "json_out", is_flag=True, help="Print one JSON array, newest first.")
@click.option("--session", metavar="NAME", help="Only this conversation.")
@click.pass_context
def aihistory(context: click.Context, debug: bool, json_out: bool, session: str | None) -> None:
    """List what was compacted, newest first.

    Nothing is lost by a compaction: the words stand in the master log (`assistant log`).

    \b
    Example:
      aihistory
      aihistory --json
      aihistory show 3
    """
    if context.invoked_subcommand is not None:
        return
    settings = settings_module.load()
    with opened(settings) as stores:
        found = _checkpoints(stores.conversation, session)
    if json_out:
        as_json([_as_json(checkpoint) for checkpoint in found])
    else:
        _draw(found, settings)


@aihistory.command()
@click.argument("checkpoint_id", metavar="ID", type=int)
@click.option("--json", "json_out", is_flag=True, help="Print one JSON object, with summary and key facts.")
def show(checkpoint_id: int, json_out: bool) -> None:
    """Show one compaction: its summary, its key facts, the messages it covers.

    \b
    Example:
      aihistory show 3
    """
    settings = settings_module.load()
    with opened(settings) as stores:
        found = {checkpoint.id: checkpoint for checkpoint in _checkpoints(stores.conversation, None)}
    checkpoint = found.get(checkpoint_id)
    if checkpoint is None:
        raise UsageError(f"There is no compaction {checkpoint_id}. `aihistory` lists those there are.")
    if json_out:
        as_json(_as_json(checkpoint) | {"summary": checkpoint.summary, "key_facts": dict(checkpoint.key_facts)})
        return
    say(
        f"Compaction {checkpoint.id} of {checkpoint.session}, {local(checkpoint.created_at, settings.zone)}: "
        f"{checkpoint.trigger}, {checkpoint.tier}, {checkpoint.state}\n"
        f"Messages {checkpoint.from_message_id} to {checkpoint.to_message_id} ({checkpoint.messages_compressed:,}), "
        f"{checkpoint.original_tokens:,} -> {checkpoint.compressed_tokens:,} tokens\n\n{checkpoint.summary}"
    )
    if checkpoint.key_facts:
        say("\nKey facts: " + json.dumps(dict(checkpoint.key_facts), ensure_ascii=False, indent=2))


def _checkpoints(conversation: Conversation, session: str | None) -> list[Checkpoint]:
    """Of one session or of all, newest first."""
    keys = dict.fromkeys(info.key for info in conversation.sessions() if session in (None, info.key))
    if session is not None and not keys:
        raise UsageError(f"There is no session {session!r}. `assistant sessions` lists those there are.")
    found = [checkpoint for key in keys for checkpoint in conversation.checkpoints(key)]
    return sorted(found, key=lambda checkpoint: checkpoint.id, reverse=True)


def _draw(found: list[Checkpoint], settings: Settings) -> None:
    table(
        ("id", "when", "session", "trigger", "tier", "messages", "tokens", "ratio", "cost"),
        [
            (
                str(c.id), local(c.created_at, settings.zone), c.session, c.trigger, c.tier,
                f"{c.messages_compressed:,}", f"{c.original_tokens:,} -> {c.compressed_tokens:,}", f"{_ratio(c):.2f}",
                "?" if c.cost_usd is None else f"${c.cost_usd:.4f}",
            )
            for c in found
        ],
        right=("id", "messages", "tokens", "ratio", "cost"),
        empty="Nothing was compacted yet.",
    )  # fmt: skip


def _ratio(checkpoint: Checkpoint) -> float:
    return checkpoint.compressed_tokens / checkpoint.original_tokens if checkpoint.original_tokens else 0.0


def _as_json(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "id": checkpoint.id, "session": checkpoint.session, "at": checkpoint.created_at.isoformat(),
        "trigger": checkpoint.trigger, "tier": checkpoint.tier, "state": checkpoint.state,
        "compacted_count": checkpoint.messages_compressed, "original_token_count": checkpoint.original_tokens,
        "summary_token_count": checkpoint.compressed_tokens, "ratio": round(_ratio(checkpoint), 4),
        "from_message_id": checkpoint.from_message_id, "to_message_id": checkpoint.to_message_id,
        "cost_usd": checkpoint.cost_usd,
    }  # fmt: skip


def main() -> None:
    start(aihistory)
