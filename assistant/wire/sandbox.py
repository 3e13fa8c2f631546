"""Where commands of the model's run, as the settings have it."""

from __future__ import annotations

from assistant.sandbox.command import CommandLimits, CommandSandbox
from assistant.settings.settings import Settings


def build_command_sandbox(settings: Settings) -> CommandSandbox | None:
    """None where the model may run none."""
    values = settings.values.run_command
    if not values.enabled:
        return None
    limits = CommandLimits(
        values.timeout_seconds, values.max_memory_mb << 20, values.max_output_kb * 1000, values.max_processes
    )
    return CommandSandbox(settings.home.workspace, values.sandbox, limits)
