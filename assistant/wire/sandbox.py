"""Builds the sandbox for commands of the model, as configured."""

from __future__ import annotations

from assistant.sandbox.command import CommandLimits, CommandSandbox
from assistant.settings.settings import Settings


def build_command_sandbox(settings: Settings) -> CommandSandbox | None:
    """Return the sandbox, None if the model may not run commands."""
    values = settings.values.run_command
    if not values.enabled:
        return None
    limits = CommandLimits(
        values.timeout_seconds, values.max_memory_mb << 20, values.max_output_kb * 1000, values.max_processes
    )
    return CommandSandbox(settings.home.workspace, values.sandbox, limits)
