"""What the offline model says. Pure.

What always holds: it claims nothing that a result or the log does not show, and quotes instead of retelling.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.core.text import shorten
from assistant.core.tool_results import FAILURE_PREFIX, QuotedMessage, TodoLine, quote_block
from assistant.models.offline.ranking import RankedAnswer

INTRODUCTION = (
    "*The built-in offline model is answering: a clerk, not a talker. It uses no network and no language model; it "
    "keeps what you tell it, finds it again word for word, and minds your to-do list. `help` shows how.*"
)
HELP_TEXT = """I am the offline model: no network, nothing made up. Every message is kept before I answer. You can say:

- `remember that the spare key is under the flowerpot`, or simply tell me
- `where is the spare key?`, `tell me about Anna`, `what did you say about the boiler?`
- `no, she is called Anna, not Hanna`: the newer word counts, the older one stays on record
- `add milk to my list`, `what's on my list?`, `done with 2`, `remove 3`
- `remind me to call mum tomorrow at 9`, `what reminders do I have?`, `cancel reminder 3`
- `what time is it?`, `list my files`, `read notes.txt`, `show message 12`

For anything that takes thinking or writing, connect a language model: README, "Models"."""
GREETING_TEXT = "Hello. Tell me something to keep, or ask for something you told me."
THANKS_TEXT = "You're welcome."
GOODBYE_TEXT = "Goodbye. Everything you told me is kept."
AGREED_TEXT = "All right."
WELL_TEXT = "Well, thank you. What can I keep or find for you?"
CANNOT_FORGET = (
    "I cannot forget anything by myself: the log keeps what was said. `/undo` takes the last exchange out of the "
    "conversation."
)
UNKNOWN_RESULT = "I got no answer from {tool}, so I can't say what happened. Nothing more was tried."
OFFER_TO_LEARN = "Tell me, and I will have it next time."
NO_ALARM = "It is on the list, without an alarm; to be reminded, say when: remind me to … tomorrow at 9."
_MOST_FOUND = 5
_LONGEST_FOUND = 600
WHICH_WORDS = "Ask me with a word that was in it: a name, a place, a thing."


def message_reference(message_id: int | None) -> str:
    """ "#41" where the log's number is known."""
    return f"#{message_id}" if message_id is not None else "this message"


def render_noted(message_id: int | None, *, task: bool, todos: bool) -> str:
    text = f"Noted, as {message_reference(message_id)}." if message_id is not None else "Noted."
    return f"{text} To have it on your to-do list as well, say: add … to my list." if task and todos else text


def render_cannot(message_id: int | None) -> str:
    return (
        f"I can't do that offline: it takes a language model. Your request is kept ({message_reference(message_id)}); "
        "ask again once one is connected."
    )


def render_tool_results(found: Sequence[tuple[str, str]]) -> str:
    """What another model had asked tools for before it could not go on, each in a block, the longest ones cut."""
    blocks = [
        f"`{tool}`:\n\n{quote_block(shorten(text.strip(), _LONGEST_FOUND))}" for tool, text in found[-_MOST_FOUND:]
    ]
    left = len(found) - len(blocks)
    before = [f"({left} more before these stand in the conversation.)"] if left > 0 else []
    return "\n\n".join(["What was found before I took over:", *before, *blocks])


def render_unseen_media(names: Sequence[str]) -> str:
    return f"I can't look at {', '.join(names)} offline; kept with your message."


def render_unavailable(what: str, message_id: int | None) -> str:
    return f"I can't get at {what} in this conversation. Your words are kept ({message_reference(message_id)})."


def render_failure(result: str) -> str:
    return f"That did not work: {result.removeprefix(FAILURE_PREFIX).strip()}"


def render_quotation(lead: str, quote: QuotedMessage) -> str:
    return f"{lead} {_when(quote)}:\n\n{quote_block(quote.text)}"


def render_answer(found: RankedAnswer, *, role: str) -> str:
    """The answer in the words in which it was given, and what was said of it before."""
    first, *others = found.answers
    parts = [render_quotation(f"{_who(first, role)} told {_whom(role)}", first)]
    for other in others:
        newer = other.message_id > first.message_id
        lead = "It replaces what was said" if found.corrects and not newer else "Also said" if newer else "Earlier"
        parts.append(render_quotation(lead, other))
    return "\n\n".join(parts)


def render_not_found(found: RankedAnswer, *, searched: bool) -> str:
    where = "in what you told me" if searched else "in what this conversation still shows me"
    parts = [f"I found nothing {where} that answers this. {OFFER_TO_LEARN}"]
    if found.nearest is not None:
        parts.append(render_quotation("The nearest there is", found.nearest))
    return "\n\n".join(parts)


def render_corrected(message_id: int | None, old: QuotedMessage | None) -> str:
    text = render_noted(message_id, task=False, todos=False)
    if old is None:
        return f"{text} I found nothing earlier that it replaces; from now on this counts."
    return render_quotation(f"{text} It replaces what you told me", old)


def render_about_person(quotes: Sequence[QuotedMessage]) -> str:
    if not quotes:
        return "Ask me about one thing, by name, and I will look through everything you told me."
    lines = "\n".join(quote_block(quote.text) for quote in quotes)
    return (
        f"The last things you told me here:\n\n{lines}\n\nAsk me about one thing by name, and I will look further back."
    )


def render_todo_lines(lines: Sequence[TodoLine]) -> str:
    return "\n".join(f"- {line.id}: {_one_line(line.text)}{' (done)' if line.done else ''}" for line in lines)


def _one_line(text: str) -> str:
    return quote_block(" ".join(text.split())).removeprefix("> ")


def _who(quote: QuotedMessage, role: str) -> str:
    if role == "assistant":
        return "I"
    return _one_line(quote.name) if quote.name else "You"


def _whom(role: str) -> str:
    return "you" if role == "assistant" else "me"


def _when(quote: QuotedMessage) -> str:
    return f"on {quote.when} (#{quote.message_id})" if quote.when else f"(#{quote.message_id})"
