"""How a model is asked for a summary: our instructions, and everything that others said as quoted material. Pure.

What always holds: the system prompt is ours alone, whatever the material says (I10); what goes beside the material
(open tasks, what is known already, what is told already) is bounded, so that a request is known to fit before it is
made (F05).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import Template

from assistant.context.quote import RECORD, quoted
from assistant.core.messages import Message
from assistant.core.model_api import ModelRequest, SystemBlock
from sleep.compaction.answer import clean
from sleep.compaction.summary import Material
from sleep.compaction.transcript import shortened

Count = Callable[[str], int]

FIRMER = (
    "Your last answer could not be used: {why}. Answer again, in exactly the form asked for, within the length asked "
    "for, in the language of the conversation, and call no tool."
)
_NOW = "That is all of it. Answer now in the form asked for."
_LONGEST_POINT = 400
_BEGINNING = 80


@dataclass(frozen=True, slots=True)
class SummaryPrompts:
    """The texts of `config/prompts/`, or the home's own. `$budget` stands for the tokens that a summary may take; in
    `prefix` `$until` stands for the beginning of the last message that it is of."""

    summary: str
    merge: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a material: its transcript, what was summarised of the pieces before it, and what was wrong with
    the last answer, "" where there was none."""

    transcript: str
    so_far: str = ""
    why: str = ""


def piece_request(
    prompts: SummaryPrompts, material: Material, piece: Piece, count: Count, *, beside: int, max_output: int
) -> ModelRequest:
    """The request for one piece. What goes beside the material takes at most `beside` tokens."""
    what = "The records" if material.depth > 1 else "The conversation"
    words = [*_beside(material, beside, count, earlier=True)]
    if piece.so_far:
        so_far = quoted(RECORD, clean(piece.so_far))
        words.append(f"Your record so far, to be carried on and answered as a whole:\n{so_far}")
    words.append(f"{what}:\n{quoted(RECORD, piece.transcript)}")
    words.append(FIRMER.format(why=piece.why) if piece.why else _NOW)
    system = SystemBlock(instructions(prompts, material), stable_edge=True)
    return ModelRequest((system,), (Message("user", "\n\n".join(words)),), max_output_tokens=max_output)


def instructions(prompts: SummaryPrompts, material: Material) -> str:
    template = prompts.merge if material.depth > 1 else prompts.summary
    return Template(template).safe_substitute(budget=material.budget).strip()


def prefix_words(prompts: SummaryPrompts, material: Material, beside: int, count: Count) -> str:
    """What is appended to a prompt that the provider still has. Earlier summaries stand in it already."""
    until = next((row.content for row in reversed(material.rows) if _is_said(row)), "")
    begins = " ".join(clean(until[: 4 * _BEGINNING]).split())[:_BEGINNING]
    asked = Template(prompts.prefix).safe_substitute(budget=material.budget, until=begins).strip()
    return "\n\n".join([*_beside(material, beside, count, earlier=False), asked])


def _beside(material: Material, most: int, count: Count, *, earlier: bool) -> list[str]:
    """What the record has to name, and what it need not say again; a quarter of the room for each of the lists."""
    parts: list[str] = []
    if material.focus.strip():
        focus = shortened(clean(material.focus), most // 4, count)
        parts.append(f"Above all the person wants this kept:\n{quoted(RECORD, focus)}")
    for head, lines in (("Open, to be named in the record", material.tasks), ("Known already", material.known)):
        if lines:
            parts.append(f"{head}:\n{quoted(RECORD, shortened(_points(lines), most // 4, count))}")
    if earlier and material.earlier.strip():
        told = shortened(clean(material.earlier), most // 4, count)
        parts.append(f"Told already, in records that stay:\n{quoted(RECORD, told)}")
    return parts


def _is_said(row: Message) -> bool:
    return row.role in ("user", "assistant") and bool(row.content.strip()) and not row.metadata.get("internal")


def _points(lines: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(clean(line).split())[:_LONGEST_POINT]}" for line in lines)
