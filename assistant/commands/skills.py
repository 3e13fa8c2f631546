"""`skills`: folders with instructions for kinds of work, which the model reads when it needs them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup
from assistant.core.dataclass import dataclass
from assistant.core.quoting import quote_text
from assistant.store.home.skills import Skill


@dataclass(frozen=True, slots=True)
class SkillRemoved:
    text: str


def _render_skills(skills: Sequence[Skill], zone: tzinfo) -> str:
    return "\n".join(map(_line, skills)) or "There are no skills. `assistant skills add FOLDER` adds one, in a shell."


def _line(skill: Skill) -> str:
    name = quote_text(skill.name)[1:-1]
    return f"- {name}: not used, since it {skill.problem}" if skill.problem else f"- {name}: {skill.description}"


@click.group(cls=CommandGroup)
def skills() -> None:
    """Skills: instructions for kinds of work, which the model reads when it needs them.

    > assistant skills
    > assistant skills add ~/Downloads/invoices
    """


@skills.command("list", render=_render_skills, reads=True, with_session=False)
def list_skills(context: CommandContext) -> list[Skill]:
    """List the skills, and what is wrong with those that are not used.

    > assistant skills list
    """
    return context.stores.skills.list_all()


@skills.command("remove", with_session=False)
@click.argument("name")
def remove(context: CommandContext, name: str) -> SkillRemoved:
    """Remove a skill and its files.

    > assistant skills remove invoices
    """
    context.stores.skills.remove(name)
    return SkillRemoved(f"The skill {name} is removed.")
