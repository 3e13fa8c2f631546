"""Whether a message asks for something to be done, rather than to be answered (F18). Pure.

A question, a remark or a chat is over with its answer. A task is not: "book the flight" is open after "I will", until
somebody says that it is done. By rules alone, on the sentences of a message, since it decides what stays word for word
in every compaction and has to be the same on every day:

- a sentence that orders ("please book", "remind me", "don't forget") or states what is still to do ("I need to",
  "we have to", "todo:"), in some languages;
- an order that begins with a verb of doing ("Write", "Fix", "Plan");
- not what is asked to be known or said at once ("tell me", "explain", "what is"), nor a question, nor a quotation.

A task that asks for a reminder and for nothing else is told apart: it is done when that is set.

Precision comes first: a task taken for a question is still in the log and in the summary; a question taken for a task
stays on the list until somebody takes it off.
"""

from __future__ import annotations

import re

from assistant.core.checkpoints import RequestKind
from assistant.core.text import lazy_regex
from sleep.rules.pattern_files import load_pattern
from sleep.rules.sentences import Sentence, split_sentences

# Of longer texts only the beginning and the end: there stands what is asked about what was pasted between.
_BEGINNING = 4_000
_END = 1_000
_SHORTEST = 4
_SAID_AT_ONCE = load_pattern("requests", "said_at_once")
_ORDER = load_pattern("requests", "order")
_ORDER_CJK = load_pattern("requests", "order_cjk")
_ORDER_CYRILLIC = lazy_regex(r"(?:пожалуйста[ ,]+)?(?:напомни|не забудь|закажи|купи|напиши|отправь|надо |нужно )", re.I)
_KINDLY = load_pattern("requests", "kindly")

_REMINDS = load_pattern("requests", "reminds")
# Where an order of its own may begin within a sentence.
_PART = lazy_regex(r"[,;:，；、]\s*| and (?=(?:please|also|then|can|could)\b)", re.IGNORECASE)


def classify_request(text: str) -> RequestKind:
    """What the message asks for: more than an answer where some sentence does; something to be done where one of them
    asks for more than a reminder."""
    if len(text) > _BEGINNING + _END:
        text = f"{text[:_BEGINNING]}\n{text[-_END:]}"
    tasks = [sentence for sentence in split_sentences(text) if asks_for_action(sentence)]
    if not tasks:
        return RequestKind.ANSWER
    return RequestKind.REMINDER if all(map(_only_reminds, tasks)) else RequestKind.TASK


def _only_reminds(sentence: Sentence) -> bool:
    parts = [part.strip() for part in _PART.split(sentence.own_text)]
    others = [part for part in parts if not _REMINDS.match(part)]
    return len(others) < len(parts) and not any(asks_for_action(Sentence(part, part)) for part in others)


def asks_for_action(sentence: Sentence) -> bool:
    own = sentence.own_text
    if len(own) < _SHORTEST or _SAID_AT_ONCE.match(own):
        return False
    if _KINDLY.match(own):
        return True
    if sentence.has_question_mark:
        return False
    return bool(_ORDER_CJK.search(own) or _ORDER.match(own) or _ORDER_CYRILLIC.match(own))
