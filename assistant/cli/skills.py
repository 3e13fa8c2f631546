"""`assistant skills`: the commands of the table, and `add`, which only a shell has, since it reads any folder."""

from __future__ import annotations

from pathlib import Path

import click

from assistant.cli.home_stores import load_effective_settings
from assistant.cli.output import json_result, print_remark, print_text
from assistant.cli.shell import with_commands
from assistant.commands import skills as table
from assistant.service.home_lock import is_home_served
from assistant.store.home.skills import Skill, Skills


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@json_result(Skill)
def add(folder: Path) -> Skill:
    """Copy FOLDER, which has a SKILL.md, into the workspace. Read it first: the model will.

    > assistant skills add ~/Downloads/invoices
    """
    home = load_effective_settings(read_only=True).home
    skill = Skills(home.workspace).add(folder)
    print_text(f"The skill {skill.name} is added: {skill.description}")
    if is_home_served(home.path):
        print_remark("The running assistant finds it within half a minute.")
    return skill


skills = with_commands(table.skills, add)
