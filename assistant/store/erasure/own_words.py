"""The words of the program's own formats: names of fields, tables and columns, and values like a message's role. A
person may say the same words ("name", "content", "salt"): these are no copies of what they said."""

from __future__ import annotations

import re
from dataclasses import fields, replace

from assistant.core.erasure_phrases import PhraseMatcher
from assistant.core.messages import Media, Message, ToolCall
from assistant.core.sessions import OWNER_SCOPE
from assistant.store.database import Database
from assistant.store.erasure.plan import ErasurePlan

# A quote within a JSON text is escaped, so none of these can be a part of what somebody said.
_IN_JSON = re.compile(
    rb'(?<!\\)"(?:kind|role|trust|ts|turn|commit|prev|salt|mime)":"[^"\\]{0,80}"'
    rb'|(?<!\\)"scope":"owner"'
    rb'|(?<!\\)"name":"\w{1,80}"(?=,"(?:arguments|tool_calls)":)'  # of a tool
    rb'|(?<!\\)"[a-z_]{1,40}":(?:null|true|false)?'
)
# A message without one of them could not be decoded.
MESSAGE_KEYS = frozenset(field.name for kind in (Message, ToolCall, Media) for field in fields(kind))
_IN_ROWS = (*sorted(MESSAGE_KEYS), "null", "true", "false", OWNER_SCOPE)


def without_own_words(data: bytes) -> bytes:
    """Return JSON, or a part of it, without names of fields, and without values that the program chooses itself."""
    return _IN_JSON.sub(b" ", data)


def is_said(record: bytes, wording: PhraseMatcher) -> bool:
    """Return whether a record of the log, or a part of its line, has the text other than in the format's own words."""
    return bool(wording.match_ends(record)) and bool(wording.match_ends(without_own_words(record)))


def without_words_of_schema(db: Database, plan: ErasurePlan) -> ErasurePlan:
    """Return the plan without what its tables and columns are called as well: the bytes of a database cannot tell one
    from the other, its rows can."""
    rows = db.rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    schema = " ".join((*(row["sql"] for row in rows), *_IN_ROWS))

    def only_said(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text for text in texts if not PhraseMatcher((text,)).matches(schema))

    return replace(plan, phrases=only_said(plan.phrases), values=only_said(plan.values), runs=only_said(plan.runs))
