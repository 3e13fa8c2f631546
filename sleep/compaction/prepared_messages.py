"""Goes through messages before a summary is asked for, so that whoever needs one waits only until it is put together.

What is found (`sleep/compaction/message_cache.py`) depends on the message alone. So it stays right whatever is said,
compacted or undone meanwhile, and what was not prepared is found when it is needed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from assistant.core.messages import Message
from assistant.core.records import ContextView
from sleep.compaction.extractive import prepare_sentences
from sleep.compaction.key_facts import prepare_key_facts
from sleep.compaction.validate import prepare_values
from sleep.rules.sentence_cache import forget_sentences

_SESSIONS_KEPT = 64


def prepare_message(row: Message) -> None:
    """Find out all that a summary asks about a message by itself, in some milliseconds."""
    prepare_sentences(row)
    prepare_key_facts(row)
    prepare_values(row)


class PreparedMessages:
    """Which messages of each session are prepared. `prepare` may be called in a thread, the rest in one thread only."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, tuple[int, int]] = OrderedDict()  # by session, `prefix_rev` and the last id

    def take_new(self, view: ContextView) -> tuple[Message, ...]:
        """Return the messages to prepare, which are not returned again."""
        prefix_rev, until = self._until.pop(view.session, (view.prefix_rev, 0))
        if prefix_rev != view.prefix_rev:
            # Messages may have been changed, or be there again. Those that are known take no time.
            until = 0
        new = tuple(row for row in view.messages if (row.id or 0) > until)
        self._until[view.session] = view.prefix_rev, max((row.id or 0 for row in view.messages), default=0)
        while len(self._until) > _SESSIONS_KEPT:
            self._until.popitem(last=False)
        return new

    def prepare(self, rows: Sequence[Message], rest: Callable[[], bool]) -> None:
        """Prepare messages. `rest` is called before each, lets others go on, and returns False to stop."""
        for row in rows:
            if not rest():
                return
            prepare_message(row)
        forget_sentences()
