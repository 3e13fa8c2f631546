"""`assistant completion`: what a shell reads to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option(
    "--program",
    default="assistant",
    show_default=True,
    type=click.Choice(["assistant", "aihistory"]),
    help="Which program.",
)
def completion(shell: str, program: str) -> None:
    """Print the completion of commands and options for your shell, to be read when it starts.

    > eval "$(assistant completion bash)"
    > assistant completion fish > ~/.config/fish/completions/assistant.fish
    > assistant completion zsh > ~/.zfunc/_assistant
    """
    kind = get_completion_class(shell)
    assert kind is not None
    variable = f"_{program.upper()}_COMPLETE"
    click.echo(kind(click.Group(program), {}, program, variable).source())
