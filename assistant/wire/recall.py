"""What comes to mind before a turn: one part of the composition root (`assistant.wire.house`)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from assistant.context.memory_block import profiles_block
from assistant.core.records import ContextView, InboxItem
from assistant.runtime.recollection import Recollection, room_for
from assistant.runtime.remembering import Remembering
from assistant.runtime.surroundings import Surroundings
from assistant.settings.settings import Settings
from assistant.wire.sleep import Sleeping
from assistant.wire.stores import Stores, counter_for

# Tools whose results quote the past.
_ECHOES = frozenset(
    {"search_history", "read_history", "search_memory", "manage_todo_list", "close_requests", "delegate"}
)


def surroundings(settings: Settings, stores: Stores, sleeping: Sleeping) -> Surroundings:
    """Everything that stands with a new message beside the conversation."""
    return Surroundings(
        stores.conversation,
        stores.requests,
        stores.delegations,
        _recollection(settings, stores, sleeping),
        _known(settings, stores),
        _remembered(settings, stores, sleeping),
        settings.zone,
    )


def _recollection(settings: Settings, stores: Stores, sleeping: Sleeping) -> Recollection:
    """What was said that bears on a message."""
    most = settings.values.compaction.recall_max_tokens
    counter = counter_for(settings, settings.values.model.name)
    return Recollection(
        stores.history,
        counter.count_text,
        settings.zone,
        lambda: room_for(most, sleeping.measures.window()),
        echoes=_ECHOES,
    )


def _remembered(
    settings: Settings, stores: Stores, sleeping: Sleeping
) -> Callable[[InboxItem, ContextView, datetime], str]:
    """What memory has that bears on a message."""
    most = settings.values.memory.recall_max_tokens
    counter = counter_for(settings, settings.values.model.name)
    remembering = Remembering(
        stores.memory_search,
        counter.count_text,
        settings.zone,
        lambda: room_for(most, sleeping.measures.window()),
    )

    def of(item: InboxItem, view: ContextView, now: datetime) -> str:
        asked = item.incoming
        standing = sleeping.standing.of(asked.session)
        return remembering.recall(asked.content, asked.scope, view, standing, now)

    return of


def _known(settings: Settings, stores: Stores) -> Callable[[str, str], str]:
    """The profiles of those whom a text names."""
    most = settings.values.memory.profiles_max_tokens
    counter = counter_for(settings, settings.values.model.name)

    def of(text: str, scope: str) -> str:
        named = stores.profiles.named_in(text, scope) if most else []
        return profiles_block(named, counter.count_text, most, settings.zone) if named else ""

    return of
