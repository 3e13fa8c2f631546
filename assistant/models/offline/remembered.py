"""What memory says beside the words of the message log: what was edited, imported or put right since. Pure.

What always holds: what a person said is quoted as they said it. A memory is quoted where no message says it, and a
message is no answer any more where the memory that was made of it no longer holds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from assistant.core.dataclass import dataclass
from assistant.core.quoting import QuotedMessage
from assistant.core.text import lazy_regex
from assistant.models.offline.ranking import RankedAnswer, find_answer, guess_words, respell

MEMORY = "memory"  # the speaker of what no message says
_LINE = lazy_regex(
    r"\[[\w ]+\] (?P<day>\d{4}-\d\d-\d\d)(?P<until> until \S+)?"
    r'(?: \((?P<sources>[#\d, ]+)\))?: (?P<text>"(?:[^"\\]|\\.)*")'
)


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    text: str
    day: str  # when it was said, YYYY-MM-DD
    holds: bool
    sources: tuple[int, ...]  # messages


def read_memories(result: str) -> list[RecalledMemory]:
    """Those in a result of `search_memory`."""
    return [
        RecalledMemory(
            json.loads(match["text"]).removeprefix("- "),
            match["day"],
            not match["until"],
            tuple(int(source.strip(" #")) for source in (match["sources"] or "").split(",") if source.strip(" #")),
        )
        for match in map(_LINE.fullmatch, result.split("\n"))
        if match
    ]


def find_remembered(
    question: str, quotes: Sequence[QuotedMessage], memories: Sequence[RecalledMemory], *, topic: bool = False
) -> RankedAnswer:
    """The answers of `quotes` and of memories that no quotation says; a word of the question that none of them has is
    read as the one of theirs that it is a slip of or, where nothing answers otherwise, is likely to be."""
    texts = [*(quote.text for quote in quotes), *(memory.text for memory in memories)]
    question = respell(question, texts)
    ranked = _find_holding(question, quotes, memories, topic=topic)
    if not ranked.answers:
        likely, guessed = guess_words(question, texts)
        second = _find_holding(likely, quotes, memories, topic=topic) if guessed else ranked
        ranked = replace(second, guessed=guessed) if second.answers else ranked
    return ranked


def _find_holding(
    question: str, quotes: Sequence[QuotedMessage], memories: Sequence[RecalledMemory], *, topic: bool
) -> RankedAnswer:
    """The answers that no memory says are over."""

    def answers(text: str, message_id: int = 0) -> bool:
        return bool(find_answer(question, [QuotedMessage(message_id, "", "user", text)], topic=topic).answers)

    over = {source for memory in memories if not memory.holds and answers(memory.text) for source in memory.sources}
    over -= {
        quote.message_id
        for quote in quotes
        if any(memory.holds and memory.text in quote.text and answers(memory.text) for memory in memories)
    }
    standing = [quote for quote in quotes if quote.message_id not in over]
    said = {quote.message_id for quote in standing if answers(quote.text)}
    noted = [_quote(memory, quotes) for memory in memories if memory.holds and said.isdisjoint(memory.sources)]
    ranked = find_answer(question, [*standing, *noted], topic=topic)
    replaced = tuple(quote for quote in quotes if quote.message_id in over)
    if ranked.answers:
        return replace(ranked, replaced=ranked.replaced or replaced)
    former = {source for memory in memories if not memory.holds for source in memory.sources}
    is_former = ranked.nearest is not None and ranked.nearest.message_id in former
    return RankedAnswer() if is_former else ranked


def _quote(memory: RecalledMemory, quotes: Sequence[QuotedMessage]) -> QuotedMessage:
    """As said after the messages that it came from or, without any, after those of the days before."""
    earlier = memory.sources or [quote.message_id for quote in quotes if quote.when[4:14] < memory.day]
    return QuotedMessage(max(earlier, default=0), memory.day, MEMORY, memory.text)
